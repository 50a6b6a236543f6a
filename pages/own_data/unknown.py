"""Which tokens a person's own pairs are read in and why; and a warning where too much stays unknown."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import streamlit as st

from pages.settings.form import SETS
from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.tasks import task_of
from transformer.tasks.pairs.own import OwnPairs
from transformer.tasks.pairs.units import MOST_UNKNOWN
from transformer.tasks.unknown import remedy, unknown_tokens
from transformer.tasks.writing import BETWEEN_SPACES, CHARACTERS, Writing

_KINDS = {"auto": "Use the tokens of auto", "bpe": "Use byte pairs"}
_KEYS = {name: key for key, name in SETS.items()}


def auto_line(own: OwnPairs) -> str:
    """What *auto* reads these pairs in, and what it has measured."""
    read, written = own.unknown_words
    return (
        f"Tokens of *auto*: sources are read in {_reason(own.src, read)}; "
        f"targets are written in {_reason(own.tgt, written)}."
    )


def warn_of_unknown(config: RunConfig | None) -> None:
    """Warn where more than a tenth of the held-out tokens is unknown, with what helps as a button.

    Args:
        config: what is to be trained; None where it cannot be used.
    """
    if config is None or config.train.task != "pairs":
        return
    try:
        read, written, better = _measured(config)
    except InputError:  # said beside the setting that it is about
        return
    if max(read, written) <= MOST_UNKNOWN:
        return
    st.warning(
        f"Of the tokens of the held-out pairs **{read:.0%}** on the side of the sources and "
        f"**{written:.0%}** on that of the targets are unknown: training does not have them, and the model "
        "reads and writes [UNK] instead. Such pairs come out right by chance at best, and no head is scored "
        "on them. "
        + (
            "With other tokens they can be read."
            if better
            else "No other tokens know more: bring more pairs with the same words."
        ),
        icon=":material/warning:",
    )
    if better:
        st.button(
            _KINDS[better["tokenizer"]],
            key="unknown_remedy",
            icon=":material/token:",
            on_click=_change,
            args=(better,),
            help=f"At most {MOST_UNKNOWN:.0%} of the held-out tokens is unknown then.",
        )


@lru_cache(maxsize=64)  # a page asks at every turn; none of the pairs is in what is kept
def _measured(config: RunConfig) -> tuple[float, float, dict[str, Any] | None]:
    """Unknown tokens of both sides, and what helps where they are too many."""
    read, written = unknown_tokens(task_of(config))
    return read, written, remedy(config) if max(read, written) > MOST_UNKNOWN else None


def _reason(writing: Writing, unknown: float) -> str:
    if writing.unit == CHARACTERS:
        return f"**characters**, since of the held-out words {unknown:.0%} would be unknown"
    kind = (
        "**words between spaces**, since most of them are signs"
        if writing.unit == BETWEEN_SPACES
        else ("**words**")
    )
    return f"{kind} ({unknown:.0%} of the held-out ones unknown)"


def _change(settings: dict[str, Any]) -> None:
    """Callback: put settings into their widgets."""
    st.session_state.update({_KEYS[name]: value for name, value in settings.items()})

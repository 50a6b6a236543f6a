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
    return f"Tokens of *auto*: {_reason(own.src, read)} for sources, {_reason(own.tgt, written)} for targets."


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
        f"In the held-out pairs, **{read:.0%}** of the source tokens and **{written:.0%}** of the target "
        "tokens are unknown: they do not occur in training, and the model reads and writes [UNK] "
        "instead. Such pairs are right only by chance, and no head is scored on them. "
        + (
            "Other tokens leave fewer unknown."
            if better
            else "No other tokens leave fewer unknown; add more pairs with the same words."
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
            help=f"Leaves at most {MOST_UNKNOWN:.0%} of the held-out tokens unknown.",
        )


@lru_cache(maxsize=64)  # a page asks at every turn; none of the pairs is in what is kept
def _measured(config: RunConfig) -> tuple[float, float, dict[str, Any] | None]:
    """Unknown tokens of both sides, and what helps where they are too many."""
    read, written = unknown_tokens(task_of(config))
    return read, written, remedy(config) if max(read, written) > MOST_UNKNOWN else None


def _reason(writing: Writing, unknown: float) -> str:
    if writing.unit == CHARACTERS:
        return f"**characters** (words would leave {unknown:.0%} of the held-out ones unknown)"
    kind = (
        "**words between spaces**, because most characters are signs"
        if writing.unit == BETWEEN_SPACES
        else ("**words**")
    )
    return f"{kind} ({unknown:.0%} of the held-out words unknown)"


def _change(settings: dict[str, Any]) -> None:
    """Callback: put settings into their widgets."""
    st.session_state.update({_KEYS[name]: value for name, value in settings.items()})

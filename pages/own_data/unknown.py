"""How own pairs are split into tokens and why, and a warning if too many tokens are unknown."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import streamlit as st

from pages.settings.beginnings import put
from pages.settings.form import SETTING_OF_WIDGET
from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.tasks import task_of
from transformer.tasks.pairs.own import OwnPairs
from transformer.tasks.pairs.units import MOST_UNKNOWN
from transformer.tasks.unknown import remedy, unknown_tokens
from transformer.tasks.writing import CHARACTERS, NON_SPACES, Writing

_KINDS = {"auto": "Choose tokens automatically", "bpe": "Use byte pairs"}
_KEYS = {name: key for key, name in SETTING_OF_WIDGET.items()}


def auto_line(own: OwnPairs) -> str:
    """The tokens that *auto* chooses for each side of these pairs, and the unknown share, as Markdown."""
    read, written = own.unknown_words
    return f"Tokens of *auto*: {_reason(own.src, read)} for sources, {_reason(own.tgt, written)} for targets."


def warn_of_unknown(config: RunConfig | None) -> None:
    """Warn if more than a tenth of the held-out tokens of either side of own pairs is unknown.

    Offer other tokens if they help.

    Args:
        config: the configuration to train; None if it is invalid.
    """
    if config is None or config.train.task != "pairs":
        return
    try:
        read, written, better = _measured(config)
    except InputError:  # already shown beside its setting
        return
    if max(read, written) <= MOST_UNKNOWN:
        return
    st.warning(
        f"In the test pairs, **{read:.0%}** of the source tokens and **{written:.0%}** of the target "
        "tokens are unknown: they do not occur in training, and the model reads and writes [UNK] "
        "instead. It can answer them only by chance, and heads are not scored on them. "
        + (
            "Another tokenizer leaves fewer unknown."
            if better
            else "No tokenizer of the app leaves few enough unknown; add more pairs with the same words."
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
            help=f"Leaves at most {MOST_UNKNOWN:.0%} of the test tokens unknown.",
        )


@lru_cache(maxsize=64)  # called in every rerun of the page; the cache holds no pairs
def _measured(config: RunConfig) -> tuple[float, float, dict[str, Any] | None]:
    """Return the unknown share of source tokens and of target tokens; and, if either is too high, settings
    that reduce both enough, or None. Raises InputError."""
    read, written = unknown_tokens(task_of(config))
    return read, written, remedy(config) if max(read, written) > MOST_UNKNOWN else None


def _reason(writing: Writing, unknown: float) -> str:
    if writing.unit == CHARACTERS:
        return f"**characters** (with words, {unknown:.0%} of the test words would be unknown)"
    kind = (
        "**words between spaces**, because most characters are no letters or digits"
        if writing.unit == NON_SPACES
        else ("**words**")
    )
    return f"{kind} ({unknown:.0%} of the test words unknown)"


def _change(settings: dict[str, Any]) -> None:
    """Callback: put settings into their widgets."""
    put({_KEYS[name]: value for name, value in settings.items()})

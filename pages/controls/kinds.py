"""Choosing one of the model's kinds of attention: the same choice on every page."""

from __future__ import annotations

import streamlit as st

from pages.shared import selection
from pages.shared.session import session
from transformer.config import ModelConfig
from transformer.player.index import KIND_NAMES


def kind_choice(model: ModelConfig, *, opens_on: str | None = None, label: bool = True) -> str:
    """Draw the choice where the caller stands; returns one of the model's kinds.

    Args:
        opens_on: what this page shows as long as none has been chosen.
    """
    # Written and not only read: on the first run of another page the new widget would not find the old one's.
    shown = selection.kind(model, opens_on)
    session.kind = shown
    st.segmented_control(
        "Attention",
        list(model.kinds),
        key="kind",
        required=True,
        format_func=KIND_NAMES.get,
        label_visibility="visible" if label else "collapsed",
        persist_state="session",
        on_change=_chosen,
        help="Cross: from the written letters to the word. Encoder: between the letters of the word. "
        "Decoder: between the letters written so far. A model of one stack has one kind.",
    )
    return shown


def _chosen() -> None:
    if session.kind:
        selection.choose_kind(session.kind)

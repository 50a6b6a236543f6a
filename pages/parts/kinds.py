"""Choosing one of the model's three kinds of attention: the same choice on every page."""

from __future__ import annotations

import streamlit as st

from pages.parts import selection
from pages.parts.wording import SITE_KINDS


def kind_choice(*, label: bool = True) -> str:
    """Draw the choice where the caller stands; returns cross, encoder or decoder."""
    # Written and not only read: on the first run of another page the new widget would not find the old one's.
    st.session_state["kind"] = selection.kind()
    st.segmented_control(
        "Attention",
        list(SITE_KINDS),
        key="kind",
        required=True,
        format_func=SITE_KINDS.get,
        label_visibility="visible" if label else "collapsed",
        persist_state="session",
        help="Cross: what each written letter reads of the word. Encoder: how letters read each other. "
        "Decoder: how the letters written so far read each other.",
    )
    return selection.kind()

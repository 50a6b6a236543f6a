"""Choosing one head of one kind of attention: the same choice on every page."""

from __future__ import annotations

import streamlit as st

from pages.shared import selection
from pages.shared.session import session
from transformer.axes import sites_of
from transformer.insight.names import full_head_name
from transformer.recording.frame import Frame
from transformer.recording.view import RunView


def head_choice(view: RunView, frame: Frame | None, kind: str, *, key: str, label: str) -> None:
    """Draw the choice in the current container; by default the head that is shown large elsewhere."""
    if frame is None:
        return
    sites = sites_of(frame.axes, kind)
    st.session_state[key] = selection.head(frame, sites)
    st.selectbox(
        label,
        [(site, head) for site in sites for head in range(view.config.model.n_heads)],
        key=key,
        format_func=lambda one: full_head_name(*one),
        on_change=_chosen,
        args=(key,),
    )


def _chosen(key: str) -> None:
    """Callback; a head of the kind that was shown before arrives as text and is ignored."""
    match st.session_state.get(key):
        case (str(site), int(head)):
            session.pinned = site, head

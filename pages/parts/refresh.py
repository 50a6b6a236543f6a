"""How often a page looks at its run again."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st
from streamlit.errors import StreamlitInvalidLayoutContextError

from transformer.runs.view import PAUSED, RunView


def drawn(draw: Callable[[], None]) -> None:
    """Run the body of a refreshing fragment, which writes to places outside it.

    Streamlit keeps these places from the last full run of the page. Where that one was cut off (rarely, by a
    visitor who was faster), they are missing: the page is then run in full, and nobody sees an error.
    """
    try:
        draw()
    except StreamlitInvalidLayoutContextError:
        st.rerun()


def refresh_seconds(view: RunView, *, waiting: bool = False) -> float | None:
    """Seconds between two looks; None once nothing will move by itself.

    Args:
        waiting: a word that was typed has not been recorded yet.
    """
    if waiting or (view.active and (view.frame is None or (view.pace or 99.0) <= 5.0)):
        return 0.2
    if view.active:
        return 0.5
    return 2.0 if view.state == PAUSED else None  # someone else with the link may let it go on

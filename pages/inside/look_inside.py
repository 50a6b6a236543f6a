"""Links from a cell of a map to Look inside, which explains its number."""

from __future__ import annotations

import streamlit as st

from pages.shared import selection
from pages.shared.session import session
from transformer.anatomy.panels import Focus


def look_at_cell(kind: str, site: str, head: int, point: object) -> None:
    """Choose a clicked cell for Look inside."""
    if isinstance(point, tuple):
        selection.choose_kind(kind)
        session.pinned = site, head
        st.session_state["focus"] = Focus(row=point[0], column=point[1])
        session.stage, session.at_positions = "weights", False


def look_inside_link() -> None:
    """Draw the link to Look inside."""
    st.page_link(
        "anatomy.py",
        label="Explain a cell",
        icon=":material/biotech:",
        help="Opens Look inside: the forward pass stage by stage. Click a cell of the map to choose it.",
    )

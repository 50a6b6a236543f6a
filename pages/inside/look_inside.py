"""From a cell of a map to the page that shows how its number came about."""

from __future__ import annotations

import streamlit as st

from pages.shared import selection
from pages.shared.session import session
from transformer.anatomy.panels import Focus


def look_at_cell(kind: str, site: str, head: int, point: object) -> None:
    """A click on a cell of a map: Look inside opens on it."""
    if isinstance(point, tuple):
        selection.choose_kind(kind)
        session.pinned = site, head
        st.session_state["focus"] = Focus(row=point[0], column=point[1])
        session.stage, session.at_positions = "weights", False


def look_inside_link() -> None:
    """Draw the way to that page."""
    st.page_link(
        "anatomy.py",
        label="How a cell came about",
        icon=":material/biotech:",
        help="Look inside: one forward pass of this model, stage by stage. Click a cell of the map first: "
        "that one is explained.",
    )

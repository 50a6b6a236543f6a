"""From a cell of a map to the page that shows how its number came about."""

from __future__ import annotations

import streamlit as st

from pages.shared import selection
from pages.shared.session import Place, session


def look_at_cell(kind: str, site: str, head: int, point: object) -> None:
    """A click on a cell of a map: Look inside opens on it."""
    if isinstance(point, tuple):
        selection.choose_kind(kind)
        session.pinned = site, head
        session.box = Place(site, head, "weights", *point)


def look_inside_link() -> None:
    """Draw the link to Look inside."""
    st.page_link(
        "anatomy.py",
        label="Explain a cell",
        icon=":material/biotech:",
        help="Look inside: the picture of the whole model. Click a cell of the map first to open it there.",
    )

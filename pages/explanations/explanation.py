"""Ways from a map to Look inside, and the formula of the cell that is chosen there, with its numbers."""

from __future__ import annotations

import streamlit as st

from pages.questions.asking import asked_snapshot
from pages.shared import selection
from pages.shared.plain import plain, show_error
from pages.shared.session import Place, session
from transformer.errors import InputError
from transformer.recording.view import FAILED, RunView


def explanation(view: RunView, word: str, beside: tuple[str, ...] = ()) -> None:
    """Draw the formula of the chosen cell, a hint if no cell is chosen, or an error.

    If the run has failed, also draw the reason.

    Args:
        view: the run; its snapshot nearest to the chosen step, or its newest, is explained.
        word: the word that the model reads.
        beside: the other words of the batch.
    """
    snapshot, place = asked_snapshot(view), session.box
    if view.state == FAILED:
        show_error(view.reason)
    if snapshot is None or place is None or place.table is None:
        st.caption(
            "Open a box to see its numbers. Point at a cell: what it is made of is framed in pink, what it "
            "goes into in blue. Click it for its formula. Keys: Tab, Enter and arrows; Escape closes a box. "
            "To see which heads are needed, switch some off on Ask, Break."
        )
        return
    from transformer.anatomy.boxes import arranged
    from transformer.anatomy.explained import explained
    from transformer.anatomy.trace import trace

    try:
        passed = trace(arranged(view.config, session.arranged), snapshot, word, beside)
        number = explained(passed, place.box, place.table, place.head, place.row, place.column)
    except InputError as error:
        show_error(error)
        return
    st.markdown(f"**{plain(number.title)}**, model of step {snapshot.step:,}. {plain(number.sentence)}")
    with st.container(horizontal=True, vertical_alignment="center", gap="large"):
        st.latex(number.formula, width="content")
        st.latex(number.numbers, width="content")


def look_at_cell(kind: str, site: str, head: int, point: object) -> None:
    """Callback: choose the clicked cell of a map, for Look inside."""
    if isinstance(point, tuple):
        selection.choose_kind(kind)
        session.pinned = site, head
        session.box = Place(site, head, "weights", *point)


def look_inside_link() -> None:
    """Draw the link to Look inside."""
    st.page_link(
        "inside.py",
        label="Explain a cell",
        icon=":material/biotech:",
        help="Look inside: the picture of the whole model. Click a cell of the map first to open it there.",
    )

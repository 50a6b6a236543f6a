"""The formula of the cell that is chosen in the picture of the model, with its numbers."""

from __future__ import annotations

import streamlit as st

from pages.shared.plain import plain, refuse
from pages.shared.session import session
from transformer.errors import InputError
from transformer.recording.view import FAILED, RunView
from transformer.recording.weights import Snapshot


def explanation(view: RunView, snapshot: Snapshot | None, word: str, beside: tuple[str, ...] = ()) -> None:
    """Draw the formula, or what is known of the open box, or why nothing is shown."""
    place = session.box
    if view.state == FAILED:
        refuse(view.reason)
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
        found = explained(passed, place.box, place.table, place.head, place.row, place.column)
    except InputError as error:
        refuse(error)
        return
    st.markdown(f"**{plain(found.title)}**, model of step {snapshot.step:,}. {plain(found.sentence)}")
    with st.container(horizontal=True, vertical_alignment="center", gap="large"):
        st.latex(found.formula, width="content")
        st.latex(found.numbers, width="content")

"""Boxes that a page itself may fill in, kept as they stand while a part of it runs by itself."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from pages.shared.session import session


def holding(*more: str) -> Callable[[], None]:
    """Keep the word's box, and more boxes, as they stand now, in the full run of the page.

    A browser that is behind asks for a part of the page with what stood in them before. The returned call,
    the first of every part that runs by itself, puts that right: no such part can change them.
    """
    standing = {key: st.session_state.get(key) for key in ("own_word", *more)}
    asked, problem = "add_word" in session.asked, session.word_problem

    def hold() -> None:
        for key, value in standing.items():
            if st.session_state.get(key) != value:
                st.session_state[key] = value
        if not asked:  # what such a browser asks by filling the box once more
            session.asked.pop("add_word", None)
        session.word_problem = problem

    return hold

"""Text boxes that a page may fill in, kept unchanged while a fragment of the page reruns by itself."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from pages.shared.session import session


def holding(*more: str) -> Callable[[], None]:
    """Remember what the word's box, and any further boxes, contain in this full run of the page.

    A browser that lags behind reruns a fragment with earlier contents of these boxes. Every fragment first
    calls the returned function, which restores them: no fragment may change them.
    """
    standing = {key: st.session_state.get(key) for key in ("own_word", *more)}
    asked, problem = "add_word" in session.asked, session.word_problem

    def hold() -> None:
        for key, value in standing.items():
            if st.session_state.get(key) != value:
                st.session_state[key] = value
        if not asked:  # such a browser fills the box again, which asks for the word again
            session.asked.pop("add_word", None)
        session.word_problem = problem

    return hold

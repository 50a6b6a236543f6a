"""Boxes that a page itself may fill in, kept as they stand while a part of it runs by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

WORDS = ("own_word", "asked_word", "word_problem")
"""What a typed word fills in, on any page that has a box for one."""


def holding(filled: Sequence[str] = WORDS) -> Callable[[], None]:
    """Keep boxes that the page itself may fill in as they stand now, in the full run of the page.

    A browser that is behind asks for a part of the page with what stood in them before. The returned call,
    the first of every part that runs by itself, puts that right: no such part can change them.
    """
    standing = {key: st.session_state.get(key) for key in filled}

    def hold() -> None:
        for key, value in standing.items():
            if st.session_state.get(key) != value:
                st.session_state[key] = value

    return hold

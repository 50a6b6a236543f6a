"""Buttons that ask for something; Start among them, which stands on the page before the rest is loaded."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator


def ask(what: str) -> None:
    """Callback of every button: only notes what is asked, for a callback knows the page as it was before."""
    st.session_state["asked"] = what
    st.session_state.pop("problem", None)
    st.session_state.pop("word_problem", None)


def buttons_row() -> DeltaGenerator:
    """Where the buttons that command a run stand."""
    return st.container(key="controls", horizontal=True, vertical_alignment="center", gap="xsmall")


def start_button(label: str, *, primary: bool = True, disabled: bool = False) -> None:
    """Draw the button that starts a run."""
    st.button(
        label,
        key="run_start",
        type="primary" if primary else "secondary",
        icon=":material/play_arrow:",
        shortcut="S",
        disabled=disabled,
        on_click=ask,
        args=("start",),
    )


def starts_at_once() -> bool:
    """Draw Start where it is sure to be right without a look at settings or runs: on a first, plain visit.

    Returns:
        Whether it has been drawn.
    """
    known = ("settings_filled", "run", "draft", "asked")
    plain = not st.query_params and not any(key in st.session_state for key in known)
    if plain:
        start_button("Start")
    return plain

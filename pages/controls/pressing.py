"""Buttons that ask for something."""

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


def start_button(label: str, *, primary: bool = True, disabled: bool = False, asks: str = "start") -> None:
    """Draw the large button: it starts a run, or lets the one that is paused go on."""
    st.button(
        label,
        key="run_start",
        type="primary" if primary else "secondary",
        icon=":material/play_arrow:",
        shortcut="S",
        disabled=disabled,
        on_click=ask,
        args=(asks,),
    )

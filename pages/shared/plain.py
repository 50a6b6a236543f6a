"""Text of users and files, escaped so that Streamlit's Markdown shows it literally."""

from __future__ import annotations

import re

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

_PUNCTUATION = re.compile(r"([\\`*_{}\[\]()#+\-.!|~$:<>&@=])")


def plain(text: str) -> str:
    """Escape a text: Markdown then shows no emphasis, link, picture, formula, colour, icon or HTML."""
    return _PUNCTUATION.sub(r"\\\1", text)


def show_error(message: object) -> None:
    """Show an error message, escaped, because it may quote what was typed."""
    st.error(plain(str(message)), width="stretch")


def show_error_in(place: DeltaGenerator, message: str) -> None:
    """Show an error message in this container; an empty message clears the container."""
    with place:
        if message:
            show_error(message)
        else:
            st.markdown("")

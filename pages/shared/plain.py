"""Text that a user typed or a file contains, shown as it is: Streamlit's Markdown finds no markup in it."""

from __future__ import annotations

import re

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

_PUNCTUATION = re.compile(r"([\\`*_{}\[\]()#+\-.!|~$:<>&@=])")


def plain(text: str) -> str:
    """The same text for Markdown: no emphasis, link, picture, formula, colour, icon or HTML comes of it."""
    return _PUNCTUATION.sub(r"\\\1", text)


def refuse(message: object) -> None:
    """Say why something cannot be used; the message may quote what was typed."""
    st.error(plain(str(message)), width="stretch")


def refuse_in(place: DeltaGenerator, message: str) -> None:
    """Say it in a place of the page, or empty the place where there is nothing to say."""
    with place:
        if message:
            refuse(message)
        else:
            st.markdown("")

"""Why attention is needed, in one sentence for each page."""

from __future__ import annotations

import streamlit as st

WHY = {
    "Watch": "Each letter or word of the answer comes from elsewhere in the question: attention is how the "
    "model looks there, and training is how it learns where.",
    "Ask": "To write the next letter or word, the model must find the one that matters among all others: "
    "attention is how it looks there.",
    "Look inside": "A position knows only itself until attention lets it compare itself with all the others, "
    "and take over what it needs.",
    "Masks": "Attention could look at everything, even at the answer that it is to write: a mask says what "
    "it may not see.",
    "Your data": "Each part of an answer comes from somewhere in the question: attention has to learn these "
    "lines by itself.",
}


def why(page: str) -> None:
    """Say it beside the names of the pages, where it takes no room from a picture."""
    with st.container(key="why"):
        st.caption(WHY[page])

"""Choosing a probe, and typing a word of one's own."""

from __future__ import annotations

import streamlit as st

from transformer.errors import InputError
from transformer.runs.run import Run


def probe_words(run: Run) -> str:
    """Draw the probes of a run as buttons beside a box for a new one; returns the chosen word."""
    words = [question.text for question in run.questions]
    run_id, typed = st.session_state.get("typed_word", (None, None))
    if run_id == run.id and typed not in words:
        words.append(typed)  # the run's thread takes it up after its present step
    if st.session_state.get("word") not in words:
        st.session_state["word"] = words[0]
    with st.container(key="probe_words", horizontal=True, vertical_alignment="center", gap="small"):
        st.pills(
            "Word",
            words,
            key="word",
            required=True,
            persist_state="session",
            label_visibility="collapsed",
            help="The word whose maps are shown.",
        )
        st.text_input(
            "Your own word",
            key="own_word",
            placeholder="your own word…",
            label_visibility="collapsed",
            on_change=_ask,
            args=(run,),
            width=150,
            help=f"Letters a to z, up to {2 * run.config.train.max_letters}; press Enter. "
            f"Training words have at most {run.config.train.max_letters}.",
        )
        st.button("Add", key="add_word", icon=":material/add:", on_click=_ask, args=(run,))
    with st.container():  # always there, so that the pictures below keep their place
        problem = st.session_state.pop("word_problem", None)
        if problem:
            st.error(problem)
    return st.session_state["word"]


def _ask(run: Run) -> None:
    """A typed word becomes a probe at once, in any state of the run; a mistake is answered beside the box."""
    try:
        word = run.add_word(st.session_state["own_word"])
    except InputError as error:
        st.session_state["word_problem"] = str(error)
        return
    st.session_state["typed_word"] = run.id, word
    st.session_state["word"] = word
    st.session_state["own_word"] = ""

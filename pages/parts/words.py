"""Choosing a probe, and typing a word of one's own."""

from __future__ import annotations

import streamlit as st

from pages.parts import selection
from pages.parts.plain import plain, refuse
from transformer.config import LETTER_TASKS
from transformer.errors import InputError
from transformer.runs.watched import Watched


def probe_words(run: Watched) -> str:
    """Draw the probes of a run as buttons beside a box for a new one; returns the chosen word."""
    _take_up(run)
    own = selection.owns(run)  # its words are everybody's who watches
    words = [question.text for question in run.questions]
    run_id, typed = st.session_state.get("typed_word", (None, None))
    if run_id == run.id and typed in words:
        del st.session_state["typed_word"]
    elif run_id == run.id:
        words.append(typed)  # the run's thread takes it up after its present step
    word = st.session_state.get("word", st.query_params.get("word"))  # from a link after a reload
    # Written and not only read: on the first run of another page the new widget would not find the old one's.
    st.session_state["word"] = word if word in words else words[0]
    with st.container(key="probe_words", horizontal=True, vertical_alignment="center", gap="small"):
        if run.task.same_length:
            st.pills(
                "Word",
                words,
                key="word",
                format_func=plain,
                required=True,
                persist_state="session",
                label_visibility="collapsed",
                on_change=_forget_problem,
                help="The word whose maps are shown.",
            )
        else:  # sentences need more room than a row of buttons has
            st.selectbox(
                "Sentence",
                words,
                key="word",
                persist_state="session",
                label_visibility="collapsed",
                on_change=_forget_problem,
                width=430,
                help="The sentence whose maps are shown.",
            )
        st.text_input(
            "Your own word",
            key="own_word",
            placeholder=("your own word…" if run.task.same_length else "your own sentence…")
            if own
            else "any word: on Ask",
            label_visibility="collapsed",
            disabled=not own,
            on_change=_typed,
            width=150 if run.task.same_length else 260,
            help=f"{what_to_type(run)} Press Enter.",
        )
        st.button("Add", key="add_word", icon=":material/add:", on_click=_ask, disabled=not own)
    with st.container(key="word_problem"):
        _problem()
    return st.session_state["word"]


def what_to_type(run: Watched) -> str:
    """What this run can be asked, for the help of a box."""
    train = run.config.train
    if train.task in LETTER_TASKS:
        return (
            f"Letters a to z, up to {2 * train.max_letters}; training words have at most {train.max_letters}."
        )
    example = run.questions[0].text
    known = {
        "dates": "An English date",
        "numbers": "A number in digits" if train.to_words else "A number in words",
        "pairs": "Anything in the language of your questions",
    }.get(train.task, "A sentence of the words that this grammar has, in any order")
    return f"{known}, such as: {plain(example)}. At most {run.task.limit} tokens."


def _typed() -> None:
    """Emptying the box asks nothing, be it the visitor who does it or the page."""
    if st.session_state.get("own_word"):
        _ask()


def _forget_problem() -> None:
    st.session_state.pop("word_problem", None)


def _ask(word: str | None = None) -> None:
    """A callback only notes the word: the run on the screen may be another by the time it is taken up."""
    st.session_state["asked_word"] = st.session_state.get("own_word", "") if word is None else word
    _forget_problem()


def _take_up(run: Watched) -> None:
    """A typed word becomes a probe at once, in any state of the run."""
    asked = st.session_state.pop("asked_word", None)
    if asked is None:
        return
    try:
        word = selection.command(run).add_word(asked)
    except InputError as error:
        st.session_state["word_problem"] = str(error), error.offer
        return
    st.session_state["typed_word"] = run.id, word
    st.session_state["word"] = word
    st.session_state["own_word"] = ""


def _problem() -> None:
    """Why the word cannot be asked, with one that can, until the next word is typed."""
    message, offer = st.session_state.get("word_problem", (None, None))
    if message:
        refuse(message)
    if offer:
        st.button(f"Ask “{plain(offer)}”", key="offered_word", on_click=_ask, args=(offer,))

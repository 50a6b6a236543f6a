"""The inputs of the page Ask: a word, a step, the model at that step, and a kind of attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import streamlit as st

from pages.controls.words import askable, input_help
from pages.shared import ownership, selection
from pages.shared.plain import plain, show_error
from pages.shared.session import session
from transformer.errors import InputError
from transformer.player.index import KIND_NAMES
from transformer.recording.view import FAILED, RunView
from transformer.recording.weights import Snapshot
from transformer.runs.any_run import AnyRun
from transformer.shared.interventions import Interventions

if TYPE_CHECKING:  # these import torch, which is loaded with the first question
    from transformer.asking.answers import Answer
    from transformer.asking.model import SnapshotModel

Draw: TypeAlias = "Callable[[RunView, Snapshot | None, Answer | None], None]"
"""Draws a tab for a run at one step, from the model's snapshot and its answer to the word; each
may be None."""
NO_WEIGHTS = "No weights of this run are kept, so its model cannot be asked."


def ask_word(run: AnyRun) -> str:
    """Draw the page's own box for any word; return the last valid word.

    If the visitor owns the run, a new word that is not too long is also tracked.

    Raises:
        InputError: the run cannot be commanded any more, or has failed meanwhile.
    """
    words = askable(run)
    word, chosen = st.session_state.get("asked_word_text"), session.word
    elsewhere = word is None or chosen != st.session_state.get("asked_beside")
    if elsewhere:
        word = chosen or st.query_params.get("word")
    try:
        word = run.task.question(word or words[0]).text
    except InputError:
        word, elsewhere = words[0], True  # a word of an earlier run, or of a forged link
    if elsewhere or st.session_state.get("asked_on") != session.page:
        st.session_state["explore_text"] = word  # chosen on another page since, or in the link
    st.session_state["asked_on"] = session.page
    with st.container(key="ask", horizontal=True, vertical_alignment="center", gap="small"):
        typed = st.text_input(
            "Any word",
            key="explore_text",
            label_visibility="collapsed",
            placeholder="any word…",
            width="stretch",
            persist_state="session",
            help=input_help(run),
        )
        try:
            word = run.task.question(typed or "").text
        except InputError as error:
            with st.container(key="word_problem", horizontal=True, vertical_alignment="center"):
                show_error(error)
                if error.suggestion:
                    offered = f"Ask “{plain(error.suggestion)}”"
                    st.button(offered, key="explore_offer", on_click=_take, args=(error.suggestion,))
    asked_before = word == st.session_state.get("asked_word_text")
    short = not run.task.question(word).too_long  # a long word would pad all the others
    if word not in words and short and not asked_before and run.view.state != FAILED and ownership.owns(run):
        # All pages but Race share the chosen word; Watch shows it even before the run's thread has added it.
        session.typed_word = run.id, ownership.command(run).add_word(word)
    st.session_state["asked_word_text"] = st.session_state["asked_beside"] = session.word = word
    return word


def asked_word(run: AnyRun) -> str:
    """Return the word in the box, or the last valid one.

    For callbacks: the word may have changed since the page was drawn.
    """
    try:
        return run.task.question(st.session_state.get("explore_text") or "").text
    except InputError:
        return st.session_state["asked_word_text"]


def _take(word: str) -> None:
    st.session_state["explore_text"] = word


def asked_snapshot(view: RunView) -> Snapshot | None:
    """The snapshot nearest to the chosen step, or at LIVE the newest; None if there is none."""
    at = selection.step()
    if at is None:
        st.session_state.pop("answered", None)
        return view.snapshots[-1] if view.snapshots else None
    chosen, answered = st.session_state.get("answered", (None, None))
    if chosen != (view.id, at) or answered is None:
        answered = view.snapshot_at(at)
    else:  # keep the snapshot even if a nearer one exists now; replace it only if it was thinned
        same = view.snapshot_at(answered.step)
        answered = same if same is not None and same.step == answered.step else view.snapshot_at(at)
    st.session_state["answered"] = (view.id, at), answered
    return answered


def model_of(view: RunView, snapshot: Snapshot, more: Interventions | None = None) -> SnapshotModel:
    """Return the model of a snapshot, with the snapshot's interventions and those in `more`.

    Raises:
        InputError: the weights do not fit the model or are not finite, or it lacks a head of `more`.
    """
    from transformer.asking.model import snapshot_model

    taken = snapshot.interventions if more is None else snapshot.interventions | more
    return snapshot_model(view.config, snapshot, taken)


def kind_choice(run: AnyRun) -> str:
    """Draw the choice of a kind of attention in the current container; return the chosen kind."""
    # Assign the value: on the first run of another page, the new widget does not find the old widget's value.
    shown = selection.kind(run.view)
    session.kind = shown
    st.pills(
        "Attention",
        list(run.view.kinds),
        key="kind",
        required=True,
        format_func=KIND_NAMES.get,
        persist_state="session",
        on_change=_kind_chosen,
        help="Cross: from the written letters to the word. Encoder: between the letters of the word. "
        "Decoder: between the letters written so far. A model of one stack has one kind.",
    )
    return shown


def _kind_chosen() -> None:
    if session.kind:
        selection.choose_kind(session.kind)

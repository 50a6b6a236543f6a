"""The buttons that command a run: start, pause, step, stop, pace, continue."""

from __future__ import annotations

from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.controls.commands import PACE_NAMES, problem, tell
from pages.settings.expected import expected
from pages.shared import ownership
from pages.shared.session import ask
from pages.shared.wording import differences
from transformer.config import RunConfig
from transformer.recording.view import ENDED, FAILED, IDLE, PAUSED, QUEUED, TRAINING, RunView
from transformer.runs.watched import Watched

_BUTTONS = """
| button | key | what it does |
|---|---|---|
| Start | S | trains; beside a run that is there, it starts another and leaves that one alone |
| Pause | P | stands still after the present step |
| Resume | S | lets a run that stands still go on, with the large button |
| Step | N | takes as many training steps as the box beside it says, then stands still |
| Stop | X | ends the run after the present step; it stays in the list and can be continued |
| Continue | | lets a run that has ended go on for more steps: how many, and at what rate, stands here |
| + and − | | adds the word in the box to the tracked ones, with its past; removes the chosen one |
"""


def buttons_row() -> DeltaGenerator:
    """Where the buttons that command a run stand."""
    return st.container(key="controls", horizontal=True, vertical_alignment="center", gap="xsmall")


def controls(
    run: Watched,
    view: RunView,
    changes: dict[str, tuple[Any, Any]],
    config: RunConfig | None,
    row: DeltaGenerator,
    *,
    start: str = "",
) -> None:
    """Draw the buttons of a run or draft.

    Args:
        view: the look at the run that the whole page is drawn from.
        changes: settings that differ from the run's.
        config: the settings; None where they cannot be used.
        row: where the buttons stand.
        start: what the large button says where it trains another run than that of the page's settings.
    """
    state, edited, usable = view.state, bool(changes), config is not None
    own = ownership.owns(run)
    paused = state == PAUSED and own
    goes_on = paused and not edited
    startable = state in (IDLE, *ENDED) or edited or not own or goes_on
    with row:
        st.button(
            "Resume" if goes_on else start or _start_label(state, edited, own),
            key="run_start",
            type="primary" if startable and own else "secondary",
            icon=":material/play_arrow:",
            shortcut="S",
            disabled=not (goes_on or (usable and startable)),
            on_click=tell if goes_on else ask,
            args=("resume", run) if goes_on else ("start",),
        )
        # The large button is taken by settings that were changed: then Pause lets the run go on.
        resuming = paused and edited
        running = own and state in (QUEUED, TRAINING)
        _button("Resume" if resuming else "Pause", "run_pause", "play_pause", "P", resuming or running, run)
        first = state == IDLE and usable and not edited
        steppable = own and (state in (TRAINING, PAUSED) or first)
        _button("Step", "run_step", "skip_next", "N", steppable, None if first else run)
        if own and state not in ENDED:
            st.number_input(
                "Steps at a time",
                value=1,
                step=1,
                key="step_size",
                label_visibility="collapsed",
                width=70,
                persist_state="session",
                help="How many steps Step takes.",
            )
        _button("Stop", "run_stop", "stop", "X", running or paused, run)
        pace = _pace(run, view, own)
        how_long, too_long = expected(config, pace) if state == IDLE or edited else ("", False)
        ended = own and state in ENDED and state != FAILED
        if ended:
            st.button("Continue", key="run_continue", on_click=tell, args=("continue", run))
        _how(run, ended)
        if not own:
            st.caption("You watch this run.", width="content")
        with st.container(key="expected", width="content"):
            # Beside Continue there is no room: a second line would move the pictures.
            st.caption(how_long if state == IDLE and not too_long else "")
    # Always the same containers, empty or not: one that came and went would move the pictures below it to
    # another place in the page, where the browser would build them anew.
    with st.container():
        problem()
        if view.unsaved:
            st.warning(view.unsaved, icon=":material/save:")
    with st.container(key="too_long"):
        if too_long:
            st.warning(how_long, icon=":material/hourglass:")
    with st.container(key="run_changes", horizontal=True, vertical_alignment="center"):
        if edited and state != IDLE:
            _changed_settings(run, state, changes, own)


def _button(label: str, key: str, icon: str, shortcut: str, enabled: bool, run: Watched | None) -> None:
    """One that tells the run what it is called, or asks it of the page where none has begun."""
    st.button(
        label,
        key=key,
        icon=f":material/{icon}:",
        shortcut=shortcut,
        disabled=not enabled,
        on_click=ask if run is None else tell,
        args=(label.lower(),) if run is None else (label.lower(), run),
    )


def _pace(run: Watched, view: RunView, own: bool) -> float | None:
    """Draw how fast the run is let to train; returns it in steps per second."""
    if view.state != IDLE:  # the box shows the run's own pace, whoever has set it
        st.session_state["pace"] = next(name for name, pace in PACE_NAMES.items() if pace == view.pace)
    name = st.selectbox(
        "Pace",
        list(PACE_NAMES),
        key="pace",
        bind="query-params",
        width=116,
        label_visibility="collapsed",
        disabled=not own,
        on_change=None if view.state == IDLE else tell,
        args=("pace", run),
        help="How fast the run is let to train. At 5 steps a second or less, every step is drawn. "
        "The losses are the same at any pace.",
    )
    pace = PACE_NAMES.get(name)
    if own and view.state == IDLE and pace != view.pace:
        # From the link, or from before the model was made anew.
        ownership.command(run).set_pace(pace)
    return pace


def _start_label(state: str, edited: bool, own: bool) -> str:
    if not own:
        return "Start one of your own"
    if state == IDLE:
        return "Start"
    if state == QUEUED and not edited:
        return "Waiting…"
    return "Start new" if edited else "New run"


def _changed_settings(run: Watched, state: str, changes: dict[str, tuple[Any, Any]], own: bool) -> None:
    """What differs from the run on the screen, and what can be done about it."""
    st.markdown(
        f":material/edit: **Changed:** {differences(changes)}. This run is not touched.", width="content"
    )
    if own and "learning_rate" in changes and state in (TRAINING, PAUSED):
        st.button(
            "Use the learning rate now",
            key="run_learning_rate",
            on_click=tell,
            args=("learning_rate", run),
            help="Scale this run's schedule to the new rate from its next step on.",
        )


def _how(run: Watched, goes_on: bool) -> None:
    """What the buttons do, and how a run that has ended goes on."""
    with st.popover("", icon=":material/more_horiz:", help="What the buttons do"):
        if goes_on:
            st.number_input("More steps", value=100, step=50, key="continue_steps")
            st.number_input(
                "Rate",
                value=run.config.train.learning_rate / 2,
                step=0.0005,
                format="%.4g",
                key="continue_rate",
                help="It is warmed up to this afresh, and falls to zero again.",
            )
        st.markdown(_BUTTONS)

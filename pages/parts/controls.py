"""The buttons that command a run: start, pause, step, stop, pace, continue."""

from __future__ import annotations

import streamlit as st

from pages.parts import selection
from pages.parts.wording import changed, differences
from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.runs.registry import REGISTRY
from transformer.runs.run import PACES, Run
from transformer.runs.view import ENDED, FAILED, IDLE, PAUSED, QUEUED, TRAINING

PACE_NAMES = {"full pace" if pace is None else f"{pace:g} steps/s": pace for pace in PACES}
OBEYED_SECONDS = 0.6
"""A command is obeyed between two steps; the page waits this long for it at most, to show its effect."""


_BUTTONS = """
| button | key | what it does |
|---|---|---|
| Start | S | trains; beside a run that is there, it starts another and leaves that one alone |
| Pause, Resume | P | stands still after the present step, and goes on |
| Step | N | takes as many training steps as the box beside it says, then stands still |
| Stop | X | ends the run after the present step; it stays in the list and can be continued |
| Continue | | lets a run that has ended go on; the rate is warmed up afresh and falls to zero again |
"""


def controls(run: Run, config: RunConfig | None) -> None:
    """Draw the buttons of a run or draft, given the settings as they are now (None: they cannot be used)."""
    state = run.view.state
    edited = config is not None and bool(changed(run.config, config))
    with st.container(key="controls", horizontal=True, vertical_alignment="center", gap="xsmall"):
        st.button(
            _start_label(state, edited),
            key="run_start",
            type="primary" if state in (IDLE, *ENDED) or edited else "secondary",
            icon=":material/play_arrow:",
            shortcut="S",
            disabled=config is None or (state in (QUEUED, TRAINING, PAUSED) and not edited),
            on_click=_start,
            args=(run, config),
        )
        resuming = state == PAUSED
        st.button(
            "Resume" if resuming else "Pause",
            key="run_pause",
            icon=":material/play_pause:",
            shortcut="P",
            disabled=state not in (TRAINING, PAUSED),
            on_click=_command,
            args=(run, "resume" if resuming else "pause"),
        )
        st.button(
            "Step",
            key="run_step",
            icon=":material/skip_next:",
            shortcut="N",
            disabled=state not in (IDLE, TRAINING, PAUSED),
            on_click=_step,
            args=(run,),
        )
        if state not in ENDED:
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
        st.button(
            "Stop",
            key="run_stop",
            icon=":material/stop:",
            shortcut="X",
            disabled=state not in (QUEUED, TRAINING, PAUSED),
            on_click=_command,
            args=(run, "stop"),
        )
        st.selectbox(
            "Pace",
            list(PACE_NAMES),
            key="pace",
            bind="query-params",
            width=120,
            label_visibility="collapsed",
            on_change=_pace,
            args=(run,),
            help="How fast the run is let to train. At 5 steps a second or less, every step is drawn. "
            "The losses are the same at any pace.",
        )
        with st.popover("", icon=":material/help:", help="What the buttons do"):
            st.markdown(_BUTTONS)
        if state in ENDED and state != FAILED:
            _continuation(run)
    # Always the same containers, empty or not: one that came and went would move the pictures below it to
    # another place in the page, where the browser would build them anew.
    with st.container():
        _show_problem()
    with st.container(key="run_changes", horizontal=True, vertical_alignment="center"):
        if edited and state != IDLE:
            _changed_settings(run, config)


def _start_label(state: str, edited: bool) -> str:
    if state == IDLE:
        return "Start"
    return "Start a new run with these changes" if edited else "New run"


def _changed_settings(run: Run, config: RunConfig) -> None:
    """What differs from the run on the screen, and what can be done about it."""
    changes = changed(run.config, config)
    st.markdown(
        f":material/edit: **Changed:** {differences(changes)}. This run is not touched.", width="content"
    )
    if "learning_rate" in changes and run.view.state in (TRAINING, PAUSED):
        st.button(
            "Use the learning rate now",
            key="run_learning_rate",
            on_click=_command,
            args=(run, "set_learning_rate", config.train.learning_rate),
            help="Scale this run's schedule to the new rate from its next step on.",
        )


def _continuation(run: Run) -> None:
    """A run that has ended can go on."""
    st.button("Continue", key="run_continue", on_click=_continue, args=(run,))
    st.number_input(
        "more steps", value=100, step=50, key="continue_steps", label_visibility="collapsed", width=85
    )
    st.markdown("steps at", width="content")
    st.number_input(
        "rate",
        value=run.config.train.learning_rate / 2,
        step=0.0005,
        format="%.4g",
        key="continue_rate",
        label_visibility="collapsed",
        width=90,
    )


def _start(run: Run, config: RunConfig | None) -> None:
    if config is None:
        return
    new, before = run, None
    if run.view.state != IDLE:
        new, before = selection.new_draft(config, run), run.id
    new.set_pace(PACE_NAMES.get(st.session_state.get("pace")))
    REGISTRY.start(new, after=before)
    st.session_state.pop("draft", None)
    st.session_state.pop("pinned", None)
    selection.choose(new)


def _command(run: Run, name: str, *arguments: object) -> None:
    try:
        getattr(run, name)(*arguments).wait(OBEYED_SECONDS)
    except InputError as error:
        st.session_state["problem"] = str(error)


def _step(run: Run) -> None:
    if run.view.state == IDLE:  # a draft becomes a run with its first step
        REGISTRY.adopt(run)
        selection.choose(run)
        st.session_state.pop("draft", None)
    _command(run, "advance", st.session_state.get("step_size", 1))


def _pace(run: Run) -> None:
    _command(run, "set_pace", PACE_NAMES.get(st.session_state["pace"]))


def _continue(run: Run) -> None:
    _command(run, "continue_for", st.session_state["continue_steps"], st.session_state["continue_rate"])


def _show_problem() -> None:
    problem = st.session_state.pop("problem", None)
    if problem:
        st.error(problem)

"""The buttons that command a run: start, pause, step, stop, pace, continue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.controls.commands import MORE_STEPS, PACE_NAMES, continuing_rate, problem, send_command
from pages.settings.expected import expected
from pages.shared import ownership
from pages.shared.session import request
from pages.shared.wording import differences
from transformer.config import RunConfig
from transformer.recording.view import ENDED, FAILED, IDLE, PAUSED, QUEUED, TRAINING, RunView
from transformer.runs.any_run import AnyRun

_KEYS = """
| key | what it does |
|---|---|
| S | Start, Resume or New run |
| P | Pause after the current step |
| N | Step: train this many steps, then pause |
| X | Stop: end the run; it stays in the list and can be continued |
| G | type the step to show |
| F | fill the screen with the map and its heads |
"""


def buttons_row() -> DeltaGenerator:
    """Create the container for the row of buttons that command a run."""
    return st.container(key="controls", horizontal=True, vertical_alignment="center", gap="xsmall")


def controls(
    run: AnyRun,
    view: RunView,
    changes: dict[str, tuple[Any, Any]],
    config: RunConfig | None,
    row: DeltaGenerator,
    *,
    start: str = "",
    beside: Sequence[AnyRun] = (),
    key: str = "run_start",
) -> None:
    """Draw the buttons of a run or draft.

    Args:
        view: the state of the run from which the whole page is drawn.
        changes: settings that differ from the run's.
        config: the settings; None where they cannot be used.
        row: the container for the buttons.
        start: label of the button that starts a run; by default, it follows from owner and state of the run.
        beside: more runs for the buttons that command started runs; runs of other visitors are left out.
        key: key of the button that starts a run; "race_start" if the button opens another page.
    """
    state, edited, usable = view.state, bool(changes), config is not None
    runs = (run, *(one for one in beside if ownership.owns(one)))
    own = ownership.owns(run)
    active = own and state in (QUEUED, TRAINING, PAUSED)
    with row:
        # If settings were changed, the large button starts a new run; Pause or Resume comes second.
        if active and not edited:
            _continuing(runs, state, primary=True)
        else:
            _starting(state, start, key, own=own, enabled=usable)
            if active:
                _continuing(runs, state, primary=False)
        pace = _pace(runs, view) if own else None
        how_long, too_long = (
            expected(config, pace) if (state == IDLE or edited) and not beside else ("", False)
        )
        _menu(runs, view, own)
        first = state == IDLE and usable and not edited
        if own and (state in (TRAINING, PAUSED) or first):
            _button("Step", "run_step", "N", () if first else runs)
        if active:
            _button("Stop", "run_stop", "X", runs)
        if own and state in ENDED and state != FAILED:
            more = st.session_state.get("continue_steps", MORE_STEPS)
            to = f" to {view.step + more:,}" if isinstance(more, int) else ""
            st.button(f"Continue{to}", key="run_continue", on_click=send_command, args=("continue", *runs))
        if not own:
            st.caption("Somebody else’s run.", width="content")
    with st.sidebar, st.container(key="expected"):
        if too_long:
            st.warning(how_long, icon=":material/hourglass:")
        elif how_long and state == IDLE:
            st.caption(f"{how_long[0].upper()}{how_long[1:]}.")
    # Always draw the same containers, empty or not: adding or removing one would move the pictures below it
    # to another place in the page, and the browser would rebuild them.
    with st.container(key="problem"):
        problem()
        if view.unsaved:
            st.warning(view.unsaved, icon=":material/save:")
    with st.container(key="run_changes", horizontal=True, vertical_alignment="center"):
        if edited and state != IDLE:
            _changed_settings(run, state, changes, own)


def _starting(state: str, start: str, key: str, *, own: bool, enabled: bool) -> None:
    """Draw the large button that starts a run."""
    st.button(
        start or ("Start your own" if not own else "Start" if state == IDLE else "New run"),
        key=key,
        type="primary" if own else "secondary",
        icon=":material/play_arrow:",
        shortcut="S",
        disabled=not enabled,
        on_click=request,
        args=("start",),
    )


def _continuing(runs: Sequence[AnyRun], state: str, *, primary: bool) -> None:
    """Draw the button that pauses or resumes started runs."""
    paused = state == PAUSED
    st.button(
        "Resume" if paused else "Waiting" if state == QUEUED else "Pause",
        key="run_start" if paused and primary else "run_pause",
        type="primary" if primary else "secondary",
        icon=":material/play_arrow:" if paused else ":material/pause:",
        shortcut="S" if paused and primary else "P",
        help="Pause the run instead of waiting." if state == QUEUED else None,
        on_click=send_command,
        args=("resume" if paused else "pause", *runs),
    )


def _button(label: str, key: str, shortcut: str, runs: Sequence[AnyRun]) -> None:
    """Draw a small button that commands runs or, without runs, sends its command to the page as a request."""
    st.button(
        label,
        key=key,
        shortcut=shortcut,
        on_click=send_command if runs else request,
        args=(label.lower(), *runs),
    )


def _pace(runs: Sequence[AnyRun], view: RunView) -> float | None:
    """Draw the selectbox of the pace; return the pace in steps per second, or None for no limit."""
    if view.state != IDLE:  # the box shows the run's own pace, on every page that commands it
        st.session_state["pace"] = next(name for name, pace in PACE_NAMES.items() if pace == view.pace)
    name = st.selectbox(
        "Pace",
        list(PACE_NAMES),
        key="pace",
        bind="query-params",
        width=146,
        label_visibility="collapsed",
        on_change=None if view.state == IDLE else send_command,
        args=("pace", *runs),
        help="How fast the run trains. At 5 steps a second or less, every step is drawn. The losses are "
        "the same at any pace.",
    )
    pace = PACE_NAMES.get(name)
    if view.state == IDLE and pace != view.pace:
        # The pace was chosen for this draft or for an earlier one, or comes from the link.
        ownership.command(runs[0]).set_pace(pace)
    return pace


def _changed_settings(run: AnyRun, state: str, changes: dict[str, tuple[Any, Any]], own: bool) -> None:
    """Draw the settings that differ from the run's; for the owner of a run that goes on, also a button that
    applies a changed learning rate."""
    st.markdown(
        f":material/edit: **Changed:** {differences(changes)}. This run keeps its settings.", width="content"
    )
    if own and "learning_rate" in changes and state in (TRAINING, PAUSED):
        st.button(
            "Use the learning rate now",
            key="run_learning_rate",
            on_click=send_command,
            args=("learning_rate", run),
            help="Scale this run's schedule to the new rate from the next step.",
        )


def _menu(runs: Sequence[AnyRun], view: RunView, own: bool) -> None:
    """Draw the controls that are needed less often: steps at a time, continuing ended runs, the keys."""
    with st.popover("Options", key="run_menu"):
        if own and view.state not in ENDED:
            st.number_input(
                "Steps at a time",
                value=1,
                step=1,
                key="step_size",
                persist_state="session",
                help="Steps that Step takes.",
            )
        if own and view.state in ENDED and view.state != FAILED:
            st.number_input("More steps", value=MORE_STEPS, step=50, key="continue_steps")
            if len(runs) > 1:
                st.caption("Each run goes on at half of its own learning rate.")
            else:
                st.number_input(
                    "Rate",
                    value=continuing_rate(runs[0]),
                    step=0.0005,
                    format="%.4g",
                    key=f"continue_rate_{runs[0].id}",
                    help="The peak learning rate of these steps; warm-up and schedule of the run begin anew.",
                )
        st.markdown(_KEYS)

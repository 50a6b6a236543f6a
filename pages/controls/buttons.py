"""The buttons that command a run: start, pause, step, stop, pace, continue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.controls.commands import MORE_STEPS, PACE_NAMES, continuing_rate, problem, tell
from pages.settings.expected import expected
from pages.shared import ownership
from pages.shared.session import ask
from pages.shared.wording import differences
from transformer.config import RunConfig
from transformer.recording.view import ENDED, FAILED, IDLE, PAUSED, QUEUED, TRAINING, RunView
from transformer.runs.watched import Watched

_KEYS = """
| key | what it does |
|---|---|
| S | Start, Resume or New run |
| P | Pause after the current step |
| N | Step: train this many steps, then pause |
| X | Stop: end the run; it stays in the list and can be continued |
| F | fill the screen with the map and its heads |
"""


def buttons_row() -> DeltaGenerator:
    """The row of buttons that command a run."""
    return st.container(key="controls", horizontal=True, vertical_alignment="center", gap="xsmall")


def controls(
    run: Watched,
    view: RunView,
    changes: dict[str, tuple[Any, Any]],
    config: RunConfig | None,
    row: DeltaGenerator,
    *,
    start: str = "",
    beside: Sequence[Watched] = (),
    key: str = "run_start",
) -> None:
    """Draw the buttons of a run or draft.

    Args:
        view: the look at the run that the whole page is drawn from.
        changes: settings that differ from the run's.
        config: the settings; None where they cannot be used.
        row: where the buttons stand.
        start: label of the large button where it trains a run of other settings than the page's.
        beside: runs that obey the same buttons, as far as they are this visitor's.
        key: of the large button; "race_start" where it leads to another page.
    """
    state, edited, usable = view.state, bool(changes), config is not None
    runs = (run, *(one for one in beside if ownership.owns(one)))
    own = ownership.owns(run)
    active = own and state in (QUEUED, TRAINING, PAUSED)
    with row:
        # Settings that were changed take the large button: the run's own button stands behind it then.
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
        _menu(run, view, own)
        first = state == IDLE and usable and not edited
        if own and (state in (TRAINING, PAUSED) or first):
            _button("Step", "run_step", "skip_next", "N", () if first else runs)
        if active:
            _button("Stop", "run_stop", "stop", "X", runs)
        if own and state in ENDED and state != FAILED:
            st.button("Continue", key="run_continue", on_click=tell, args=("continue", *runs))
        if not own:
            st.caption("You watch this run.", width="content")
    with st.sidebar, st.container(key="expected"):
        if too_long:
            st.warning(how_long, icon=":material/hourglass:")
        elif how_long and state == IDLE:
            st.caption(f"{how_long[0].upper()}{how_long[1:]}.")
    # Always the same containers, empty or not: one that came and went would move the pictures below it to
    # another place in the page, where the browser would build them anew.
    with st.container(key="problem"):
        problem()
        if view.unsaved:
            st.warning(view.unsaved, icon=":material/save:")
    with st.container(key="run_changes", horizontal=True, vertical_alignment="center"):
        if edited and state != IDLE:
            _changed_settings(run, state, changes, own)


def _starting(state: str, start: str, key: str, *, own: bool, enabled: bool) -> None:
    """Draw the large button that begins a run."""
    st.button(
        start or ("Start your own" if not own else "Start" if state == IDLE else "New run"),
        key=key,
        type="primary" if own else "secondary",
        icon=":material/play_arrow:",
        shortcut="S",
        disabled=not enabled,
        on_click=ask,
        args=("start",),
    )


def _continuing(runs: Sequence[Watched], state: str, *, primary: bool) -> None:
    """Draw the button that pauses or resumes runs that have begun."""
    paused = state == PAUSED
    st.button(
        "Resume" if paused else "Waiting" if state == QUEUED else "Pause",
        key="run_start" if paused and primary else "run_pause",
        type="primary" if primary else "secondary",
        icon=":material/play_arrow:" if paused else ":material/pause:",
        shortcut="S" if paused and primary else "P",
        help="Pause the run instead of waiting." if state == QUEUED else None,
        on_click=tell,
        args=("resume" if paused else "pause", *runs),
    )


def _button(label: str, key: str, icon: str, shortcut: str, runs: Sequence[Watched]) -> None:
    """Draw a small button that commands runs; where there are none, the page, which begins one."""
    st.button(
        label,  # for screen readers
        key=key,
        icon=f":material/{icon}:",
        shortcut=shortcut,
        help=label,
        on_click=tell if runs else ask,
        args=(label.lower(), *runs),
    )


def _pace(runs: Sequence[Watched], view: RunView) -> float | None:
    """Draw the selectbox of the pace; returns it in steps per second, or None for full pace."""
    if view.state != IDLE:  # the box shows the run's own pace, on every page that commands it
        st.session_state["pace"] = next(name for name, pace in PACE_NAMES.items() if pace == view.pace)
    name = st.selectbox(
        "Pace",
        list(PACE_NAMES),
        key="pace",
        bind="query-params",
        width=104,
        label_visibility="collapsed",
        on_change=None if view.state == IDLE else tell,
        args=("pace", *runs),
        help="How fast the run trains. At 5 steps a second or less, every step is drawn. The losses are "
        "the same at any pace.",
    )
    pace = PACE_NAMES.get(name)
    if view.state == IDLE and pace != view.pace:
        # From the link, or from before the model was made anew.
        ownership.command(runs[0]).set_pace(pace)
    return pace


def _changed_settings(run: Watched, state: str, changes: dict[str, tuple[Any, Any]], own: bool) -> None:
    """The settings that differ from the run on the screen, and how to use or reset them."""
    st.markdown(
        f":material/edit: **Changed:** {differences(changes)}. This run keeps its settings.", width="content"
    )
    if own and "learning_rate" in changes and state in (TRAINING, PAUSED):
        st.button(
            "Use the learning rate now",
            key="run_learning_rate",
            on_click=tell,
            args=("learning_rate", run),
            help="Scale this run's schedule to the new rate from the next step.",
        )


def _menu(run: Watched, view: RunView, own: bool) -> None:
    """Controls that are needed less often: steps at a time, training on after the end, the keys."""
    with st.popover("", icon=":material/more_horiz:", help="More", key="run_menu"):
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
            st.number_input(
                "Rate",
                value=continuing_rate(run),
                step=0.0005,
                format="%.4g",
                key="continue_rate",
                help="The new learning rate: warmed up to this value, then lowered to zero.",
            )
        st.markdown(_KEYS)

"""Commands to runs: buttons control a started run; the page starts a run with the current settings."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager

import streamlit as st

from pages.runs import drafts
from pages.shared import ownership, selection
from pages.shared.plain import show_error
from pages.shared.session import session, take_requests
from pages.shared.wording import in_words
from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.recording.view import ENDED, IDLE, PACES
from transformer.runs.any_run import AnyRun
from transformer.runs.registry import REGISTRY
from transformer.runs.run import Run

PACE_NAMES = {"as fast as it can" if pace is None else f"{pace:g} steps/s": pace for pace in PACES}
OBEYED_SECONDS = 0.6
"""Longest wait for a command, so that the page shows its effect; runs obey commands between two steps."""
INTERVENTION_SECONDS = 2.0
"""The same for a command that changes interventions: the run first computes the frames of pending steps."""

MORE_STEPS = 100
"""Default number of steps for which an ended run continues."""


def await_effect(answer: Future[None], seconds: float = OBEYED_SECONDS) -> None:
    """Wait at most `seconds` for a command. Raises InputError if the run refuses it within this time."""
    wait([answer], seconds)
    if answer.done() and not answer.cancelled() and isinstance(error := answer.exception(), InputError):
        raise error


@contextmanager
def store_error() -> Iterator[None]:
    """Store an InputError raised in this context as the session's problem, which `problem` shows."""
    try:
        yield
    except InputError as error:
        session.problem = str(error)


def send_command(asked: str, *runs: AnyRun) -> None:
    """Callback: send a command to started runs; an error is stored in the session.

    Not in the script of the page, which the next click interrupts: that click may open another page.
    """
    session.problem = session.word_problem = None
    with store_error():
        answers = [_tell(asked, ownership.command(run)) for run in runs]  # send to all runs before waiting
        for answer in filter(None, answers):
            await_effect(answer)


def _tell(asked: str, run: Run) -> Future[None] | None:
    """Send a command to one run; return the future to wait for, if there is one. Raises InputError."""
    of_box = st.session_state.get
    if asked == "step":
        _step(run)
    if asked in ("pause", "resume", "stop"):
        answer: Future[None] = getattr(run, asked)()
        return answer
    if asked == "pace" and (pace := of_box("pace")) in PACE_NAMES:  # else the page has been left
        return run.set_pace(PACE_NAMES[pace])
    if asked == "learning_rate":
        return run.set_learning_rate(of_box("learning_rate"))
    if asked == "continue":
        rate = of_box(f"continue_rate_{run.id}", continuing_rate(run))
        return REGISTRY.continue_for(run, of_box("continue_steps"), rate)
    return None


def continuing_rate(run: AnyRun) -> float:
    """Default peak learning rate with which an ended run continues: half of the configured one."""
    return run.config.train.learning_rate / 2


def check_train_on(run: Run) -> None:
    """Refuse, before anything is changed, what `train_on` would refuse. Raises InputError."""
    REGISTRY.admit(run.visitor, run)
    run.check_continuing(MORE_STEPS, continuing_rate(run))


def train_on(run: Run) -> None:
    """Continue an ended run with the default steps and learning rate. Raises InputError."""
    await_effect(REGISTRY.continue_for(run, MORE_STEPS, continuing_rate(run)))


def start_if_asked(run: AnyRun, config: RunConfig | None, *, edited: bool) -> AnyRun:
    """Start a run if Start was pressed since the page was last drawn, or Step while it shows a draft.

    The page does this, because a callback knows only the settings as last drawn.

    Args:
        run: the run or draft on the screen.
        config: the settings as they are now; None where they cannot be used.
        edited: whether these settings differ from the run's.

    Returns:
        The run to show from now on: also one whose start interrupted the page before it was shown.
    """
    for asked, _ in take_requests("start", "step"):
        with store_error():
            if asked == "step":
                _step(ownership.command(run))
            elif config is not None and (
                edited or run.view.state in (IDLE, *ENDED) or not ownership.owns(run)
            ):
                run, edited = _start(run, config, edited), False
    begun = REGISTRY.get(session.draft)
    if begun is not None and begun.view.state != IDLE:
        with store_error():
            return _keep(ownership.command(begun))
    return run


def _step(run: Run) -> None:
    """Take as many steps as the box says. Raises InputError.

    The request is removed before the command is sent: an interrupted page must not send it twice.
    """
    steps = st.session_state.get("step_size")
    session.requests.pop("step", None)
    REGISTRY.admit(run.visitor, run)
    await_effect(run.advance(steps))
    if steps == 1:
        run.wait(OBEYED_SECONDS)  # usually short; keeps the buttons from flickering


def problem() -> None:
    """Show why the last command failed, until the next command."""
    if session.problem:
        show_error(in_words(session.problem))


def _start(run: AnyRun, config: RunConfig, edited: bool) -> Run:
    """Train the visitor's draft as it is, or a new draft with the settings in `config`. Raises InputError."""
    watched, before = run, None
    if edited or run.view.state != IDLE or not ownership.owns(run):
        REGISTRY.admit(session.visitor.name)  # refuse before a model is built
        watched, before = drafts.new_draft(config, run), run.id
    new = ownership.command(watched)
    new.set_pace(PACE_NAMES.get(st.session_state.get("pace")))
    session.draft = new.id  # `start_if_asked` finds the run here if this page is interrupted
    session.requests.pop("start", None)
    REGISTRY.start(new, after=before)
    return _keep(new)


def _keep(run: Run) -> Run:
    """Turn a draft that has started into a run, and show it. Raises InputError."""
    REGISTRY.adopt(run)
    selection.choose(run)
    if session.draft == run.id:
        session.draft = None
        selection.look_at(None)  # a run that was just started is shown live
    return run

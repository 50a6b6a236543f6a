"""Commands to a run: buttons control one that has begun; the page starts one with the current settings."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager

import streamlit as st

from pages.runs import drafts
from pages.shared import ownership, selection
from pages.shared.plain import refuse
from pages.shared.session import session, take
from pages.shared.wording import in_words
from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.recording.view import ENDED, IDLE, PACES
from transformer.runs.registry import REGISTRY
from transformer.runs.run import Run
from transformer.runs.watched import Watched

PACE_NAMES = {"full pace" if pace is None else f"{pace:g} steps/s": pace for pace in PACES}
OBEYED_SECONDS = 0.6
"""A command is obeyed between two steps; the page waits this long for it at most, to show its effect."""
TAKEN_AWAY_SECONDS = 2.0
"""The same where something is taken away from the model: pending steps are developed first."""

MORE_STEPS = 100
"""Steps that an ended run trains on, unless other numbers are typed."""


def await_effect(answer: Future[None], seconds: float = OBEYED_SECONDS) -> None:
    """Wait at most `seconds` for a command. Raises InputError if the run refuses it."""
    wait([answer], seconds)
    if answer.done() and not answer.cancelled() and isinstance(error := answer.exception(), InputError):
        raise error


@contextmanager
def noting() -> Iterator[None]:
    """Note why what is asked inside could not be done; `problem` shows it."""
    try:
        yield
    except InputError as error:
        session.problem = str(error)


def tell(asked: str, *runs: Watched) -> None:
    """Callback: tell runs that have begun what their owner asks.

    Streamlit interrupts the script of a page for the next click, which may lead to another page, but never a
    callback.
    """
    session.problem = session.word_problem = None
    with noting():
        answers = [_tell(asked, ownership.command(run)) for run in runs]  # to all, before any is waited for
        for answer in filter(None, answers):
            await_effect(answer)


def _tell(asked: str, run: Run) -> Future[None] | None:
    """Returns the answer to wait for, if there is one. Raises InputError."""
    of_box = st.session_state.get
    if asked == "step":
        _step(run)
    if asked in ("pause", "resume", "stop"):
        answer: Future[None] = getattr(run, asked)()
        return answer
    if asked == "pace" and (pace := of_box("pace")) in PACE_NAMES:  # or else its page has been left
        return run.set_pace(PACE_NAMES[pace])
    if asked == "learning_rate":
        return run.set_learning_rate(of_box("learning_rate"))
    if asked == "continue":
        steps, rate = of_box("continue_steps"), of_box("continue_rate")
        return REGISTRY.continue_for(run, steps, rate)
    return None


def continuing_rate(run: Watched) -> float:
    """The highest learning rate of an ended run that trains on, unless another is typed."""
    return run.config.train.learning_rate / 2


def train_on(run: Run) -> None:
    """Let an ended run train on. Raises InputError."""
    await_effect(REGISTRY.continue_for(run, MORE_STEPS, continuing_rate(run)))


def start_if_asked(run: Watched, config: RunConfig | None, *, edited: bool) -> Watched:
    """Let a run begin if Start was pressed since the last run of the page, or Step before there is one.

    Done by the page and not by a callback, which would only know the settings as last drawn.

    Args:
        run: the run or draft on the screen.
        config: the settings as they are now; None where they cannot be used.
        edited: whether they differ from the run's.

    Returns:
        The run to show from now on.
    """
    for asked, _ in take("start", "step"):
        with noting():
            if asked == "step":
                _step(ownership.command(run))
            elif config is not None and (
                edited or run.view.state in (IDLE, *ENDED) or not ownership.owns(run)
            ):
                run, edited = _start(run, config, edited), False
    begun = REGISTRY.get(session.draft)
    if begun is not None and begun.view.state != IDLE:
        with noting():
            return _keep(ownership.command(begun))
    return run


def _step(run: Run) -> None:
    """Take as many steps as the box says.

    The request is removed before the command is sent: an interrupted page must not send it twice.
    """
    steps = st.session_state.get("step_size")
    session.asked.pop("step", None)
    REGISTRY.admit(run.visitor, run)
    await_effect(run.advance(steps))
    if steps == 1:
        run.wait(OBEYED_SECONDS)  # as a rule it is soon taken, and the buttons do not flicker


def problem() -> None:
    """Show why the last command could not be obeyed, until the next one is given."""
    if session.problem:
        refuse(in_words(session.problem))


def _start(run: Watched, config: RunConfig, edited: bool) -> Run:
    """Train the untrained model that is on the screen, or a new one beside the run that is."""
    watched, before = run, None
    if edited or run.view.state != IDLE or not ownership.owns(run):
        REGISTRY.admit(session.visitor.name)  # before a model is built for nothing
        watched, before = drafts.new_draft(config, run), run.id
    new = ownership.command(watched)
    new.set_pace(PACE_NAMES.get(st.session_state.get("pace")))
    session.draft = new.id  # `start_if_asked` finds the run here if this page is interrupted
    session.asked.pop("start", None)
    REGISTRY.start(new, after=before)
    return _keep(new)


def _keep(run: Run) -> Run:
    """A draft becomes a run with its first step."""
    REGISTRY.adopt(run)
    selection.choose(run)
    if session.draft == run.id:
        session.draft = None
        selection.look_at(None)  # a run that was just started is shown live
    return run

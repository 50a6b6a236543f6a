"""Obeying the visitor: what a button asked for is done with the settings and the run as they are now."""

from __future__ import annotations

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
COMMANDS = ("start", "step", "pause", "resume", "stop", "pace", "learning_rate", "continue")
OBEYED_SECONDS = 0.6
"""A command is obeyed between two steps; the page waits this long for it at most, to show its effect."""


def obey(run: Watched, config: RunConfig | None, *, edited: bool) -> Watched:
    """Do what has been asked since the last run of the page.

    Args:
        run: the run or draft on the screen.
        config: the settings as they are now; None where they cannot be used.
        edited: whether they differ from the run's.

    Returns:
        The run to show from now on.
    """
    for asked, _ in take(*COMMANDS):
        try:
            if asked != "start":
                run = _do(asked, ownership.command(run), config)
            elif config is not None and (
                edited or run.view.state in (IDLE, *ENDED) or not ownership.owns(run)
            ):
                run, edited = _start(run, config, edited), False
        except InputError as error:
            session.problem = str(error)
    return run


def _do(asked: str, run: Run, config: RunConfig | None) -> Run:
    """Do with a run what its owner asks. Raises InputError.

    A command given twice is another one: the session is read before it, and it leaves the inbox first.
    """
    of_box = {
        key: st.session_state.get(key) for key in ("step_size", "pace", "continue_steps", "continue_rate")
    }
    session.asked.pop(asked, None)
    if asked == "step":
        REGISTRY.admit(run.visitor, run)
        steps = of_box["step_size"]
        run.advance(steps).wait(OBEYED_SECONDS)
        if steps == 1:
            run.wait(OBEYED_SECONDS)  # as a rule it is soon taken: nobody sees the buttons change and back
        return _keep(run)
    if asked in ("pause", "resume", "stop"):
        getattr(run, asked)().wait(OBEYED_SECONDS)
    if asked == "pace":
        run.set_pace(PACE_NAMES.get(of_box["pace"])).wait(OBEYED_SECONDS)
    if asked == "learning_rate" and config is not None:
        run.set_learning_rate(config.train.learning_rate).wait(OBEYED_SECONDS)
    if asked == "continue":
        REGISTRY.continue_for(run, of_box["continue_steps"], of_box["continue_rate"]).wait(OBEYED_SECONDS)
    return run


def problem() -> None:
    """Show why the last command could not be obeyed, until the next one is given."""
    if session.problem:
        refuse(in_words(session.problem))


def _start(run: Watched, config: RunConfig, edited: bool) -> Run:
    """Train the untrained model that is on the screen, or a new one beside the run that is."""
    REGISTRY.admit(session.visitor.name)  # before a model is built for nothing
    watched, before = run, None
    if edited or run.view.state != IDLE or not ownership.owns(run):
        watched, before = drafts.new_draft(config, run), run.id
    new = ownership.command(watched)
    new.set_pace(PACE_NAMES.get(st.session_state.get("pace")))
    session.asked.pop("start", None)
    REGISTRY.start(new, after=before)
    return _keep(new)


def _keep(run: Run) -> Run:
    """A draft becomes a run with its first step."""
    REGISTRY.adopt(run)
    selection.choose(run)
    if session.draft == run.id:
        session.draft = None
        selection.look_at(None)  # whoever starts a run wants to see it
    return run

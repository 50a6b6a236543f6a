"""What an idle page shows: the untrained model of its settings, which Start trains, or a recording."""

from __future__ import annotations

from pages.runs import keyring
from pages.settings.presets import DEFAULT_PRESET, PRESETS
from pages.shared.session import session
from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.interventions import NOTHING
from transformer.recording.view import IDLE
from transformer.runs.demo import demo_run
from transformer.runs.registry import REGISTRY
from transformer.runs.watched import Watched
from transformer.storage.tokens import new_token
from transformer.tasks import completed, task_of

READY_SECONDS = 1.5
"""A new model is on the screen within this time at most; a large one comes later by itself."""


def draft(config: RunConfig | None = None, *, entry: str = "draft") -> Watched:
    """The untrained model of the present settings, made anew when they change; its words are kept.

    Args:
        config: None where the present model stays; if there is none, the default preset's is made.
        entry: name of the entry of the session that holds its id.
    """
    old = REGISTRY.get(getattr(session, entry))
    if old is not None and config in (None, old.config):
        return old
    if old is not None:
        REGISTRY.discard(old.id)
        session.tokens.pop(old.id, None)
    run = new_draft(config or PRESETS[DEFAULT_PRESET].config, old)
    setattr(session, entry, run.id)
    return run


def new_draft(config: RunConfig, old: Watched | None) -> Watched:
    """An untrained model with the words of the run that it replaces, as far as they may be asked."""
    words = None if old is None else _askable(old, config) or None
    token = new_token()
    run = REGISTRY.draft(config, words, visitor=session.visitor.name, token=token)
    keyring.hold(run.id, token)
    if old is not None:  # torch is loaded, so this is soon; meanwhile the pictures keep their place
        run.ready.wait(READY_SECONDS)
    return run


def _askable(old: Watched, config: RunConfig) -> tuple[str, ...]:
    """The words of a run that these settings accept; none where their task is another."""
    task = task_of(config)
    if task.name != old.task.name:
        return ()
    words = []
    for question in old.questions:
        try:
            words.append(task.question(question.text).text)
        except InputError:  # too long now, or of a word that is not there any more
            continue
    return tuple(words)


def exhibited(run: Watched) -> Watched:
    """The recording, as long as nothing has been done with an untrained model; or else the run itself.

    The model is built meanwhile, and whatever is pressed or typed is for it.
    """
    touched = run.view.state != IDLE or run.view.interventions != NOTHING
    if touched or run.id != session.draft:
        return run
    recording = demo_run()
    if recording is None or recording.config != completed(run.config):
        return run
    asked, recorded_words = ({one.text for one in some.questions} for some in (run, recording))
    return recording if recorded_words <= asked else run

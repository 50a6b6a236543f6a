"""What an idle page shows: the untrained model of its settings, which Start trains, or a recording."""

from __future__ import annotations

from pages.own_data.in_use import refuse_others
from pages.runs import keyring
from pages.settings.presets import DEFAULT_PRESET, PRESETS
from pages.shared.session import session
from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.recording.view import IDLE
from transformer.runs.any_run import AnyRun
from transformer.runs.demo import demo_run
from transformer.runs.registry import REGISTRY
from transformer.shared.interventions import NO_INTERVENTIONS
from transformer.storage.tokens import new_token
from transformer.tasks import resolved, task_of

READY_SECONDS = 1.5
"""Most seconds that a page waits for a draft that replaces another; a large model appears later by itself."""


def draft(config: RunConfig | None = None, *, entry: str = "draft") -> AnyRun:
    """Return the draft of these settings; if they changed, build a new one with the same words if possible.

    Args:
        config: the settings; None keeps the current draft, or else builds that of the default preset.
        entry: name of the session entry that holds the draft's id.

    Raises:
        InputError: the settings exceed the limits of the server.
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


def new_draft(config: RunConfig, old: AnyRun | None) -> AnyRun:
    """Build a draft with those words of the run `old` that the settings accept.

    Raises:
        InputError: the settings exceed the limits of the server, or use the uploads of another visitor.
    """
    refuse_others(config, old)
    words = None if old is None else _askable(old, config) or None
    token = new_token()
    run = REGISTRY.draft(config, words, visitor=session.visitor.name, token=token)
    keyring.accept_token(run.id, token)
    if old is not None:  # fast, because torch is loaded; the pictures keep their place until then
        run.ready.wait(READY_SECONDS)
    return run


def _askable(old: AnyRun, config: RunConfig) -> tuple[str, ...]:
    """The words of a run that these settings accept; none if the task differs."""
    task = task_of(config)
    if task.name != old.task.name:
        return ()
    words = []
    for question in old.questions:
        try:
            words.append(task.tracked(question.text).text)
        except InputError:  # too long now, or has a word that the task no longer has
            continue
    return tuple(words)


def recording_or_draft(run: AnyRun) -> AnyRun:
    """Return the server's recording in place of this session's untouched draft; otherwise return the run.

    The recording must have the same settings, and no words that the draft lacks. The draft is built
    meanwhile; all buttons and boxes act on the draft.
    """
    touched = run.view.state != IDLE or run.view.interventions != NO_INTERVENTIONS
    if touched or run.id != session.draft:
        return run
    recording = demo_run()
    if recording is None or recording.config != resolved(run.config):
        return run
    asked, recorded_words = ({question.text for question in some.questions} for some in (run, recording))
    return recording if recorded_words <= asked else run

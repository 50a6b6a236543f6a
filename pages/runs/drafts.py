"""Untrained models of the settings on the screen: what an idle page shows, and Start trains."""

from __future__ import annotations

from pages.runs import keyring
from pages.shared.session import session
from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.runs.registry import REGISTRY
from transformer.runs.watched import Watched
from transformer.storage.tokens import new_token
from transformer.tasks import task_of

READY_SECONDS = 1.5
"""A new model is on the screen within this time at most; a large one comes later by itself."""


def draft(config: RunConfig | None, *, keep: bool = False, entry: str = "draft") -> Watched | None:
    """The untrained model of the present settings, made anew when they change; its words are kept.

    Args:
        config: None where the settings cannot be used: then the present model stays.
        keep: whether to keep a present model even if its settings differ.
        entry: name of the entry of the session that holds its id.
    """
    old = REGISTRY.get(getattr(session, entry))
    if config is None or (old is not None and (keep or old.config == config)):
        run = old
    else:
        if old is not None:
            REGISTRY.discard(old.id)
            session.tokens.pop(old.id, None)
        run = new_draft(config, old)
        setattr(session, entry, run.id)
    return run


def new_draft(config: RunConfig, old: Watched | None) -> Watched:
    """An untrained model with the words of the run that it replaces, as far as they may be asked."""
    words = None if old is None else _askable(old, config) or None
    token = new_token()
    run = REGISTRY.draft(config, words, visitor=session.visitor.name, token=token)
    keyring.hold(run.id, token)
    if old is None:
        return run
    run.ready.wait(READY_SECONDS)  # torch is loaded, so this is soon; meanwhile the pictures keep their place
    return run


def _askable(old: Watched, config: RunConfig) -> tuple[str, ...]:
    """The words of a run that these settings accept; none where their task is another."""
    if task_of(config).name != old.task.name:
        return ()
    words = []
    for question in old.questions:
        try:
            words.append(task_of(config).question(question.text).text)
        except InputError:  # too long now, or of a word that is not there any more
            continue
    return tuple(words)

"""Runs that a visitor knows: their own, those that they opened, and those beside which these were started."""

from __future__ import annotations

from collections.abc import Iterator

from pages.runs import keyring
from pages.shared.session import session
from transformer.recording.view import RunFacts
from transformer.runs.registry import REGISTRY
from transformer.runs.watched import Watched


def parent_of(view: RunFacts) -> RunFacts | None:
    """The run that this one was started beside, where this visitor may see it.

    The owner of a run may see that one too. Others see it only if the owner's link names it.
    """
    if view.after is None:
        return None
    started_here = REGISTRY.owners.is_owner(view.id, keyring.token_of(view.id))
    if not started_here and view.after not in session.known_runs:
        return None
    return REGISTRY.glimpse(view.after)


def parents(view: RunFacts) -> Iterator[RunFacts]:
    """The run that this one was started beside, the one before that, and so on, as far as seen."""
    while (parent := parent_of(view)) is not None:
        yield (view := parent)


def known_runs(run: Watched | None) -> Iterator[RunFacts]:
    """Runs that this visitor has started or opened, or beside which they started one; newest first.

    Other visitors' runs are not listed: a run is known by its link.
    """
    ids = session.known_runs
    ids[:0] = [parent.id for parent in parents(run.view) if parent.id not in ids][::-1] if run else []
    every = [*(id_ for id_ in keyring.own_runs() if id_ not in ids), *ids]
    return (found for id_ in reversed(every) if (found := REGISTRY.glimpse(id_)) is not None)

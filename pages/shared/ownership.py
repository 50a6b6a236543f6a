"""Ownership of runs: what this visitor may do with a run."""

from __future__ import annotations

from pages.runs import keyring
from pages.shared.session import session
from transformer.runs.any_run import AnyRun
from transformer.runs.registry import REGISTRY
from transformer.runs.run import Run


def owns(run: AnyRun) -> bool:
    """Whether this visitor may command a run; never true of a run that is trained elsewhere or replayed."""
    return isinstance(run, Run) and REGISTRY.owners.is_owner(run.id, keyring.token_of(run.id))


def command(run: AnyRun) -> Run:
    """Return the run as one that can be commanded.

    Raises:
        InputError: the run is another visitor's, or trained elsewhere.
    """
    commanded = REGISTRY.control(run.id, keyring.token_of(run.id))
    commanded.visitor = commanded.visitor or session.visitor.name  # a run from disk counts for this visitor
    return commanded


def only_watches() -> bool:
    """Whether this visitor can only watch the run on the screen."""
    id_ = session.run
    return id_ is not None and not REGISTRY.owners.is_owner(id_, keyring.token_of(id_))


def may_follow() -> bool:
    """Whether the run on the screen has another owner to follow; a run of another process has no owner."""
    return only_watches() and REGISTRY.owners.is_owned(session.run)

"""Ownership of runs: whether this visitor may command a run."""

from __future__ import annotations

from pages.runs import keyring
from pages.shared.session import session
from transformer.runs.any_run import AnyRun
from transformer.runs.registry import REGISTRY
from transformer.runs.run import Run


def owns(run: AnyRun) -> bool:
    """Whether this visitor may command a run; False for a run that is only read from its file."""
    return isinstance(run, Run) and REGISTRY.owners.is_owner(run.id, keyring.token_of(run.id))


def is_anothers(id_: str) -> bool:
    """Whether a run has another owner than this visitor; runs that are kept under a name have none."""
    owners = REGISTRY.owners
    return owners.is_owned(id_) and not owners.is_owner(id_, keyring.token_of(id_))


def command(run: AnyRun) -> Run:
    """Return the run as one that can be commanded.

    Raises:
        InputError: the run is another visitor's, is only read from its file, or is no longer here.
    """
    commanded = REGISTRY.control(run.id, keyring.token_of(run.id))
    commanded.visitor = commanded.visitor or session.visitor.name  # a run from disk counts for this visitor
    return commanded


def only_watches() -> bool:
    """Whether a run is chosen and this visitor lacks its token; False while only a draft is shown."""
    id_ = session.run
    return id_ is not None and not REGISTRY.owners.is_owner(id_, keyring.token_of(id_))


def may_follow() -> bool:
    """Whether the chosen run has another owner to follow."""
    return session.run is not None and is_anothers(session.run)

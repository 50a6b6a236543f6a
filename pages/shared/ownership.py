"""Whose run it is: what this visitor may do with it."""

from __future__ import annotations

from pages.runs import keyring
from pages.shared.session import session
from transformer.runs.registry import REGISTRY
from transformer.runs.run import Run
from transformer.runs.watched import Watched


def owns(run: Watched) -> bool:
    """Whether this visitor commands a run: never one that is trained elsewhere, or replayed."""
    return isinstance(run, Run) and REGISTRY.owners.is_owner(run.id, keyring.token_of(run.id))


def command(run: Watched) -> Run:
    """A run to command.

    Raises:
        InputError: it is another visitor's, or trained elsewhere.
    """
    commanded = REGISTRY.control(run.id, keyring.token_of(run.id))
    commanded.visitor = commanded.visitor or session.visitor.name  # one from disk counts as whose it is now
    return commanded


def only_watches() -> bool:
    """Whether the run on the screen is not this visitor's to command."""
    id_ = session.run
    return id_ is not None and not REGISTRY.owners.is_owner(id_, keyring.token_of(id_))


def may_follow() -> bool:
    """Whether another visitor owns it, whose step can be shown; a run of another process has no owner."""
    return only_watches() and REGISTRY.owners.is_owned(session.run)

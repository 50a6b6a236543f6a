"""The owners of runs, and the step and the story that each owner shows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from transformer.storage.tokens import digest_of, is_token_of, new_token


class Visitor:
    """An open page. Only its session refers to it, so that it is forgotten once the page closes."""

    def __init__(self) -> None:
        self.name = new_token()
        """Unguessable name under which the visitor's runs are counted."""


class Owners:
    """The token of each run, as its digest. Safe to use from any thread.

    Args:
        kept: returns the digest of a run that is not in memory; None if there is none.
    """

    def __init__(self, kept: Callable[[str], str | None]) -> None:
        self._kept = kept
        self._lock = threading.Lock()  # for the sets of pages: reading one fails while it grows
        self._digests: dict[str, str | None] = {}  # by id of the run; None if there is no token
        self._pages: dict[str, WeakSet[Visitor]] = {}  # open pages that may command it, by id
        self._shown: dict[str, int | None] = {}  # step that its owner shows, by id
        self._presentations: dict[str, dict[str, Any]] = {}  # story that its owner presents with it, by id

    def set_token(self, id_: str, token: str) -> None:
        """Set the token that commands a run; with an empty token the run cannot be commanded."""
        self._digests[id_] = digest_of(token or new_token())

    def recall(self, id_: str) -> None:
        """Keep the digest of a run from disk in memory, because every refresh asks for it."""
        self._digests.setdefault(id_, self._kept(id_))

    def forget(self, id_: str) -> None:
        """Forget everything about a run that leaves memory."""
        for table in (self._digests, self._pages, self._shown, self._presentations):
            table.pop(id_, None)

    def digest(self, id_: str) -> str | None:
        """The digest of the token that commands a run; None if there is none."""
        try:
            return self._digests[id_]
        except KeyError:
            return self._kept(id_)

    def is_owner(self, id_: str, token: str) -> bool:
        """Whether this token commands that run."""
        return is_token_of(token, self.digest(id_))

    def is_owned(self, id_: str) -> bool:
        """Whether that run has a token."""
        return self.digest(id_) is not None

    def enter(self, id_: str, token: str, visitor: Visitor) -> bool:
        """Register the page of a visitor if this token commands the run; return whether it does."""
        if not self.is_owner(id_, token):
            return False
        with self._lock:
            self._pages.setdefault(id_, WeakSet()).add(visitor)
        return True

    def knows(self, name: str, id_: str) -> bool:
        """Whether an open page of the visitor of this name has the token of a run."""
        with self._lock:
            return any(visitor.name == name for visitor in self._pages.get(id_, ()))

    def show(self, id_: str, token: str, step: int | None) -> None:
        """Set the step that the owner shows to viewers who follow; None means LIVE. Ignores another token."""
        if self.is_owner(id_, token):
            self._shown[id_] = step

    def shown(self, id_: str) -> int | None:
        """The step that a run's owner shows; None if the owner is at LIVE, or has not shown one."""
        return self._shown.get(id_)

    def present(self, id_: str, token: str, presentation: dict[str, Any] | None) -> None:
        """Set the story and beat that the owner of a run presents; None ends it. Ignores another token."""
        if not self.is_owner(id_, token):
            return
        if presentation is None:
            self._presentations.pop(id_, None)
        else:
            self._presentations[id_] = presentation

    def presentation(self, id_: str) -> dict[str, Any] | None:
        """The story that is presented with a run and its current beat; None where there is none."""
        return self._presentations.get(id_)

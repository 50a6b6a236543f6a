"""One queue of runs for a server: the first few train, the others wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from transformer.recording.view import PAUSED, STOPPED
from transformer.runs.limits import Limits

WATCHED_SECONDS = 3.0
"""Seconds after its last look for which a page counts as watching: a page looks again within two."""


class Queue:
    """First come, first served. Safe to use from any thread.

    Args:
        slots: how many may train at once.
    """

    def __init__(self, slots: int = 1) -> None:
        self.slots = slots
        self._lock = threading.Lock()
        self._line: dict[object, dict[Lease, Callable[[], object]]] = {}
        """Parties in the order in which they came: the first few train, and the others wait to be called. A
        party is one lease, or two that take turns and share one slot."""

    def take(self, lease: Lease, called: Callable[[], object], party: object = None) -> bool:
        """Stand in line, unless one does already.

        Args:
            party: with whose other members it shares one slot; by default it is alone.
            called: called in any thread when a waiting run may ask again.

        Returns:
            Whether one may train.
        """
        with self._lock:
            party = self._party_of(lease) or party or lease
            self._line.setdefault(party, {})[lease] = called
            return list(self._line).index(party) < self.slots

    def leave(self, lease: Lease) -> None:
        """Give the slot back, or wait no longer; the next run is called."""
        with self._lock:
            party = self._party_of(lease)
            if party is None:
                return
            del self._line[party][lease]
            if self._line[party]:
                return
            training = list(self._line)[: self.slots]
            del self._line[party]
            next_ones = [self._line[one] for one in list(self._line)[: self.slots] if one not in training]
            called = [call for members in next_ones for call in members.values()]
        for call in called:
            call()

    def place(self, lease: Lease) -> tuple[int, int] | None:
        """(place, of how many that wait); None for a run that trains, or is not in the queue."""
        with self._lock:
            waiting, party = list(self._line)[self.slots :], self._party_of(lease)
        return (waiting.index(party) + 1, len(waiting)) if party in waiting else None

    def _party_of(self, lease: Lease) -> object:
        """The party with which a lease stands in line; None where it does not."""
        return next((party for party, members in self._line.items() if lease in members), None)

    @property
    def empty(self) -> bool:
        """Whether no run trains or waits to."""
        with self._lock:
            return not self._line


class Lease:
    """The share of a server that one run may take. Without limits it may take everything, for ever.

    Args:
        queue: shared with the other runs.
        limits: of the server.
    """

    def __init__(self, queue: Queue | None = None, limits: Limits | None = None) -> None:
        self.limits = limits
        self._queue = queue or Queue()
        self.party: object = object()
        """The unit that waits for a slot: this lease alone, or two together."""
        self.taken_at: float | None = None
        """When it was given its slot; None where it has none."""
        self.seen_at = time.monotonic()
        """When the run was last viewed, or given a command."""

    def take(self, called: Callable[[], object]) -> bool:
        """Whether there is a slot; if not, the run stands in line, and is called when it should ask again."""
        taken = self._queue.take(self, called, self.party)
        if taken and self.taken_at is None:
            self.taken_at = time.monotonic()
        return taken

    def share(self, other: Lease) -> None:
        """Take one slot together with another lease from the next time on; a waiting run keeps its place."""
        other.party = self.party

    def leave(self) -> None:
        """Give the slot back, or the place in line."""
        self._queue.leave(self)
        self.taken_at = None

    @property
    def place(self) -> tuple[int, int] | None:
        """(place in line, of how many); None for a run that does not wait."""
        return self._queue.place(self)

    def quiet(self) -> bool:
        """Whether no run of this server trains, or waits to."""
        return self._queue.empty

    def look(self) -> None:
        """Note that the run is viewed."""
        self.seen_at = time.monotonic()

    @property
    def watched(self) -> bool:
        """Whether the run has viewers now; without a server it has none."""
        return self.limits is not None and time.monotonic() - self.seen_at < WATCHED_SECONDS

    @property
    def unseen(self) -> bool:
        """Whether the run was not viewed for so long that it may be put aside."""
        return self.limits is not None and _minutes_since(self.seen_at) >= self.limits.unseen_minutes

    @property
    def forgotten(self) -> bool:
        """Whether the run was not viewed for so long that memory need not hold it."""
        return self.limits is not None and _minutes_since(self.seen_at) >= self.limits.archive_minutes

    def over(self) -> tuple[str, str] | None:
        """The state to which a training run has to go now, and why; None as long as it may go on."""
        if self.limits is None or self.taken_at is None:
            return None
        if _minutes_since(self.taken_at) >= self.limits.minutes:
            limit = _minutes(self.limits.minutes)
            return STOPPED, f"this server limits a run to {limit} at a time. Press Continue to train on."
        if self.unseen:
            return PAUSED, f"no page has shown it for {_minutes(self.limits.unseen_minutes)}. Press Resume."
        return None


def _minutes_since(then: float) -> float:
    return (time.monotonic() - then) / 60


def _minutes(n: int) -> str:
    return "a minute" if n == 1 else f"{n:,} minutes"

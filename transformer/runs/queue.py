"""When a run may train: in the queue of a server, the first few train and the others wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from transformer.recording.view import PAUSED, STOPPED
from transformer.runs.limits import Limits

VIEWER_TIMEOUT_SECONDS = 3.0
"""Seconds for which a run counts as watched after it was viewed or given a command. While a page shows it, it
is viewed several times a second."""

ASLEEP_SECONDS = 300.0
"""If this many seconds pass between two steps, the machine is taken to have slept: they do not count."""


class Queue:
    """First come, first served. Safe to use from any thread.

    Args:
        slots: number of parties that may train at once; a party is a run, or the runs of a race.
    """

    def __init__(self, slots: int = 1) -> None:
        self.slots = slots
        self._lock = threading.Lock()
        self._line: dict[object, dict[object, Callable[[], object]]] = {}
        """Parties in order of arrival, each with its leases and their callbacks. The first `slots` of them
        train, and the others wait. A party is one lease, or several leases that share a slot."""

    def take(self, lease: object, called: Callable[[], object], party: object = None) -> bool:
        """Add a lease to the queue, unless it is in it already.

        Args:
            called: called when a slot may be free for a waiting lease, which should then call `take` again.
                It may be called from any thread.
            party: shares one slot; by default the lease alone. Ignored if the lease is in the queue already.

        Returns:
            Whether the lease has a slot, so that its run may train.
        """
        with self._lock:
            party = self._party_of(lease) or party or lease
            self._line.setdefault(party, {})[lease] = called
            return party in list(self._line)[: self.slots]

    def leave(self, lease: object) -> None:
        """Remove a lease from the queue."""
        with self._change():
            party = self._party_of(lease)
            if party is not None:
                del self._line[party][lease]
                if not self._line[party]:
                    del self._line[party]

    def join(self, lease: object, party: object) -> None:
        """Let a lease share the slot of another party, at the better of both places.

        Does nothing if the lease is not in the queue.
        """
        with self._change():
            before = self._party_of(lease)
            if before in (None, party):
                return
            members = {**self._line.get(party, {}), lease: self._line[before].pop(lease)}
            line: dict[object, dict[object, Callable[[], object]]] = {}
            for one, leases in self._line.items():
                if one in (before, party):
                    line[party] = members
                if leases and one != party:
                    line[one] = leases
            self._line = line

    def place(self, lease: object) -> tuple[int, int] | None:
        """(place, number of parties that wait), counted from 1; None if it trains or is not queued."""
        with self._lock:
            waiting, party = list(self._line)[self.slots :], self._party_of(lease)
        return (waiting.index(party) + 1, len(waiting)) if party in waiting else None

    def _party_of(self, lease: object) -> object:
        """The party of a lease in the queue; None if the lease is not in it."""
        return next((party for party, members in self._line.items() if lease in members), None)

    def _with_slot(self) -> dict[object, Callable[[], object]]:
        training = list(self._line.values())[: self.slots]
        return {lease: called for members in training for lease, called in members.items()}

    @contextmanager
    def _change(self) -> Iterator[None]:
        """Change the queue, then call the callbacks of the leases that have got a slot by that."""
        with self._lock:
            before = self._with_slot()
            yield
            callbacks = [called for lease, called in self._with_slot().items() if lease not in before]
        for called in callbacks:
            called()


class Lease:
    """The right of one run to use a server. Without limits, the run may train for any length of time.

    Args:
        queue: shared with the other runs; by default one for this run alone.
        limits: of the server; by default none.
    """

    def __init__(self, queue: Queue | None = None, limits: Limits | None = None) -> None:
        self.limits = limits
        self._queue = queue or Queue()
        self._party: object = self
        self.taken_at: float | None = None
        """When it was given its slot, by `time.monotonic`, sleep left out; None where it has none."""
        self._asked_at = time.monotonic()  # when `over` was last called, or the slot was given
        self.seen_at = time.monotonic()
        """When the run was last viewed or given a command, or else made, by `time.monotonic`."""

    def take(self, called: Callable[[], object]) -> bool:
        """Join the queue; return whether the run has a slot. If not, `called` signals when to ask again."""
        taken = self._queue.take(self, called, self._party)
        if taken and self.taken_at is None:
            self.taken_at = self._asked_at = time.monotonic()
        return taken

    def join(self, party: object) -> None:
        """Share one slot with all leases of this party from now on."""
        self._party = party
        self._queue.join(self, party)

    def leave(self) -> None:
        """Give the slot back, or the place in line."""
        self._queue.leave(self)
        self.taken_at = None

    @property
    def place(self) -> tuple[int, int] | None:
        """(place, number of parties that wait), counted from 1; None for a run that does not wait."""
        return self._queue.place(self)

    def look(self) -> None:
        """Note that the run is viewed."""
        self.seen_at = time.monotonic()

    @property
    def watched(self) -> bool:
        """Whether the run was viewed, or given a command, just now; without limits it counts as unwatched."""
        return self.limits is not None and time.monotonic() - self.seen_at < VIEWER_TIMEOUT_SECONDS

    @property
    def unseen(self) -> bool:
        """Whether the run has not been viewed for so long that its training may be paused."""
        return self.limits is not None and _minutes_since(self.seen_at) >= self.limits.unseen_minutes

    @property
    def forgotten(self) -> bool:
        """Whether the run has not been viewed for so long that it need not stay in memory."""
        return self.limits is not None and _minutes_since(self.seen_at) >= self.limits.archive_minutes

    def over(self) -> tuple[str, str] | None:
        """The state that a training run must change to now, and why; None as long as it may go on.

        To be called between two steps.
        """
        if self.limits is None or self.taken_at is None:
            return None
        now = time.monotonic()
        if (slept := now - self._asked_at) > ASLEEP_SECONDS:
            self.taken_at += slept
            self.seen_at = min(now, self.seen_at + slept)  # a page may have reported since
        self._asked_at = now
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

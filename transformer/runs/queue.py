"""When a run may train: in the queue of a server, where the first few train and the others wait, and in turns
with the other run of a race."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from transformer.recording.view import PAUSED, STOPPED, TRAINING
from transformer.runs.limits import Limits

if TYPE_CHECKING:
    from transformer.runs.runner import Runner

VIEWER_TIMEOUT_SECONDS = 3.0
"""Seconds for which a run counts as watched after a page last reported viewing it; a page that shows it
reports again within two."""


class Queue:
    """First come, first served. Safe to use from any thread.

    Args:
        slots: how many may train at once.
    """

    def __init__(self, slots: int = 1) -> None:
        self.slots = slots
        self._lock = threading.Lock()
        self._line: dict[object, dict[Lease, Callable[[], object]]] = {}
        """Parties in order of arrival, each with its leases and their callbacks. The first `slots` of them
        train, and the others wait. A party is one lease, or two leases that take turns in one slot."""

    def take(self, lease: Lease, called: Callable[[], object], party: object = None) -> bool:
        """Add a lease to the queue, unless it is in it already.

        Args:
            called: called when a slot may be free for a waiting lease, which should then call `take` again.
                It may be called from any thread.
            party: the party that the lease joins; all its members share one slot. By default the lease forms
                a party of its own. Ignored if the lease is in the queue already.

        Returns:
            Whether the lease has a slot, so that its run may train.
        """
        with self._lock:
            party = self._party_of(lease) or party or lease
            self._line.setdefault(party, {})[lease] = called
            return list(self._line).index(party) < self.slots

    def leave(self, lease: Lease) -> None:
        """Remove a lease from the queue. If that frees a slot, the callbacks of the next party are called."""
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
        """(place, number of parties that wait), counted from 1; None if it trains or is not queued."""
        with self._lock:
            waiting, party = list(self._line)[self.slots :], self._party_of(lease)
        return (waiting.index(party) + 1, len(waiting)) if party in waiting else None

    def _party_of(self, lease: Lease) -> object:
        """The party of a lease in the queue; None if the lease is not in it."""
        return next((party for party, members in self._line.items() if lease in members), None)

    @property
    def empty(self) -> bool:
        """Whether no run trains or waits to."""
        with self._lock:
            return not self._line


class Lease:
    """The right of one run to use a server. Without limits, the run may train for any length of time.

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
        """Join the queue; return whether the run has a slot. If not, `called` signals when to ask again."""
        taken = self._queue.take(self, called, self.party)
        if taken and self.taken_at is None:
            self.taken_at = time.monotonic()
        return taken

    def share(self, other: Lease) -> None:
        """Make another lease share a slot with this one the next time it enters the queue."""
        other.party = self.party

    def leave(self) -> None:
        """Give the slot back, or the place in line."""
        self._queue.leave(self)
        self.taken_at = None

    @property
    def place(self) -> tuple[int, int] | None:
        """(place, number of parties that wait), counted from 1; None for a run that does not wait."""
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
        """The state that a training run must change to now, and why; None as long as it may go on."""
        if self.limits is None or self.taken_at is None:
            return None
        if _minutes_since(self.taken_at) >= self.limits.minutes:
            limit = _minutes(self.limits.minutes)
            return STOPPED, f"this server limits a run to {limit} at a time. Press Continue to train on."
        if self.unseen:
            return PAUSED, f"no page has shown it for {_minutes(self.limits.unseen_minutes)}. Press Resume."
        return None


class Turns:
    """Lets two runs train in turns, so that neither gets ahead of the other.

    The run that is behind takes the next step; if neither is, the first run does. Both decide from the
    published views, so only one of two training runs may step at any time.
    """

    def __init__(self, first: Runner, second: Runner) -> None:
        self._runners = weakref.ref(first), weakref.ref(second)
        self._by_seconds = False

    @property
    def by_seconds(self) -> bool:
        """Whether the run behind is the one with less training time, instead of fewer steps."""
        return self._by_seconds

    @by_seconds.setter
    def by_seconds(self, by_seconds: bool) -> None:
        if by_seconds != self._by_seconds:
            self._by_seconds = by_seconds
            self.wake()  # the other run may step now

    def allow(self, runner: Runner) -> bool:
        """Whether this run may step now."""
        other = self._other(runner)
        if other is None or other.turns is not self or other.over or other.view.state != TRAINING:
            return True
        own, others = (one.view.seconds if self.by_seconds else one.view.step for one in (runner, other))
        return own < others or (own == others and self._runners[0]() is runner)

    def wake(self, *, but: Runner | None = None) -> None:
        """Make the runs check again whether they may step."""
        for runner in (one() for one in self._runners):
            if runner is not None and runner is not but and runner.turns is self:
                runner.wake()

    def _other(self, runner: Runner) -> Runner | None:
        first, second = (one() for one in self._runners)
        return second if runner is first else first


def _minutes_since(then: float) -> float:
    return (time.monotonic() - then) / 60


def _minutes(n: int) -> str:
    return "a minute" if n == 1 else f"{n:,} minutes"

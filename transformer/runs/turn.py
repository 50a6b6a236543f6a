"""One run among others on a server: it waits for a slot, and keeps it for a while if somebody looks."""

from __future__ import annotations

import time
from collections.abc import Callable

from transformer.runs.limits import Limits
from transformer.runs.slots import Slots
from transformer.runs.view import PAUSED, STOPPED


class Turn:
    """What one run may take. Without a server it may take everything, for ever.

    Args:
        slots: shared with the other runs.
        limits: of the server.
    """

    def __init__(self, slots: Slots | None = None, limits: Limits | None = None) -> None:
        self.limits = limits
        self._slots = slots or Slots(1)
        self._taken_at: float | None = None
        self.seen_at = time.monotonic()
        """When somebody last looked at the run, or asked something of it."""

    def take(self, called: Callable[[], object]) -> bool:
        """Whether there is a slot; if not, the run stands in line, and is called when it should ask again."""
        taken = self._slots.take(self, called)
        if taken and self._taken_at is None:
            self._taken_at = time.monotonic()
        return taken

    def leave(self) -> None:
        """Give the slot back, or the place in line."""
        self._slots.leave(self)
        self._taken_at = None

    @property
    def place(self) -> tuple[int, int] | None:
        """(place in line, of how many); None for a run that does not wait."""
        return self._slots.place(self)

    def quiet(self) -> bool:
        """Whether no run of this server trains, or waits to."""
        return self._slots.empty

    def look(self) -> None:
        """Somebody looks at the run."""
        self.seen_at = time.monotonic()

    @property
    def unseen(self) -> bool:
        """Whether nobody has looked for so long that the run may be put aside."""
        return self.limits is not None and _minutes_since(self.seen_at) >= self.limits.unseen_minutes

    @property
    def forgotten(self) -> bool:
        """Whether nobody has looked for so long that memory need not hold the run."""
        return self.limits is not None and _minutes_since(self.seen_at) >= self.limits.archive_minutes

    def over(self) -> tuple[str, str] | None:
        """The state to which a training run has to go now, and why; None as long as it may go on."""
        if self.limits is None or self._taken_at is None:
            return None
        if _minutes_since(self._taken_at) >= self.limits.minutes:
            limit = _minutes(self.limits.minutes)
            return STOPPED, f"on this server a run trains for {limit} at a stretch. Continue it if you like."
        if self.unseen:
            return PAUSED, f"nobody looked for {_minutes(self.limits.unseen_minutes)}. Press Resume."
        return None


def _minutes_since(then: float) -> float:
    return (time.monotonic() - then) / 60


def _minutes(n: int) -> str:
    return "a minute" if n == 1 else f"{n:,} minutes"

"""Who may work now, and who waits: a line of which the first few are served."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable


class Slots:
    """First come, first served. Safe to use from any thread; knows nothing of those who stand in line.

    Args:
        n: how many may work at once.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self._lock = threading.Lock()
        self._line: dict[Hashable, Callable[[], object]] = {}
        """In the order in which they came: the first `n` work, and each of the others waits to be called."""

    def take(self, who: Hashable, called: Callable[[], object]) -> bool:
        """Stand in line, unless one does already.

        Args:
            called: tells who waits, in any thread, that it is time to ask again.

        Returns:
            Whether one may work.
        """
        with self._lock:
            self._line.setdefault(who, called)
            return list(self._line).index(who) < self.n

    def leave(self, who: Hashable) -> None:
        """Give the slot back, or wait no longer; who was next is called."""
        with self._lock:
            if who not in self._line:
                return
            working = list(self._line)[: self.n]
            del self._line[who]
            called = [self._line[next_] for next_ in list(self._line)[: self.n] if next_ not in working]
        for call in called:
            call()

    @property
    def empty(self) -> bool:
        """Whether nobody works, and nobody waits to."""
        with self._lock:
            return not self._line

    def place(self, who: Hashable) -> tuple[int, int] | None:
        """(place, of how many that wait); None for who works, and for who is not here."""
        with self._lock:
            waiting = list(self._line)[self.n :]
        return (waiting.index(who) + 1, len(waiting)) if who in waiting else None

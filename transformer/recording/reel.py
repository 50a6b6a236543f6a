"""A film that thins its own past when it is full."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Generic, Protocol, TypeVar

from transformer.recording.shelf import Shelf

MOST = 1000
"""Things of one reel."""


class Recorded(Protocol):
    """What a reel can hold: of one step, of a known size, and able to go to disk."""

    @property
    def step(self) -> int:
        """When it was recorded."""

    @property
    def nbytes(self) -> int:
        """What it takes in memory now."""


T = TypeVar("T", bound=Recorded)


def nearest(kept: Sequence[T], step: int) -> T | None:
    """What was recorded nearest to a step; among equals the earlier."""
    return min(kept, key=lambda one: abs(one.step - step), default=None)


class Reel(Generic[T]):
    """Things recorded in order of step, within a limit of memory. Readers take `kept` and need no lock.

    When it is full, every second thing of the older half goes: those that lie closest to their neighbours,
    measured so that the beginning stays denser than what followed and no stretch is forgotten altogether.
    The first, the last and those of protected steps stay; where even these are too many, the oldest of them
    go to disk.

    Args:
        limit: bytes in memory. One single thing may exceed it: the newest is always at hand.
            Beyond `MOST` things it is full too: each holds more than its arrays.
        to_shelf: the same thing with its arrays on disk.
    """

    def __init__(self, limit: int, to_shelf: Callable[[T, Shelf], T]) -> None:
        self.kept: tuple[T, ...] = ()
        self._limit, self._to_shelf = limit, to_shelf
        self._shelf: Shelf | None = None

    def add(self, thing: T, protected: Set[int]) -> None:
        """Append something; one of the same step as the newest replaces it."""
        kept = list(self.kept)
        if kept and kept[-1].step == thing.step:
            kept.pop()
        kept.append(thing)
        if len(kept) > MOST or (len(kept) > 1 and sum(one.nbytes for one in kept) > self._limit):
            kept = self._fitted(kept, protected)
        self.kept = tuple(kept)

    def shelve_all(self, things: list[T]) -> list[T]:
        """All of them on disk. Those that the disk has no room for stay in memory."""
        try:
            self._shelf = self._shelf or Shelf()
            for i, thing in enumerate(things):
                if thing.nbytes:
                    things[i] = self._to_shelf(thing, self._shelf)
        except OSError:
            pass  # the disk is full: rather too much memory than a moment lost
        return things

    def _fitted(self, kept: list[T], protected: Set[int]) -> list[T]:
        sizes = {one.step: one.nbytes for one in kept}
        total = sum(sizes.values())
        half = max(3, len(kept) // 2)
        while total > self._limit or len(kept) > MOST:
            thinned = _thinned(kept, half, protected)
            if len(thinned) < len(kept):
                kept = thinned
                half = max(3, len(kept) // 2)
            elif half < len(kept):
                half = len(kept)  # the older half holds only what stays: thin the rest
            else:
                break
            total = sum(sizes[one.step] for one in kept)
        while total > self._limit:
            oldest = next((i for i, one in enumerate(kept[:-1]) if one.nbytes), None)
            if oldest is None:
                break
            total -= kept[oldest].nbytes
            kept[oldest] = self.shelve_all([kept[oldest]])[0]
            if kept[oldest].nbytes:
                break  # the disk is full
        return kept


def _thinned(things: list[T], half: int, protected: Set[int]) -> list[T]:
    """Without every second of the first `half` things: those go that are missed least."""
    kept = list(things)
    for _ in range(half // 2):
        free = [i for i in range(1, min(half, len(kept) - 1)) if kept[i].step not in protected]
        if not free:
            break
        # A gap at step 100 is missed as much as one of twice its steps at step 400.
        kept.pop(min(free, key=lambda i: (kept[i + 1].step - kept[i - 1].step) / kept[i].step ** 0.5))
        half -= 1
    return kept

"""The past of a run: its frames and, for fewer steps, its weights. Bounded in memory, however long it is."""

from __future__ import annotations

from transformer.recording.frame import Frame
from transformer.recording.reel import Reel
from transformer.recording.snapshot import Snapshot

MEMORY_LIMIT = 64 * 2**20
"""Bytes that one run keeps of its past in all."""
BESIDE = 28 * 2**20
"""Of these, what the table of its numbers, the list of its drawn words, and all that a frame holds beside
its maps may take; the rest is shared by maps and weights."""
LARGE = 0.25
"""Where one snapshot takes more of the limit than this, only those that must stay are kept, on disk."""


def frame_is_due(step: int) -> bool:
    """Dense while most changes, then sparser: 1 to 5, every 5th to 50, every 10th to 500."""
    return step <= 5 or (step <= 50 and step % 5 == 0) or (step <= 500 and step % 10 == 0)


class Timeline:
    """Frames and snapshots in order of step; the first, the last and those of moments stay.

    Written by the run's thread alone. Readers take `frames` and `snapshots`, immutable, without a lock.
    """

    def __init__(self, memory_limit: int = MEMORY_LIMIT) -> None:
        share = (memory_limit - min(BESIDE, memory_limit * 7 // 16)) // 2
        self._large = memory_limit * LARGE
        self._frames: Reel[Frame] = Reel(share, lambda frame, shelf: frame.shelved(shelf))
        self._snapshots: Reel[Snapshot] = Reel(share, lambda snapshot, shelf: snapshot.shelved(shelf))
        self._protected: set[int] = set()

    @property
    def frames(self) -> tuple[Frame, ...]:
        """What was recorded, oldest first."""
        return self._frames.kept

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """The weights that were kept, oldest first."""
        return self._snapshots.kept

    def protect(self, step: int) -> None:
        """Keep what is recorded of this step for as long as the run is kept: it is a moment."""
        self._protected.add(step)

    def add(self, frame: Frame) -> None:
        """Append a frame; one of the same step as the newest replaces it."""
        self._frames.add(frame, self._protected)

    def is_large(self, n_bytes: int) -> bool:
        """Whether snapshots of this size are kept only where they must be."""
        return n_bytes > self._large

    def add_snapshot(self, snapshot: Snapshot) -> None:
        """Append a snapshot; one of the same step as the newest replaces it."""
        if self.is_large(snapshot.nbytes):
            snapshot = self._snapshots.shelve_all([snapshot])[0]
            kept = self.snapshots
            if len(kept) > 1 and kept[-1].step not in self._protected:
                self._snapshots.kept = kept[:-1]  # it was the last, and is no longer
        self._snapshots.add(snapshot, self._protected)

"""The frames of a run in order, bounded in memory."""

from __future__ import annotations

from transformer.recording.frame import Frame

MEMORY_LIMIT = 48 * 2**20
"""Bytes of frames that one run keeps."""


class Timeline:
    """An append-only film that thins its own past when it is full.

    Readers take `frames`, an immutable tuple, and need no lock.
    """

    def __init__(self, memory_limit: int = MEMORY_LIMIT) -> None:
        self.frames: tuple[Frame, ...] = ()
        self._limit = memory_limit
        self._bytes = 0

    def add(self, frame: Frame) -> None:
        """Append a frame; one of the same step as the newest replaces it."""
        kept = list(self.frames)
        if kept and kept[-1].step == frame.step:
            self._bytes -= kept.pop().nbytes
        kept.append(frame)
        self._bytes += frame.nbytes
        while self._bytes > self._limit and len(kept) > 4:
            kept = self._thinned(kept)
            self._bytes = sum(f.nbytes for f in kept)
        self.frames = tuple(kept)

    @staticmethod
    def _thinned(frames: list[Frame]) -> list[Frame]:
        """Every second frame of the older half goes; the first and the last stay."""
        half = max(3, len(frames) // 2)
        return frames[:half:2] + frames[half:]

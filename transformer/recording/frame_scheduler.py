"""Decides how often a run records, so that recording takes no more than its share of the thread's time."""

from __future__ import annotations

UNWATCHED, WATCHED = 0.06, 0.10
"""Shares of the training's time that recording is to take."""
TOLERANCE = 1.5
"""Factor over its share from which it records less often: a busy machine measures badly."""
KNOWN_SECONDS = 1.0
"""Seconds of recording to measure before anything is decided."""
MOST = 64
MEMORY = 0.9
"""Weight of older measurements, for each development and each training step."""


class FrameScheduler:
    """Records one in `every` steps: each step, unless that costs too much.

    Args:
        every: to begin with.
    """

    def __init__(self, every: int = 1) -> None:
        self.every = every
        self._recording = 0.0  # seconds in all
        self._lately = 0.0, 0.0  # seconds of recording, and steps recorded: the older, the less they count
        self._a_step = 0.0  # seconds of a training step, a moving average

    def trained(self, seconds: float) -> None:
        """Note the time that a training step took."""
        self._a_step = MEMORY * self._a_step + (1 - MEMORY) * seconds if self._a_step else seconds

    def recorded(self, n: int, seconds: float, *, watched: bool) -> None:
        """Note the time that developing these steps took."""
        self._recording += seconds
        fading = MEMORY if n else 1.0
        self._lately = fading * self._lately[0] + seconds, fading * self._lately[1] + n
        if not n or self._recording < KNOWN_SECONDS or not self._a_step:
            return
        a_frame = self._lately[0] / self._lately[1]
        share, allowed = a_frame / (self.every * self._a_step), WATCHED if watched else UNWATCHED
        if share > TOLERANCE * allowed:
            self.every = min(MOST, 2 * self.every)
        elif self.every > 1 and 2 * share < TOLERANCE * allowed:  # twice as often costs twice as much at most
            self.every //= 2

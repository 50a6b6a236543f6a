"""The learning rate over a stretch of planned steps: warm-up, then a decay that ends with the plan."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class SchedulePhase:
    """Consecutive steps with one plan: the run as configured, or a continuation of a finished run."""

    first: int
    """Step before the first one of this stretch."""
    steps: int
    """Number of planned steps."""
    peak: float
    """Highest learning rate."""
    warmup: int
    """Steps over which the rate rises from zero."""
    decay: str
    """linear, cosine or constant."""

    @property
    def last(self) -> int:
        """The step with which the stretch ends."""
        return self.first + self.steps

    def rate(self, step: int) -> float:
        """Learning rate of a step, `first < step <= last`."""
        done = step - self.first
        warmup = min(self.warmup, self.steps)
        if done <= warmup:
            return self.peak * done / warmup
        if self.decay == "constant":
            return self.peak
        left = (self.steps - done + 1) / (self.steps - warmup + 1)  # 1 after the warm-up, above 0 at the end
        if self.decay == "cosine":
            return self.peak * 0.5 * (1.0 - math.cos(math.pi * left))
        return self.peak * left

"""Two runs that train in turns, so that neither has more of the machine than the other."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from transformer.recording.view import TRAINING

if TYPE_CHECKING:
    from transformer.runs.runner import Runner


class Turns:
    """The run that is behind takes the next step; if neither is, the first one does.

    Both read the published views: of two runs that train, one alone is allowed to step at any time.
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
            self.wake()  # another one may step now

    def allow(self, runner: Runner) -> bool:
        """Whether this run may step now."""
        other = self._other(runner)
        if other is None or other.turns is not self or other.over or other.view.state != TRAINING:
            return True
        own, others = (self._trained(one) for one in (runner, other))
        return own < others or (own == others and self._runners[0]() is runner)

    def wake(self, *, but: Runner | None = None) -> None:
        """Let the runs look again whether they may step."""
        for runner in (one() for one in self._runners):
            if runner is not None and runner is not but and runner.turns is self:
                runner.wake()

    def _trained(self, runner: Runner) -> float:
        return runner.view.seconds if self.by_seconds else runner.view.step

    def _other(self, runner: Runner) -> Runner | None:
        first, second = (one() for one in self._runners)
        return second if runner is first else first

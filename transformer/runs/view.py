"""What may be known of a run: one immutable picture of it, for every page and reader."""

from __future__ import annotations

from dataclasses import dataclass

from transformer.config import RunConfig
from transformer.recording.frame import Frame, Probe
from transformer.runs.metrics import Metrics

__all__ = ["Frame", "Probe", "RunView"]  # what a page needs to know of a run, and where it finds it

IDLE, QUEUED, TRAINING, PAUSED = "idle", "queued", "training", "paused"
FINISHED, STOPPED, FAILED = "finished", "stopped", "failed"
ENDED = (FINISHED, STOPPED, FAILED)


@dataclass(frozen=True, kw_only=True)
class RunView:
    """A run at one moment. Published by assigning one reference, so readers hold no lock."""

    id: str
    config: RunConfig
    state: str
    """idle, queued, training, paused, finished, stopped or failed."""
    reason: str
    """Why the run ended, in words; empty while it goes on."""
    step: int
    planned: int
    """The step with which the present plan ends."""
    seconds: float
    """Time spent training and evaluating; pauses left out."""
    steps_per_second: float
    """Over the last steps; 0 where unknown."""
    pace: float | None
    """Most steps per second; None is full speed."""
    learning_rate: float
    """Highest rate of the present plan."""
    device: str
    """Where the model is; empty until it is built."""
    parameters: int
    frames: tuple[Frame, ...]
    metrics: Metrics
    first_step_at: dict[str, int]
    goal_reached: bool
    everyday: tuple[int, int] | None
    """(right, asked) everyday words, when all words were last asked."""
    by_length: dict[int, tuple[int, int]]
    """Word length to (right, asked), of the newest evaluation."""
    turned_at: tuple[int, str, int] | None
    """(step, site, head) of the first frame whose best head crossed the mirror threshold."""
    after: str | None
    """Id of the run that this one was started from."""

    @property
    def frame(self) -> Frame | None:
        """The newest frame."""
        return self.frames[-1] if self.frames else None

    @property
    def active(self) -> bool:
        """Whether anything will move without a command."""
        return self.state in (QUEUED, TRAINING) or (self.state == IDLE and not self.frames)

    @property
    def seconds_left(self) -> float | None:
        """Until the planned steps are done, at the present speed; None where unknown."""
        if not self.steps_per_second:
            return None
        return (self.planned - self.step) / self.steps_per_second

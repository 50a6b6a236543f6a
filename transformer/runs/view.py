"""What may be known of a run: one immutable picture of it, for every page and reader."""

from __future__ import annotations

from dataclasses import dataclass

from transformer.config import RunConfig
from transformer.insight.moments import Moment
from transformer.interventions import Interventions
from transformer.recording.frame import Frame, Probe, reading_sites
from transformer.recording.reel import nearest
from transformer.recording.snapshot import Snapshot
from transformer.runs.metrics import Metrics

__all__ = ["Frame", "Moment", "Probe", "RunView", "Snapshot", "nearest", "reading_sites"]
"""What a page needs to know of a run, and where it finds it."""

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
    threads: int
    """CPU threads of an operation; 0 until the model is built."""
    parameters: int
    frames: tuple[Frame, ...]
    snapshots: tuple[Snapshot, ...]
    """The weights of fewer steps than there are frames."""
    moments: tuple[Moment, ...]
    """Steps worth jumping to, in order."""
    interventions: Interventions
    """What is taken away from the model at present."""
    metrics: Metrics
    first_step_at: dict[str, int]
    goal_reached: bool
    everyday: tuple[int, int] | None
    """(right, asked) everyday words, when all words were last asked."""
    turned_at: tuple[int, str, int] | None
    """(step, site, head) of the first frame whose best head crossed the mirror threshold."""
    after: str | None
    """Id of the run that this one was started from."""

    @property
    def frame(self) -> Frame | None:
        """The newest frame."""
        return self.frames[-1] if self.frames else None

    def frame_at(self, step: int) -> Frame | None:
        """The frame nearest to a step; among equals the earlier."""
        return nearest(self.frames, step)

    def snapshot_at(self, step: int) -> Snapshot | None:
        """The snapshot nearest to a step; among equals the earlier."""
        return nearest(self.snapshots, step)

    @property
    def masks(self) -> dict[str, bool]:
        """Whether each mask, causal and padding, is on now."""
        return {**self.config.model.masks, **dict(self.interventions.masks)}

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

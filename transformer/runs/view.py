"""What may be known of a run: one immutable picture of it, for every page and reader."""

from __future__ import annotations

from dataclasses import dataclass

from transformer.config import RunConfig
from transformer.insight.moments import Moment
from transformer.interventions import NOTHING, Interventions
from transformer.recording.frame import Frame, Probe, reading_sites
from transformer.recording.reel import nearest
from transformer.recording.snapshot import Snapshot
from transformer.runs.metrics import Metrics
from transformer.runs.tokens import new_token

__all__ = ["Frame", "Moment", "Probe", "RunView", "Snapshot", "nearest", "reading_sites"]
"""What a page needs to know of a run, and where it finds it."""

IDLE, QUEUED, TRAINING, PAUSED = "idle", "queued", "training", "paused"
FINISHED, STOPPED, FAILED, RECORDED = "finished", "stopped", "failed", "recorded"
ENDED = (FINISHED, STOPPED, FAILED, RECORDED)
MAX_WORDS = 12
"""Probes of one run; the oldest of a person's own gives way."""
PACES = (None, 20.0, 5.0, 1.0)
"""Most steps per second; None is full speed."""


@dataclass(frozen=True, kw_only=True)
class RunView:
    """A run at one moment. Published by assigning one reference, so readers hold no lock."""

    id: str
    config: RunConfig
    state: str
    """idle, queued, training, paused, finished, stopped, failed; or recorded, before anybody came."""
    reason: str
    """Why the run ended, or was paused by the server, in words; empty while it goes on."""
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
    unsaved: str = ""
    """Why the run's folder is not up to date, in words; empty where it is, or there is none."""

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


def untrained(config: RunConfig) -> RunView:
    """A run before anything has happened."""
    return RunView(
        id=new_token(),
        config=config,
        state=IDLE,
        reason="",
        step=0,
        planned=config.train.steps,
        seconds=0.0,
        steps_per_second=0.0,
        pace=None,
        learning_rate=config.train.learning_rate,
        device="",
        threads=0,
        parameters=0,
        frames=(),
        snapshots=(),
        moments=(),
        interventions=NOTHING,
        metrics=Metrics(),
        first_step_at={},
        goal_reached=False,
        everyday=None,
        turned_at=None,
        after=None,
    )

"""The view of a run: its immutable state at one time, for pages, files and other readers."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from transformer.config import RunConfig
from transformer.insight.moments import Moment
from transformer.insight.seeds import Ending
from transformer.recording.chunk import is_name
from transformer.recording.frame import Frame
from transformer.recording.metrics import Metrics
from transformer.recording.patched import Covered, Pictures
from transformer.recording.recording import Recording, nearest_step
from transformer.recording.weights import Snapshot
from transformer.shared.interventions import NO_INTERVENTIONS, Interventions

IDLE, QUEUED, TRAINING, PAUSED = "idle", "queued", "training", "paused"
FINISHED, STOPPED, FAILED, RECORDED = "finished", "stopped", "failed", "recorded"
ENDED = (FINISHED, STOPPED, FAILED, RECORDED)
MAX_WORDS = 12
"""Maximum number of tracked words of a run; beyond it, the oldest word that the user added is dropped or, if
there is none, the first word."""
MAX_NAME = 40
"""Maximum number of characters of a run's name."""
MOST_CURVES = 8
"""Maximum number of curves of an own model, in addition to the loss."""
PACES = (None, 20.0, 5.0, 1.0)
"""Possible paces: maximum steps per second; None is full pace."""
WATCHED_SECONDS = 0.16
"""If there are viewers, pending steps are computed when a step ends at least this many seconds after the last
frames were published; of n runs that take turns, n times as many."""


@dataclass(frozen=True, kw_only=True)
class OwnModel:
    """A model trained by the user's own training loop; the configuration of its run does not describe it.

    Raises:
        ValueError: a name cannot be one, or there are more than `MOST_CURVES` curves.
    """

    name: str
    """Name of its class."""
    curves: tuple[str, ...] = ()
    """Names of the numbers that are recorded at every step in addition to the loss."""
    problem: str = ""
    """What could not be recorded, in words; empty if nothing is missing."""

    def __post_init__(self) -> None:
        """Check the names, since a file can hold anything."""
        if len(self.curves) > MOST_CURVES or not all(map(is_name, (self.name, *self.curves))):
            raise ValueError("its names are none of a model")


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """The state of a run at one time, without its recording.

    Raises:
        ValueError: a number is out of range, or the name is too long.
    """

    id: str
    config: RunConfig
    state: str
    """idle, queued, training, paused, finished, stopped or failed; recorded: a recording that ships with the
    app, or one in its place."""
    reason: str = ""
    """Why the run ended, or was paused by the server, in words; empty while it goes on."""
    step: int = 0
    planned: int
    """The last step of the present plan."""
    seconds: float = 0.0
    """Time spent training and evaluating; pauses left out."""
    pace: float | None = None
    """Maximum steps per second; None is full pace."""
    learning_rate: float
    """Peak learning rate of the present plan."""
    device: str = ""
    """The device of the model; empty until it is built."""
    threads: int = 0
    """Number of CPU threads with which torch computes; 0 until the model is built."""
    parameters: int = 0
    every: int = 1
    """Recording interval in steps, at present: 1 unless recording would take more than its share of time."""
    moments: tuple[Moment, ...] = ()
    """Steps worth jumping to, in order."""
    interventions: Interventions = NO_INTERVENTIONS
    """The present interventions."""
    right: tuple[int, int] | None = None
    """(right, asked) held-out words at the newest evaluation of the training; None before the first."""
    first_step_at: dict[str, int]
    """Share of held-out words right ("0.5", "0.9", "0.99") to the step at which it was first reached."""
    goal_reached: bool = False
    everyday: tuple[int, int] | None = None
    """(right, asked) everyday words at the last evaluation on all words; None if there was none."""
    after: str | None = None
    """Id of the run that this one was started from; None if there is none."""
    name: str = ""
    """The name that its owner gave it; empty where it has none."""
    own: OwnModel | None = None
    """The own model, which `config` does not describe; None for a run of the app's models."""

    def __post_init__(self) -> None:
        """Check the values, since a file can hold anything."""
        positive = 0 < self.learning_rate < math.inf and 0 <= self.seconds < math.inf
        counted = 0 <= self.step <= self.planned and self.threads >= 0 and self.every >= 1
        shares = [pair for pair in (self.right, self.everyday) if pair is not None]
        of_words = all(0 <= right <= asked and asked for right, asked in shares)
        named = all(moment.site is None or is_name(moment.site) for moment in self.moments)
        if not (positive and counted and of_words and self.pace in PACES):
            raise ValueError("its numbers are none of a run")
        if not named or len(self.name) > MAX_NAME:
            raise ValueError("its names are none of a run")

    @property
    def turned_at(self) -> tuple[int, str, int] | None:
        """(step, site, head) of the first head that became clear (of an own model: took a role), if any."""
        return next(
            (
                (moment.step, moment.site, moment.head)
                for moment in self.moments
                if moment.site is not None and moment.head is not None
            ),
            None,
        )


@dataclass(frozen=True, kw_only=True)
class RunView(RunFacts):
    """The whole state of a run at one time. Published by assigning one reference, so readers hold no lock.

    Immutable, but for `metrics`.
    """

    frames: Recording
    snapshots: tuple[Snapshot, ...]
    """The steps whose weights are kept."""
    metrics: Metrics
    """The numbers of every step; rows are added to the same table while the run trains."""
    pictures: Pictures = field(default_factory=dict)
    """For an own model: pictures by word and by the name of the axis whose tokens are their patches."""
    steps_per_second: float = 0.0
    """Over about the last second, at most the pace; 0 where unknown."""
    unsaved: str = ""
    """Why the run is not kept in a file, or its file is not up to date, in words; empty without a problem."""

    @property
    def frame(self) -> Frame | None:
        """The newest frame; None before the first."""
        return self.frames[-1] if self.frames else None

    def frame_at(self, step: int) -> Frame | None:
        """The frame nearest to a step, if possible with no moment in between; None if there are none."""
        nearest = self._nearest(self.frames.steps, step)
        return None if nearest is None else self.frames.of_step(nearest)

    def snapshot_at(self, step: int) -> Snapshot | None:
        """The snapshot nearest to a step, if possible with no moment in between; None if there are none."""
        by_step = {snapshot.step: snapshot for snapshot in self.snapshots}
        nearest = self._nearest(tuple(by_step), step)
        return None if nearest is None else by_step[nearest]

    def _nearest(self, steps: Sequence[int], step: int) -> int | None:
        """The nearest of ascending steps, the earlier of two; if possible, with no moment in between."""
        low = max((moment.step for moment in self.moments if moment.step <= step), default=0)
        high = min((moment.step for moment in self.moments if moment.step > step), default=math.inf)
        here = [at for at in steps if low <= at < high]
        return nearest_step(here or steps, step)

    def until(self, step: int) -> RunView:
        """The run as it was recorded up to a step, without `right`, `everyday` and `goal_reached`."""
        metrics = self.metrics.until(step)
        return replace(
            self,
            step=min(self.step, step),
            frames=self.frames.until(step),
            metrics=metrics,
            seconds=metrics.at(step)[0],
            snapshots=tuple(snapshot for snapshot in self.snapshots if snapshot.step <= step),
            moments=tuple(moment for moment in self.moments if moment.step <= step),
            first_step_at={mark: at for mark, at in self.first_step_at.items() if at <= step},
            right=None,
            everyday=None,
            goal_reached=False,
        )

    @property
    def ending(self) -> Ending:
        """What is compared with runs of other seeds."""
        return Ending(seed=self.config.seed, failed=self.state == FAILED, turned=self.turned_at)

    def covered(self, word: str, site: str) -> Covered | None:
        """The picture whose patches are the keys of a site; None if there is none, or it does not fit."""
        if self.frame is None or word not in self.pictures:
            return None
        axes, tracked = self.frame.axes[site], self.frame.words[self.frame.row_of(word)]
        picture = self.pictures[word].get(axes.key)
        if picture is None:
            return None
        pooled = tracked.pooled.get(axes.key, 1)
        n_more = len(tracked.tokens(axes.key)) - math.ceil(picture.n_tokens / pooled)
        if n_more not in (0, 1):  # 1: the column of attention that goes to no token
            return None
        return Covered(picture=picture, pooled=pooled, asks=self.pictures[word].get(axes.query) == picture)

    @property
    def seeded(self) -> str:
        """The seed as text, such as "seed 0"; empty for an own model."""
        return "" if self.own else f"seed {self.config.seed}"

    @property
    def stem(self) -> str:
        """The part of the names of exported files that tells runs apart, such as seed0."""
        return "own-model" if self.own else f"seed{self.config.seed}"

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of attention that the model has; the first is shown first. Empty for an own model before the
        first frame."""
        if self.own is None:
            return self.config.model.kinds
        return tuple(dict.fromkeys(one.kind for one in self.frame.axes.values())) if self.frame else ()

    @property
    def masks(self) -> dict[str, bool]:
        """Whether each mask, causal and padding, is on now."""
        return {**self.config.model.masks, **dict(self.interventions.masks)}

    @property
    def active(self) -> bool:
        """Whether the run will change without a command."""
        return self.state in (QUEUED, TRAINING) or (self.state == IDLE and not self.frames)

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the planned steps are done, at the present speed; None where unknown."""
        if not self.steps_per_second:
            return None
        return (self.planned - self.step) / self.steps_per_second


def untrained(config: RunConfig, id_: str) -> RunView:
    """A run before anything has happened."""
    return RunView(
        id=id_,
        config=config,
        state=IDLE,
        planned=config.train.steps,
        learning_rate=config.train.learning_rate,
        first_step_at={},
        frames=Recording(),
        snapshots=(),
        metrics=Metrics(),
    )


class Publisher:
    """The one view of a run that all threads read; it is changed only by replacing it whole.

    Reading takes no lock; publishing takes one.
    """

    def __init__(self, view: RunView) -> None:
        self.view = view
        self.version = 0
        """Number of changes so far that belong in the run's file."""
        self._publishing = threading.Lock()  # the run, its archive and `Run.start` publish in their threads

    def publish(self, *, only_if: str | None = None, **changes: Any) -> None:
        """Replace the view by one with these changes; with `only_if`, only if the run is in that state."""
        with self._publishing:
            if only_if in (None, self.view.state):
                self.view = replace(self.view, **changes)
                self.version += 1

    def note(self, **changes: Any) -> None:
        """Change `unsaved` or `snapshots`, for which the file need not be written."""
        with self._publishing:
            self.view = replace(self.view, **changes)

"""A saved run, read again from its file; nothing in it is executed."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from transformer.axes import is_own
from transformer.errors import InputError
from transformer.insight.scores import FOCUS
from transformer.recording.chunk import Chunk, facts_of
from transformer.recording.frames import Frames, Recorded
from transformer.recording.metrics import Metrics
from transformer.recording.view import ENDED, FAILED, PAUSED, RunFacts, RunView
from transformer.recording.weights import Weights
from transformer.storage.arrays import read_facts, read_weights
from transformer.storage.file import blob, fact, raw_fact, reading
from transformer.storage.format import (
    SNAPSHOTS,
    Measured,
    RunFile,
    Snapshots,
    read_chunk,
    read_measured,
    read_rows,
    run_fact,
    stored_weights,
)
from transformer.storage.log import LOG
from transformer.storage.own_data import OwnData, saved_data
from transformer.tasks import task_of

Place = tuple[int, int, int]
"""Number of a word, first step, and rowid of a chunk."""


@dataclass(frozen=True, kw_only=True)
class Saved:
    """Everything that a run's file holds, except what only the next training step needs."""

    path: Path
    view: RunView
    words: tuple[str, ...]
    """The tracked words, in order."""
    weights: Weights
    kept: int
    """Number of transactions so far; 0 where a part is damaged, so that all is to be written again."""
    state: str
    """The state as it was written; in `view` a run that has not ended is paused."""
    can_go_on: bool
    """Whether the file holds what the next training step needs."""
    damage: str
    """What is wrong with the saved training, in words; empty where it is missing or whole."""
    held: OwnData
    """Uploads of the user; the run's task can be made as long as this object exists."""
    training: bytes | None
    """The state of its training, where it was asked for."""


class Reader:
    """Reads a run's file repeatedly; each time, only what is new in its recording is read.

    Args:
        path: of the file; another process may be writing it.
        strange: as for `reading`.
        training: whether to read the state of its training, too.
    """

    def __init__(self, path: Path, *, strange: bool = False, training: bool = False) -> None:
        self.path, self._strange, self._training = path, strange, training
        self._weights = Weights(stored_weights(path))
        self._chunks: dict[Place, Chunk | None] = {}  # None where it is damaged
        self._measured: dict[int, tuple[bytes, Measured | None]] = {}
        self._frames: Frames | None = None
        self._metrics: Metrics | None = None
        self._held: OwnData | None = None
        self._id = ""

    def read(self) -> Saved:
        """The run as it is in its file; damaged maps and measurements are left out.

        Raises InputError as `reading` does.
        """
        with reading(self.path, strange=self._strange) as database:
            run = run_fact(database)
            if self._id not in ("", run.id):
                raise InputError(f"{self.path} holds another run now.")
            if self._held is None:
                self._held = OwnData()
                if run.own is None:
                    self._held = saved_data(lambda name: raw_fact(database, name), run.config)
            if self._metrics is None:
                self._metrics = Metrics(run.own.curves if run.own else ())
            read_rows(database, self._metrics, run.step)
            frames = self._read_frames(database, run, self._metrics)
            if run.own is None:  # an own model has no known configuration
                self._read_weights(database)
            training, damage = self._read_training(database, run)
            self._id = run.id
        state, reason = run.state, run.reason
        if state not in ENDED:
            state = PAUSED
            reason = reason or f"Its process ended; the last saved step is {run.step:,}."
        if run.own is not None and not frames:
            raise InputError(f"{self.path} holds no attention maps that can be read.")
        view = RunView(
            **facts_of(RunFacts, run) | {"state": state, "reason": reason},
            frames=frames,
            snapshots=self._weights.snapshots,
            metrics=self._metrics,
        )
        whole = all(self._chunks.values()) and all(one for _, one in self._measured.values())
        return Saved(
            path=self.path,
            view=view,
            words=run.words,
            weights=self._weights,
            kept=run.kept if whole else 0,
            state=run.state,
            can_go_on=run.own is None and training is not None and not damage,
            damage=damage,
            held=self._held,
            training=training if self._training else None,
        )

    def _read_frames(self, database: sqlite3.Connection, run: RunFile, metrics: Metrics) -> Frames:
        """The recording of the run; damaged parts are left out with a warning."""
        places: list[Place] = database.execute("SELECT word, first, rowid FROM map").fetchall()
        if not all(type(one) is int for place in places for one in place[:2]):
            raise ValueError("a chunk has no place")
        gone = self._chunks.keys() - {*places}
        new: list[Recorded] = []
        for step, value in database.execute("SELECT step, data FROM measurement ORDER BY step"):
            data = blob(value)
            if step not in self._measured or self._measured[step][0] != data:
                measured = self._taken(lambda: read_measured(step, data), run, step)  # noqa: B023
                self._measured[step] = data, measured
                new += measured.records if measured is not None else ()
        for place in sorted({*places} - self._chunks.keys()):
            row = database.execute("SELECT data FROM map WHERE rowid = ?", place[2:]).fetchone()
            chunk = self._taken(lambda: read_chunk(row and row[0]), run, place[1])  # noqa: B023
            self._chunks[place] = chunk
            new += [chunk] if chunk is not None else ()
        known, aim = self._frames, FOCUS if run.own else task_of(run.config).aim
        if known is None or gone:
            for place in gone:
                del self._chunks[place]
            steps = {step for (step,) in database.execute("SELECT step FROM measurement")}
            self._measured = {step: one for step, one in self._measured.items() if step in steps}
            every: list[Recorded] = []
            for _, one in self._measured.values():
                every += one.records if one is not None else ()
            every += [one for _, one in sorted(self._chunks.items()) if one is not None]
            generation = 0 if known is None else known.generation + 1
            known = Frames(every, numbers=metrics.at, aim=aim, generation=generation)
        else:
            known = known.extended(new, metrics.at)
        self._frames = known
        return known if _shows(known, own=run.own is not None) else Frames(aim=aim, generation=1)

    def _taken(self, read: Any, run: RunFile, step: int) -> Any:
        """A part of the recording; None, with a warning, where it is damaged or not of this run."""
        try:
            found = read()
            if isinstance(found, Chunk) and found.word.text not in run.words:
                raise ValueError("it is of no tracked word")
            if max(found.steps if isinstance(found, Chunk) else (step,)) > run.step:
                raise ValueError("it is of a later step than the run")
            return found
        except (ValueError, RecursionError, OverflowError) as error:  # an InputError is a ValueError
            LOG.warning("%s: what was recorded at step %s is left out: %s", self.path.name, step, error)
            return None

    def _read_weights(self, database: sqlite3.Connection) -> None:
        """Which steps have weights; the weights are read when they are used."""
        tensors = self._weights.tensors
        try:
            groups = fact(database, SNAPSHOTS, Snapshots) or ()
            kept = [(step, taken) for taken, steps in groups for step in steps]
            if [step for step, _ in kept] != sorted({max(0, step) for step, _ in kept}):
                raise ValueError("they are in no order")
            if kept and not tensors:
                row = database.execute("SELECT data FROM weights LIMIT 1").fetchone()
                tensors, _ = read_weights(blob(row and row[0]))
        except (ValueError, RecursionError) as error:
            LOG.warning("%s: its weights are left out: %s", self.path.name, error)
            kept = []
        self._weights.follow(kept, tensors)

    def _read_training(self, database: sqlite3.Connection, run: RunFile) -> tuple[bytes | None, str]:
        """The state of the training (empty if not asked for), and what is wrong with it."""
        what = "data" if self._training else "x''"
        row = database.execute(f"SELECT step, {what} FROM training").fetchone()
        if row is None or run.own is not None:
            return None, ""
        if row[0] != run.step and run.state != FAILED:
            return blob(row[1]), f"Its saved training is at another step than the run: {row[0]!r}."
        return blob(row[1]), ""


def read_run(path: Path, *, strange: bool = False, training: bool = False) -> Saved:
    """Read a run's file once. Raises InputError as `Reader.read` does."""
    return Reader(path, strange=strange, training=training).read()


def read_training(path: Path) -> bytes:
    """The state of the training. Raises InputError."""
    with reading(path) as database:
        row = database.execute("SELECT data FROM training").fetchone()
        return blob(row and row[0])


def training_facts(data: bytes, types: dict[str, Any]) -> dict[str, Any]:
    """The facts of a saved training, without its arrays, each part as its type.

    Raises:
        InputError: it is damaged, or a part has another type.
    """
    try:
        raw = msgspec.json.decode(read_facts(data), type=dict[str, msgspec.Raw])
        if missing := types.keys() - raw.keys():
            raise ValueError(f"it lacks {', '.join(sorted(missing))}")
        return {name: msgspec.json.decode(raw[name], type=kind) for name, kind in types.items()}
    except (ValueError, RecursionError) as error:  # a msgspec.ValidationError is a ValueError
        raise InputError(f"The saved training cannot be read ({error}).") from error


def _shows(frames: Frames, *, own: bool) -> bool:
    """Whether every frame can be put together: its maps and scores have the same sites and number of heads.

    Args:
        own: whether it may be an own model, which is not evaluated here.
    """
    grouped = {is_own(chunk.axes) for word in frames.words for chunk in frames.chunks_of(word)}
    evaluated = frames.evaluated_at(0) is not None
    if not frames or frames.measured_at(0) is None or grouped != {not evaluated}:
        return False
    if not evaluated and not own:
        return False
    sites = {tuple(one.head_scores) for one in frames.measurements}
    heads = {
        len(values)
        for one in frames.measurements
        for of in one.head_scores.values()
        for values in of.values()
    }
    for word in frames.words:
        for chunk in frames.chunks_of(word):
            sites.add(tuple(chunk.axes))
            heads.add(next(iter(chunk.maps.values())).shape[1])
    return len(sites) == len(heads) == 1

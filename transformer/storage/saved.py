"""A saved run, read again from its file; nothing in it is executed."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from transformer.errors import InputError
from transformer.insight.moments import Moment
from transformer.insight.scores import FOCUS, ROLES
from transformer.recording.chunk import Chunk, facts_of
from transformer.recording.frame import Ablations, Array, Measurement
from transformer.recording.metrics import Metrics
from transformer.recording.patched import Pictures
from transformer.recording.recording import BESIDE, MEMORY_LIMIT, Recorded, Recording
from transformer.recording.view import ENDED, FAILED, MAX_WORDS, PAUSED, RunFacts, RunView
from transformer.recording.weights import Weights
from transformer.shared.attention_info import is_own, reading_sites
from transformer.storage.arrays import read_arrays, read_weights
from transformer.storage.file import blob, fact, reading
from transformer.storage.format import (
    SNAPSHOTS,
    RunFile,
    Snapshots,
    by_place,
    read_chunk,
    read_measured,
    read_pictures,
    read_rows,
    run_fact,
    stored_weights,
)
from transformer.storage.log import LOG
from transformer.storage.own_data import OwnData, saved_data
from transformer.tasks import task_of

T = TypeVar("T")
Place = tuple[int, int, int | bytes]
"""Of a chunk: the number of its word, its first step, its rowid. Of a measurement: -1, its step, its data."""
MOST_SNAPSHOTS = 32_768
"""Most steps whose weights are taken from a stranger's file: each of them is looked up."""


@dataclass(frozen=True, kw_only=True)
class Saved:
    """What a run's file holds; the state of its training only if that was asked for."""

    path: Path
    view: RunView
    words: tuple[str, ...]
    """The tracked words, in order."""
    weights: Weights
    whole: bool
    """Whether all of its recording was read; otherwise all is to be written again."""
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
    """Reads a run's file repeatedly; each time, only what is new in its recording is decoded.

    Args:
        path: of the file; another process may be writing it.
        strange: as for `reading`.
        training: whether to read the state of its training, too.
    """

    def __init__(self, path: Path, *, strange: bool = False, training: bool = False) -> None:
        self.path, self._strange, self._training = path, strange, training
        self._weights = Weights(stored_weights(path))
        self._parts: dict[Place, tuple[Recorded, ...]] = {}  # empty where it is damaged
        self._frames: Recording | None = None
        self._metrics, self._held = Metrics(), OwnData()
        self._id = ""
        self._pictures: Pictures = {}

    def read(self) -> Saved:
        """The run as it is in its file; damaged maps and measurements are left out.

        Raises InputError as `reading` does, and if the file holds another run than before, or an own model
        without maps.
        """
        with reading(self.path, strange=self._strange) as database:
            run = run_fact(database)
            if self._strange:
                _refuse_too_much(database, run)
            if not self._id:
                self._metrics = Metrics(run.own.curves if run.own else ())
                self._held = OwnData() if run.own else saved_data(database, run.config.train)
                self._pictures = read_pictures(database) if run.own else {}
                self._id = run.id
            if self._id != run.id:
                raise InputError(f"{self.path} holds another run now.")
            read_rows(database, self._metrics, run)
            frames = self._read_frames(database, run)
            if run.own is None:  # an own model has no known configuration
                self._read_weights(database)
            training, damage = self._read_training(database, run)
        state, reason = run.state, run.reason
        if state not in (*ENDED, PAUSED):
            state = PAUSED
            reason = reason or f"Its process ended; the last saved step is {run.step:,}."
        if run.own is not None and not frames:
            raise InputError(f"{self.path} holds no attention maps that can be read.")
        view = RunView(
            **facts_of(RunFacts, run) | {"state": state, "reason": reason},
            frames=frames,
            snapshots=self._weights.snapshots,
            metrics=self._metrics,
            pictures=self._pictures,
        )
        chunks = {place[:2] for place in self._parts if place[0] >= 0}
        return Saved(
            path=self.path,
            view=view,
            words=run.words,
            weights=self._weights,
            whole=all(self._parts.values()) and chunks == by_place(frames).keys(),
            state=run.state,
            can_go_on=run.own is None and training is not None and not damage,
            damage=damage,
            held=self._held,
            training=training if self._training else None,
        )

    def _read_frames(self, database: sqlite3.Connection, run: RunFile) -> Recording:
        """The recording of the run; empty if no maps or no first measurement can be read.

        Damaged parts are left out with a warning, and so, without one, are measurements that do not fit the
        maps. Raises ValueError if the maps do not fit each other.
        """
        stored: list[Place] = database.execute("SELECT word, first, rowid FROM map").fetchall()
        if not all(type(one) is int for place in stored for one in place):
            raise ValueError("a chunk has no place")
        places: list[Place] = database.execute("SELECT -1, step, data FROM measurement").fetchall()
        before, self._parts = self._parts, {}
        for place in places + sorted(stored):
            part = before[place] if place in before else self._part(database, run, place)
            self._parts[place] = part
        chunks = [one for part in self._parts.values() for one in part if isinstance(one, Chunk)]
        _refuse_forged(chunks, run.moments, own=run.own is not None)
        target_score, last = FOCUS if run.own else task_of(run.config).target_score, self._frames
        scored: dict[str, list[str]] = {}
        for place, part in self._parts.items():
            if any(
                (isinstance(one, Measurement) and not _scored(one, chunks, target_score, scored))
                or (isinstance(one, Ablations) and not _of_heads(one, chunks))
                for one in part
            ):
                self._parts[place] = ()
        if last is None or before.keys() - self._parts.keys():
            generation = 0 if last is None else last.generation + 1
            every = [one for part in self._parts.values() for one in part]
            frames = Recording(
                every, numbers=self._metrics.at, target_score=target_score, generation=generation
            )
        else:
            new = [one for place, part in self._parts.items() if place not in before for one in part]
            frames = last.extended(new)
        self._frames, evaluated = frames, frames.evaluated_at(0) is not None
        whole = chunks and frames.measured_at(0) is not None and evaluated == (run.own is None)
        return frames if whole else Recording(target_score=target_score, generation=1)

    def _part(self, database: sqlite3.Connection, run: RunFile, place: Place) -> tuple[Recorded, ...]:
        """A part of the recording; empty, with a warning, where it is damaged or not of this run."""
        word, step, row = place
        records: tuple[Recorded, ...]
        try:
            if word < 0:
                records = read_measured(step, row)
            else:
                data = database.execute("SELECT data FROM map WHERE rowid = ?", (row,)).fetchone()
                chunk = read_chunk(data and data[0])  # a damaged index finds no row
                if chunk.word.text not in run.words:
                    raise ValueError("it is of no tracked word")
                records, step = (chunk,), chunk.steps[-1]
            if step > run.step:
                raise ValueError("it is of a later step than the run")
            return records
        except (ValueError, RecursionError, OverflowError) as error:  # an InputError is a ValueError
            LOG.warning("%s: what was recorded at step %s is left out: %s", self.path.name, place[1], error)
            return ()

    def _read_weights(self, database: sqlite3.Connection) -> None:
        """Note which steps have weights; the weights are read when they are used."""
        tensors = self._weights.tensors
        try:
            groups = fact(database, SNAPSHOTS, Snapshots) or ()
            kept = [(step, taken) for taken, steps in groups for step in steps]
            if [step for step, _ in kept] != sorted({max(0, step) for step, _ in kept}):
                raise ValueError("they are in no order")
            if self._strange and len(kept) > MOST_SNAPSHOTS:
                raise ValueError(f"{len(kept):,} steps have more than {MOST_SNAPSHOTS:,}")
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
        if (n_rows := len(self._metrics)) != run.step and run.state != FAILED:
            return blob(row[1]), f"It has the numbers of {n_rows:,} of its {run.step:,} steps."
        return blob(row[1]), ""


def read_run(path: Path, *, strange: bool = False, training: bool = False) -> Saved:
    """Read a run's file once. Raises InputError as `Reader.read` does."""
    return Reader(path, strange=strange, training=training).read()


def read_training(path: Path, kind: type[T]) -> tuple[dict[str, Array], T]:
    """The arrays and the facts of the saved training. Raises InputError."""
    with reading(path) as database:
        row = database.execute("SELECT data FROM training").fetchone()
    try:
        return read_arrays(blob(row and row[0]), kind)
    except ValueError as error:
        raise InputError(f"The saved training cannot be read ({error}).") from error


def _refuse_too_much(database: sqlite3.Connection, run: RunFile) -> None:
    """Refuse the file of a stranger that would take longer to read than any run. Raises InputError."""
    rows = "SELECT data FROM map UNION ALL SELECT data FROM measurement"
    n, nbytes = database.execute(f"SELECT count(*), total(length(data)) FROM ({rows})").fetchone()
    if n * BESIDE + nbytes > 2 * MEMORY_LIMIT:
        raise InputError("This file has more frames than a run can have.")
    if len(run.words) > MAX_WORDS:
        raise InputError(f"This file has {len(run.words):,} tracked words; a run has at most {MAX_WORDS}.")


def _refuse_forged(chunks: Sequence[Chunk], moments: Sequence[Moment], *, own: bool) -> None:
    """Refuse what no run has together; damaged chunks are left out before. Raises ValueError.

    Args:
        own: whether they are of an own model.
    """
    ends: dict[str, int] = {}
    for chunk in chunks:
        if chunk.steps[0] <= ends.get(chunk.word.text, -1):
            raise ValueError(f"the maps of step {chunk.steps[0]:,} are there twice")
        if _shape_of(chunk) != _shape_of(chunks[0]) or is_own(chunk.axes) != own:
            raise ValueError(f"the maps of step {chunk.steps[0]:,} are of another model")
        ends[chunk.word.text] = chunk.steps[-1]
    heads = dict(_shape_of(chunks[0])) if chunks else {}
    for moment in moments:
        if chunks and moment.site is not None and moment.head not in range(heads.get(moment.site, 0)):
            raise ValueError(f"the moment at step {moment.step:,} is of a head that the model does not have")


def _shape_of(chunk: Chunk) -> list[tuple[str, int]]:
    """The sites of a model, each with its number of heads."""
    return [(site, chunk.maps[site].shape[1]) for site in chunk.axes]


def _of_heads(one: Ablations, chunks: Sequence[Chunk]) -> bool:
    """Whether ablations are of heads that the maps have."""
    heads = dict(_shape_of(chunks[0])) if chunks else {}
    return all(heads.get(site) == len(values) for site, values in one.without.items())


def _scored(
    one: Measurement, chunks: Sequence[Chunk], target_score: str, known: dict[str, list[str]]
) -> bool:
    """Whether a measurement fits the maps.

    Args:
        target_score: the score that every site has where the answer reads the question.
        known: the sites that have each score, so far.
    """
    scores = one.head_scores
    read = reading_sites(chunks[0].axes) if chunks else []
    shape = [(site, len(of["entropy"])) for site, of in scores.items()]
    if not read or shape != _shape_of(chunks[0]) or one.clearest[0] not in read:
        return False
    having = {
        name: [site for site in scores if name in scores[site]] for of in scores.values() for name in of
    }
    complete = {*read} <= {*having.get(target_score, ())} and all(
        of.keys() & ROLES.keys() for of in scores.values()
    )
    return complete and all(known.setdefault(name, sites) == sites for name, sites in having.items())

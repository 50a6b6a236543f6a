"""What a run's file says: its parts as rows, and the mirror that writes what is new in them."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.recording import chunk as chunks
from transformer.recording.chunk import Chunk, facts_of, is_name
from transformer.recording.frame import Ablations, Array, Measurement, Outputs
from transformer.recording.metrics import Metrics
from transformer.recording.patched import Pictures
from transformer.recording.recording import Measured as Record
from transformer.recording.recording import Recording
from transformer.recording.view import RunFacts, RunView
from transformer.recording.weights import Weights
from transformer.shared.evaluation import Evaluation
from transformer.shared.interventions import Interventions
from transformer.storage.arrays import as_bytes, read_weights, weights_as_bytes
from transformer.storage.file import OWNER, RUN, Store, blob, discard, put, raw_fact, reading

if TYPE_CHECKING:  # its tokenizers need a package that watching an own model does not
    from transformer.tasks import Task

SNAPSHOTS, PICTURES = "snapshots", "pictures"
Training = tuple[Mapping[str, Array], object]
"""Arrays and facts of a training, as the run's thread packs them."""


@dataclass(frozen=True, kw_only=True)
class RunFile(RunFacts):
    """The fact `run`."""

    words: tuple[str, ...]
    """The tracked words, in order."""


Snapshots = tuple[tuple[Interventions, tuple[int, ...]], ...]
"""The fact `snapshots`: the steps whose weights are kept, in order, with the interventions of each group."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """All that was measured at a step."""

    measurement: Measurement | None = None
    outputs: Outputs | None = None
    evaluation: Evaluation | None = None
    ablations: Ablations | None = None

    @property
    def records(self) -> tuple[Record, ...]:
        every = self.measurement, self.outputs, self.evaluation, self.ablations
        return tuple(one for one in every if one is not None)


def measured_of(frames: Recording) -> dict[int, Measured]:
    """All that was measured at each step."""
    by_step: dict[int, dict[str, Record]] = {}
    for one in frames.measured:
        by_step.setdefault(one.step, {})[type(one).__name__.lower()] = one
    return {step: Measured(**parts) for step, parts in by_step.items()}  # type: ignore[arg-type]


def sealed(body: bytes) -> bytes:
    """Numbers with their checksum."""
    return body + zlib.crc32(body).to_bytes(4, "little")


def unsealed(value: object) -> bytes:
    """Numbers without their checksum. Raises ValueError."""
    data = blob(value)
    if zlib.crc32(data[:-4]).to_bytes(4, "little") != data[-4:]:
        raise ValueError("its numbers are not those that were written")
    return data[:-4]


def read_chunk(value: object) -> Chunk:
    """A chunk from its row. Raises ValueError."""
    return chunks.from_bytes(unsealed(value))


def read_measured(step: int, value: object) -> tuple[Record, ...]:
    """All that was measured at a step, from its row. Raises ValueError."""
    measured = msgspec.json.decode(blob(value), type=Measured, dec_hook=_array)
    evaluation, measurement, ablations = measured.evaluation, measured.measurement, measured.ablations
    if not measured.records or any(record.step != step for record in measured.records):
        raise ValueError("it is of another step")
    if evaluation is not None and not _counts(evaluation):
        raise ValueError("it counts more right than asked")
    if measurement is not None and not _fits(measurement):
        raise ValueError("its sites and heads do not fit each other")
    if ablations is not None and not (is_name(ablations.name) and np.isfinite(ablations.whole)):
        raise ValueError("it has no number with a name")
    return measured.records


def _array(kind: type, values: object) -> Array:
    return np.array(msgspec.convert(values, tuple[float | None, ...]), dtype=np.float64)


def _counts(evaluation: Evaluation) -> bool:
    counted = [
        *evaluation.by_length.values(),
        (evaluation.right, evaluation.total),
        evaluation.live or (0, 1),
    ]
    return evaluation.step >= 0 and all(0 <= right <= asked and asked > 0 for right, asked in counted)


def _fits(measured: Measurement) -> bool:
    """Whether each site has an entropy and finite scores of the same heads, and the clearest head exists."""
    site, head = measured.clearest
    sizes = {site: {len(values) for values in of.values()} for site, of in measured.head_scores.items()}
    complete = all("entropy" in of and len(sizes[site]) == 1 for site, of in measured.head_scores.items())
    finite = all(np.isfinite(values).all() for of in measured.head_scores.values() for values in of.values())
    return complete and finite and site in sizes and 0 <= head < min(sizes[site])


def read_pictures(database: sqlite3.Connection) -> Pictures:
    """The pictures that the tokens of an own model are patches of. Raises ValueError."""
    text = raw_fact(database, PICTURES)
    return {} if text is None else msgspec.json.decode(text, type=Pictures)


def read_rows(database: sqlite3.Connection, metrics: Metrics, run: RunFile) -> None:
    """Add to `metrics` the rows that it lacks; only an own model may lack some steps. Raises ValueError."""
    newest = int(metrics.column("step")[-1]) if len(metrics) else -1
    fetched = database.execute("SELECT step, numbers FROM step WHERE step > ? ORDER BY step", (newest,))
    rows: list[tuple[float, ...]] = []
    n = len(metrics.names) - 1
    for step, value in fetched:
        numbers = np.frombuffer(unsealed(value), dtype="<f8")
        if len(numbers) != n or not 0 <= step <= run.step:
            raise ValueError(f"the numbers of step {step:,} are not those of a step of this run")
        if run.own is None and step != len(metrics) + len(rows) + 1:
            raise ValueError(f"the numbers of the step before step {step:,} are missing")
        rows.append((step, *numbers))
    if rows:
        metrics.extend(np.array(rows))


def stored_weights(path: Path) -> Callable[[int], bytes]:
    """A function that reads the numbers of a step's weights from a file. It raises InputError."""

    def read(step: int) -> bytes:
        with reading(path) as database:
            row = database.execute("SELECT data FROM weights WHERE step = ?", (step,)).fetchone()
        if row is None:
            raise InputError(f"The weights of step {step:,} are not kept any more; choose another step.")
        try:
            return read_weights(blob(row[0]))[1]
        except ValueError as error:
            raise InputError(f"The weights of step {step:,} in {path.name} are damaged ({error}).") from error

    return read


class Mirror:
    """What a run's file holds: each call of `write` writes what is new in a view, and deletes what is gone.

    Args:
        task: the task; None for an own model.
        weights: the weights of the run's steps.
        owner: digest of the token that commands the run; empty for none.
        saved: the view that the file holds already; None where it holds none, or not exactly this.
    """

    def __init__(
        self, task: Task | None, weights: Weights, *, owner: str = "", saved: RunView | None = None
    ) -> None:
        self._task, self._weights, self._owner = task, weights, owner
        self._begun = saved is not None  # whether the facts that never change are written
        self._chunks = {} if saved is None else by_place(saved.frames)
        self._measured = {} if saved is None else measured_of(saved.frames)
        self._rows = 0 if saved is None else len(saved.metrics)
        self._stored = {snapshot.step for snapshot in weights.snapshots} - weights.waiting(2**62).keys()

    def write(
        self, store: Store, view: RunView, words: tuple[str, ...], training: Training | bytes | None
    ) -> None:
        """Bring the file up to date in one transaction. Raises as `Store.transaction`.

        Args:
            training: the state of the training, or the bytes in which it is stored; None keeps it.
        """
        waiting, frames = self._weights.waiting(view.step), view.frames
        places, measured = by_place(frames), measured_of(frames)
        n_rows = int(view.metrics.column("step").searchsorted(view.step, side="right"))
        run = RunFile(**facts_of(RunFacts, view), words=words)
        with store.lock:
            with store.transaction() as database:
                if not self._begun:
                    self._begin(database, view)
                put(database, RUN, msgspec.json.encode(run))
                rows = view.metrics.rows(self._rows, n_rows)
                numbers = ((int(row[0]), sealed(row[1:].astype("<f8").tobytes())) for row in rows)
                database.executemany("INSERT INTO step VALUES (?, ?)", numbers)
                # What is new is written before what is gone is deleted, so that no rowid is used again: by a
                # new rowid readers notice that a row was replaced.
                new = {at: one for at, one in places.items() if self._chunks.get(at) is not one}
                database.executemany(
                    "INSERT OR REPLACE INTO map VALUES (?, ?, ?, ?)",
                    ((*at, one.steps[-1], sealed(chunks.as_bytes(one))) for at, one in new.items()),
                )
                gone = self._chunks.keys() - places.keys()
                database.executemany("DELETE FROM map WHERE word = ? AND first = ?", gone)
                self._write_measured(database, measured)
                database.executemany(
                    "INSERT OR REPLACE INTO weights VALUES (?, ?)",
                    ((step, weights_as_bytes(self._weights.tensors, body)) for step, body in waiting.items()),
                )
                stored = self._thin(database, self._stored | waiting.keys())
                if training is not None:
                    data = training if isinstance(training, bytes) else as_bytes(*training)
                    database.execute("INSERT OR REPLACE INTO training VALUES (1, ?, ?)", (view.step, data))
            self._weights.note_stored(waiting)
            self._begun, self._rows = True, n_rows
            self._chunks, self._measured, self._stored = places, measured, stored

    def thin(self, store: Store) -> None:
        """Delete the weights that are not kept any more, and give their place back. Raises as `write`."""
        with store.lock:
            with store.transaction() as database:
                stored = self._thin(database, self._stored)
            self._stored = stored
            store.give_back()

    def _begin(self, database: sqlite3.Connection, view: RunView) -> None:
        """Delete all rows of the recording, and write the facts that never change."""
        for table in ("step", "map", "measurement", "weights"):
            database.execute(f"DELETE FROM {table}")
        if self._owner:
            put(database, OWNER, self._owner.encode())
        if view.pictures:
            put(database, PICTURES, msgspec.json.encode(view.pictures))
        if self._task is not None:
            from transformer.storage.own_data import write_own_data

            put(database, "src_tokenizer", self._task.src_tokenizer.to_json().encode())
            put(database, "tgt_tokenizer", self._task.tgt_tokenizer.to_json().encode())
            write_own_data(database, view.config.train)

    def _write_measured(self, database: sqlite3.Connection, measured: Mapping[int, Measured]) -> None:
        before = self._measured
        database.executemany(
            "INSERT OR REPLACE INTO measurement VALUES (?, ?)",
            (
                (step, msgspec.json.encode(one, enc_hook=lambda array: array.tolist()))
                for step, one in measured.items()
                if before.get(step) != one
            ),
        )
        gone = ((step,) for step in before.keys() - measured.keys())
        database.executemany("DELETE FROM measurement WHERE step = ?", gone)

    def _thin(self, database: sqlite3.Connection, stored: set[int]) -> set[int]:
        """Delete the weights that are not kept any more; return the steps that are in the file."""
        kept = [snapshot for snapshot in self._weights.snapshots if snapshot.step in stored]
        steps = {one.step for one in kept}
        database.executemany("DELETE FROM weights WHERE step = ?", ((step,) for step in stored - steps))
        groups = groupby(kept, key=lambda one: one.interventions)
        kept_steps: Snapshots = tuple((taken, tuple(one.step for one in some)) for taken, some in groups)
        put(database, SNAPSHOTS, msgspec.json.encode(kept_steps))
        return steps


def by_place(frames: Recording) -> dict[tuple[int, int], Chunk]:
    """The chunks by number of the word and first step."""
    return {
        (number, chunk.steps[0]): chunk
        for number, word in enumerate(frames.words)
        for chunk in frames.chunks_of(word)
    }


def write_run(
    path: Path,
    view: RunView,
    words: tuple[str, ...],
    *,
    task: Task | None,
    weights: Weights,
    training: bytes | None = None,
    owner: str = "",
) -> None:
    """Write a whole run to a new file.

    Args:
        task, weights, owner: as for `Mirror`.
        training: the state of its training, as it is stored; None if it cannot go on.

    Raises:
        InputError, sqlite3.Error, OSError: the file cannot be written.
    """
    store = Store(path, new=True)
    try:
        Mirror(task, weights, owner=owner).write(store, view, words, training)
    except BaseException:
        store.close()
        discard(path)
        raise
    store.close()


def read_run_file(path: Path) -> RunFile:
    """Read the fact `run` alone.

    Raises:
        InputError: the file holds no run, is damaged, or has the format of another version.
    """
    with reading(path) as database:
        return run_fact(database)


def run_fact(database: sqlite3.Connection) -> RunFile:
    """The fact `run`. Raises InputError or ValueError."""
    text = raw_fact(database, RUN)
    if text is None:
        raise InputError("No run has been written to this file yet.")
    run = msgspec.json.decode(text, type=RunFile)
    RunConfig.from_dict(msgspec.json.decode(text)["config"])  # refuses a setting that does not exist
    return run

"""A saved run, read again from its folder; nothing in it is executed."""

from __future__ import annotations

from dataclasses import dataclass
from operator import is_
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from transformer.axes import is_own
from transformer.errors import InputError
from transformer.insight.scores import FOCUS
from transformer.recording.chunk import Chunk, facts_of
from transformer.recording.frames import Frames, Recorded, up_to
from transformer.recording.metrics import Metrics
from transformer.recording.records import Entry, body_of, scan, stands
from transformer.recording.view import ENDED, FAILED, PAUSED, RunFacts, RunView
from transformer.recording.weights import Weights
from transformer.storage.arrays import read_facts
from transformer.storage.format import FRAMES, METRICS, TRAINING, WEIGHTS, RunFile, of_record, read_run_file
from transformer.storage.log import LOG
from transformer.storage.own_data import OwnData, saved_data
from transformer.tasks import task_of

MOST_ROWS = 1_000_000
"""Steps of the longest plan that a server can allow."""


@dataclass(frozen=True, kw_only=True)
class Saved:
    """Everything that a run's folder holds, except what only the next training step needs."""

    folder: Path
    view: RunView
    words: tuple[str, ...]
    """The tracked words, in order."""
    weights: Weights
    kept: int
    """How many times the folder has been brought up to date."""
    state: str
    """The state as it was written; in `view` a run that has not ended is paused."""
    can_go_on: bool
    """Whether the folder holds what the next training step needs."""
    damage: str
    """What is wrong with the saved training, in words; empty where its file is missing or whole."""
    held: OwnData
    """Uploads of the user; the run's task can be made as long as this object exists."""


class Reader:
    """Reads a run's folder repeatedly; each time, only the new part of its recording is read.

    Args:
        folder: of the run; another process may be writing to it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._weights = Weights(folder / WEIGHTS)
        self._records: list[Recorded] = []
        self._frames: Frames | None = None
        self._last: Entry | None = None  # the last record that was read
        self._end, self._whole = 0, True
        self._metrics: tuple[int, Metrics] = (-1, Metrics())
        self._held: OwnData | None = None

    def read(self) -> Saved:
        """The run as it was when its folder was last brought up to date; damaged parts are left out.

        Raises InputError as `read_run_file` does.
        """
        run, damage = _newest(self.folder)
        if self._held is None:
            self._held = OwnData() if run.own else saved_data(self.folder, run.config)
        metrics = self._read_metrics(run)
        state, reason = run.state, run.reason
        if state not in ENDED:
            state = PAUSED
            reason = reason or f"Its process ended; the last saved step is {run.step:,}."
        try:
            self._weights.follow(run.step)
        except OSError as error:
            LOG.warning("%s: %s cannot be read (%s)", self.folder.name, WEIGHTS, error.strerror)
        frames = self._read_frames(run, metrics)
        if run.own is not None and not frames:
            raise InputError(f"{self.folder} holds no attention maps that can be read.")
        view = RunView(
            **facts_of(RunFacts, run) | {"state": state, "reason": reason},
            frames=frames,
            snapshots=() if run.own else self._weights.snapshots,  # an own model has no known configuration
            metrics=metrics,
        )
        return Saved(
            folder=self.folder,
            view=view,
            words=run.words,
            weights=self._weights,
            kept=run.kept,
            state=run.state,
            can_go_on=run.own is None and (self.folder / TRAINING).exists() and not damage,
            damage=damage,
            held=self._held,
        )

    def _read_frames(self, run: RunFile, metrics: Metrics) -> Frames:
        """The recording of the run's words up to its step; the file may hold more steps, or fewer."""
        path = self.folder / FRAMES
        if path.is_file():
            if self._last is not None and not stands(path, self._last):
                self._records, self._end, self._whole = [], 0, True
                self._frames = None
            self._records += self._scanned(path)
            self._whole = self._whole and self._end == path.stat().st_size
        found = [_as_of(one, run) for one in self._records]
        ours = [one for one in found if one is not None]
        known, aim = self._frames, FOCUS if run.own else task_of(run.config).aim
        if known is not None and ours[: len(known.records)] == list(known.records):
            known = known.extended(ours[len(known.records) :], metrics.at)
        else:
            whole = self._whole and all(map(is_, found, self._records))
            known = Frames(ours, numbers=metrics.at, aim=aim, generation=0 if whole else 1)
        self._frames = known
        return known if _shows(known, own=run.own is not None) else Frames(aim=aim, generation=1)

    def _scanned(self, path: Path) -> list[Recorded]:
        """The new records; a damaged record is left out, and those after it are still read."""
        new: list[Recorded] = []
        for entry in scan(path, self._end):
            self._end, self._last = entry.end, entry
            try:
                new.append(of_record(entry.facts, body_of(path, entry)))
            except (ValueError, RecursionError) as error:  # an InputError is a ValueError
                self._whole = False
                LOG.warning("%s: the record at byte %d is left out: %s", self.folder.name, entry.at, error)
        return new

    def _read_metrics(self, run: RunFile) -> Metrics:
        """The table up to the run's step. Raises InputError."""
        path, last = self.folder / METRICS, run.step
        more = run.own.curves if run.own else ()
        if (last == 0 and not more) or not path.exists():
            return Metrics(more)
        stamp = path.stat().st_mtime_ns
        if self._metrics[0] != stamp:
            self._metrics = stamp, read_metrics(path, more)
        return self._metrics[1].until(last)


def read_run(folder: Path) -> Saved:
    """Read a run's folder once. Raises InputError as `Reader.read` does."""
    return Reader(folder).read()


def _newest(folder: Path) -> tuple[RunFile, str]:
    """The facts in `run.json`, or in the saved training where the process ended before it wrote `run.json`.

    Returns:
        The facts, and what is wrong with the saved training. If anything is, the run can be viewed but not
        continued.
    """
    run = read_run_file(folder)
    if run.own is not None or not (folder / TRAINING).exists():
        return run, ""
    try:
        of_training = read_training_facts(folder, {"run": RunFile})["run"]
    except InputError as error:
        LOG.warning("%s", error)
        return run, str(error)
    if of_training.id != run.id:
        return run, f"{folder.name}/{TRAINING} belongs to another run."
    if of_training.kept < run.kept and run.state != FAILED:  # TRAINING is written before run.json
        return run, f"{folder.name}/{TRAINING} is at step {of_training.step:,}, but the run is not."
    return (of_training if of_training.kept > run.kept else run), ""


def read_training_facts(folder: Path, types: dict[str, Any]) -> dict[str, Any]:
    """The facts of the saved training, without its arrays, each part as its type.

    Raises:
        InputError: the file is damaged, or a part has another type.
    """
    try:
        raw = msgspec.json.decode(read_facts(folder / TRAINING), type=dict[str, msgspec.Raw])
        if missing := types.keys() - raw.keys():
            raise ValueError(f"it lacks {', '.join(sorted(missing))}")
        return {name: msgspec.json.decode(raw[name], type=kind) for name, kind in types.items()}
    except InputError:
        raise
    except (ValueError, RecursionError) as error:  # a msgspec.ValidationError is a ValueError
        raise InputError(f"{folder.name}/{TRAINING} cannot be read ({error}).") from error


def _as_of(record: Recorded, run: RunFile) -> Recorded | None:
    """A record up to the run's step, as a killed process may have recorded more; None if none of it stays."""
    if isinstance(record, Chunk) and record.word.text not in run.words:
        return None
    return up_to(record, run.step)


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


def read_metrics(path: Path, more: tuple[str, ...] = ()) -> Metrics:
    """Read the whole table of the numbers of every step.

    Args:
        more: names of its columns in addition to those of every run.

    Raises:
        InputError: the table cannot be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq  # without pandas, which takes longer to import than the first page to show

    metrics = Metrics(more)
    try:
        data = path.read_bytes()  # in one read, as the file may be replaced meanwhile
        # From Arrow's own buffer, in this thread: threads of its pool that have called Python may abort the
        # process when it exits (apache/arrow issue 34314).
        file = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False, page_checksum_verification=True)
        n_rows = file.metadata.num_rows
        if n_rows > min(len(data), MOST_ROWS):  # `seconds` differs in each row: a row takes over a byte
            raise ValueError(f"{n_rows:,} rows in {len(data):,} bytes")
        kinds = {str(file.schema_arrow.field(name).type) for name in metrics.names}
        if not kinds <= {"int64", "double"}:
            raise ValueError(f"its columns hold {', '.join(sorted(kinds))}")
        table = file.read(columns=list(metrics.names), use_threads=False)
        columns = (np.array(table[name].to_pylist(), dtype=np.float64) for name in metrics.names)
        rows = np.column_stack([*columns])
        rows = rows[~np.isnan(rows[:, 0])]
        if (np.diff(rows[:, 0]) <= 0).any():
            raise ValueError("its steps are not in order")
    except Exception as error:  # Arrow raises many types for a damaged file
        raise InputError(f"{METRICS} of {path.parent.name} cannot be read ({str(error)[:200]}).") from error
    metrics.extend(rows)
    return metrics

"""A saved run, read again from its folder; nothing in it is executed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.interventions import Interventions
from transformer.recording.frame import Frame
from transformer.recording.snapshot import Snapshot
from transformer.recording.stored import SUFFIX, Stored, stored_facts
from transformer.runs.archive import FRAMES, METRICS, SNAPSHOTS, TRAINING
from transformer.runs.brought import Brought, saved_data
from transformer.runs.facts import Facts, read_facts
from transformer.runs.frames import read_fields, read_frame
from transformer.runs.log import LOG
from transformer.runs.metrics import COLUMNS, Metrics
from transformer.runs.view import ENDED, FAILED, PAUSED, RunView

Reading = Callable[[Callable[[Path], Any], Path], Any]
"""How a file is read, for who reads the same folder again and again: takes what reads it, and its path."""
MOST_ROWS = 1_000_000
"""Steps of the longest plan that a server can allow."""
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Saved:
    """All that a run's folder holds, but for what the next training step needs."""

    folder: Path
    view: RunView
    words: tuple[str, ...]
    """The probes, in order."""
    kept: int
    """How many times the folder had been brought up to date."""
    state: str
    """As it was written; a view that nobody moves is paused."""
    can_go_on: bool
    """Whether the folder holds what the next training step needs."""
    damage: str
    """What is wrong with it, in words; empty where it is not there, or whole."""
    held: Brought
    """What a person brought; the run's task can be made for as long as this is held."""


def saved_run(folder: Path, reading: Reading | None = None) -> Saved:
    """Read a run's folder, as it was when it was last brought up to date; damaged frames are left out.

    Raises:
        InputError: not a folder of a run, a damaged one, or one of another version.
    """
    facts, damage = _newest(folder)
    view = facts.view()
    held = saved_data(folder, view.config)
    reading = reading or (lambda read, path: read(path))
    frames = tuple(_readable(_frame, _paths(folder / FRAMES, facts.step), reading))
    snapshots = tuple(_readable(_snapshot, _paths(folder / SNAPSHOTS, facts.step), reading))
    state, reason = facts.state, facts.reason
    if state not in ENDED:
        state = PAUSED
        reason = reason or f"Its process ended when this run stood at step {facts.step:,}."
    view = replace(
        view,
        state=state,
        reason=reason,
        frames=frames,
        snapshots=snapshots,
        metrics=_metrics(folder, facts.step),
    )
    return Saved(
        folder=folder,
        view=view,
        words=facts.words,
        kept=facts.kept,
        state=facts.state,
        can_go_on=(folder / TRAINING).exists() and not damage,
        damage=damage,
        held=held,
    )


def saved_config(folder: Path) -> RunConfig:
    """The configuration of a saved run.

    Raises:
        InputError: not a folder of a run, a damaged one, or one of another version.
    """
    return read_facts(folder).view().config


def saved_snapshots(folder: Path) -> tuple[Snapshot, ...]:
    """The weights that a saved run has kept, oldest first; each file is read when its weights are asked for.

    Raises:
        InputError: there are none, or one is damaged.
    """
    paths = _paths(folder / SNAPSHOTS)
    if not paths:
        raise InputError(f"{folder} holds no weights: there is no file in its folder {SNAPSHOTS}.")
    return tuple(_snapshot(path) for path in paths)


def _newest(folder: Path) -> tuple[Facts, str]:
    """What `run.json` says, or the training where the process ended between the two.

    Returns:
        It, and what is wrong with the training: then the run can be looked at and not go on.
    """
    facts = read_facts(folder)
    if not (folder / TRAINING).exists():
        return facts, ""
    try:
        of_training: Facts = read_fields(folder / TRAINING, {"run": Facts})["run"]
    except InputError as error:
        LOG.warning("%s", error)
        return facts, str(error)
    if of_training.id != facts.id:
        return facts, f"{folder.name}/{TRAINING} is of another run."
    if of_training.kept < facts.kept and facts.state != FAILED:  # written first, it is never the older one
        return facts, f"{folder.name}/{TRAINING} is of step {of_training.step:,}, and the run is not."
    return (of_training if of_training.kept > facts.kept else facts), ""


def _paths(folder: Path, last: int | None = None) -> list[Path]:
    """Files of steps in order; those beyond the last step are of a past that is not kept."""
    found = {int(path.stem): path for path in folder.glob(f"*{SUFFIX}") if _is_of_a_step(path)}
    return [found[step] for step in sorted(found) if last is None or step <= last]


def _is_of_a_step(path: Path) -> bool:
    """Whether a file is named as an archive names them: each step has one name."""
    return path.stem.isdecimal() and path.stem == f"{int(path.stem):06d}"


def _readable(read: Callable[[Path], T], paths: Iterable[Path], reading: Reading) -> Iterator[T]:
    """What can be read; what cannot is one step less to look at, and no reason to lose the others."""
    for path in paths:
        try:
            yield reading(read, path)
        except (InputError, OSError) as error:
            LOG.warning("%s", error)


def _frame(path: Path) -> Frame:
    frame = read_frame(path)
    if frame.step != int(path.stem):
        raise InputError(f"{path.parent.name}/{path.name} is of step {frame.step:,}.")
    return frame


def _snapshot(path: Path) -> Snapshot:
    weights = Stored(path)
    try:
        taken = msgspec.json.decode(stored_facts(path), type=Interventions)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path.parent.name}/{path.name} cannot be read ({error}).") from error
    return Snapshot(step=int(path.stem), weights=weights, interventions=taken)


def _metrics(folder: Path, last: int) -> Metrics:
    """The table up to a step.

    Raises:
        InputError: it cannot be read.
    """
    import pyarrow.parquet as pq  # without pandas, which takes longer to load than a first page to paint

    metrics = Metrics()
    if last == 0 or not (folder / METRICS).exists():
        return metrics
    try:
        data = (folder / METRICS).read_bytes()  # at once: meanwhile another may take its place
        file = pq.ParquetFile(BytesIO(data))
        n_rows = file.metadata.num_rows
        if n_rows > min(len(data), MOST_ROWS):  # no two steps take the same time: a row is more than a byte
            raise ValueError(f"{n_rows:,} rows in {len(data):,} bytes")
        kinds = {str(file.schema_arrow.field(name).type) for name in COLUMNS}
        if not kinds <= {"int64", "double"}:
            raise ValueError(f"its columns hold {', '.join(sorted(kinds))}")
        table = file.read(columns=list(COLUMNS))
        rows = np.column_stack([np.array(table[name].to_pylist(), dtype=np.float64) for name in COLUMNS])
    except Exception as error:  # Arrow has many names for what is wrong with a file
        raise InputError(f"{METRICS} of {folder.name} cannot be read ({str(error)[:200]}).") from error
    metrics.extend(rows[np.nan_to_num(rows[:, 0], nan=np.inf) <= last])
    return metrics

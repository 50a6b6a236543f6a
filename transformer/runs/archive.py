"""A run as a folder on disk, written while it trains; nothing in it is executed when it is read.

run.json              version, id, state, configuration, results
src_tokenizer.json    readable by the `tokenizers` package
tgt_tokenizer.json
pairs.tsv             a person's own pairs, where these are learned
tokenizer.json        and the tokenizer that they brought, where they did
metrics.parquet       one row a step
tensorboard/          the same for TensorBoard, where it was asked for
frames/000120.npz     everything recorded at step 120: maps and scores as arrays, the rest as JSON
snapshots/000120.npz  the weights at step 120, and as JSON what was taken away from the model
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from transformer.config import FORMAT
from transformer.errors import InputError
from transformer.recording.frame import Frame
from transformer.recording.snapshot import Snapshot
from transformer.runs.board import Board
from transformer.runs.brought import write_brought
from transformer.runs.view import RunView
from transformer.tasks import Task
from transformer.training.state import TrainState

INTERVENTIONS = "interventions"
"""The one entry of a snapshot's file that is no parameter."""
METRICS_SECONDS = 2.0
"""While it trains, the table on disk is at most about this old."""


class Archive:
    """Writes one run's folder; every file is whole or absent."""

    def __init__(self, folder: Path) -> None:
        """Make the folder.

        Raises:
            InputError: it cannot be made, or holds something already.
        """
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if any(folder.iterdir()):
                raise InputError(f"The folder {folder} is not empty; choose a new one.", "out")
            (folder / "frames").mkdir()
            (folder / "snapshots").mkdir()
        except OSError as error:
            raise InputError(f"The folder {folder} cannot be written ({error.strerror}).", "out") from error
        self._metrics_at = 0.0
        self._board: Board | None = None
        self._interventions: list[tuple[int, str, Any]] = []

    def open(self, view: RunView, task: Task) -> None:
        """Write what is known before the first step."""
        self._write_text("src_tokenizer.json", task.src_tokenizer.to_json())
        self._write_text("tgt_tokenizer.json", task.tgt_tokenizer.to_json())
        write_brought(view.config.train, self._write_text)
        self._board = Board(self.folder) if view.config.train.tensorboard else None
        self._write_run(view)

    def note_step(self, view: RunView, state: TrainState) -> None:
        """After each step: the table every few seconds."""
        if self._board is not None:
            self._board.note(view.metrics)
        if time.monotonic() - self._metrics_at >= METRICS_SECONDS:
            self.note_change(view, state)

    def note_frame(self, frame: Frame) -> None:
        """Keep a frame; one of the same step is replaced."""
        arrays: dict[str, np.ndarray[Any, Any]] = {f"maps/{site}": maps for site, maps in frame.maps.items()}
        for site, scores in frame.head_scores.items():
            arrays.update({f"scores/{site}/{name}": values for name, values in scores.items()})
        facts = {
            "format": FORMAT,
            "step": frame.step,
            "seconds": frame.seconds,
            "loss": frame.loss,
            "exact": frame.exact,
            "exact_step": frame.exact_step,
            "by_length": frame.by_length,
            "held_out_loss": frame.held_out_loss,
            "free_loss": frame.free_loss,
            "token_accuracy": frame.token_accuracy,
            "interventions": frame.interventions.to_dict(),
            "clearest": frame.clearest,
            "axes": {site: asdict(axes) for site, axes in frame.axes.items()},
            "probes": [asdict(probe) for probe in frame.probes],
        }
        arrays["facts"] = _as_bytes(facts)
        if self._board is not None:
            self._board.note_frame(frame)
        self._write(f"frames/{frame.step:06d}.npz", lambda file: _save_arrays(file, arrays))

    def note_snapshot(self, snapshot: Snapshot) -> None:
        """Keep the weights of a step; those of the same step are replaced."""
        arrays = {**snapshot.weights, INTERVENTIONS: _as_bytes(snapshot.interventions.to_dict())}
        self._write(f"snapshots/{snapshot.step:06d}.npz", lambda file: _save_arrays(file, arrays))

    def note_change(self, view: RunView, state: TrainState) -> None:
        """The run has ended, perhaps not for good, or a person has changed it."""
        self._interventions = state.interventions
        self.close(view)

    def close(self, view: RunView) -> None:
        """Bring the table and the facts up to date."""
        self._write_metrics(view)
        self._write_run(view)
        if self._board is not None:
            self._board.note(view.metrics)
            self._board.flush()

    def _write_run(self, view: RunView) -> None:
        facts = {
            "format": FORMAT,
            "id": view.id,
            "state": view.state,
            "reason": view.reason,
            "step": view.step,
            "seconds": view.seconds,
            "device": view.device,
            "threads": view.threads,
            "parameters": view.parameters,
            "first_step_at": view.first_step_at,
            "right_by_length": view.frame.by_length if view.frame else {},
            "moments": [asdict(moment) for moment in view.moments],
            "interventions": self._interventions,
            "config": json.loads(view.config.to_json()),
        }
        self._write_text("run.json", json.dumps(facts, indent=2))

    def _write_metrics(self, view: RunView) -> None:
        self._write("metrics.parquet", lambda file: view.metrics.table().to_parquet(file, index=False))
        self._metrics_at = time.monotonic()

    def _write_text(self, name: str, text: str) -> None:
        self._write(name, lambda file: file.write(text.encode()))

    def _write(self, name: str, fill: Callable[[BinaryIO], object]) -> None:
        """Write to a neighbouring file first, so that a crash never leaves half a file."""
        partial = self.folder / f"{name}.partial"
        with partial.open("wb") as file:
            fill(file)
        os.replace(partial, self.folder / name)


def _as_bytes(facts: Any) -> np.ndarray[Any, Any]:
    """Facts as JSON among arrays."""
    return np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)


def _save_arrays(file: BinaryIO, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
    np.savez_compressed(file, allow_pickle=False, **arrays)

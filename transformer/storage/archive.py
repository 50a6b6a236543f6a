"""Keep a run's folder up to date while it trains; reading the folder executes nothing in it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
from filelock import Timeout

from transformer.axes import reading_sites
from transformer.errors import InputError
from transformer.recording.frame import Array
from transformer.recording.records import append, rewrite, sync
from transformer.recording.view import RunView
from transformer.recording.weights import Weights
from transformer.storage.arrays import as_bytes, write_whole
from transformer.storage.claim import LOCK, WRITER, Claim
from transformer.storage.format import (
    FRAMES,
    METRICS,
    RUN,
    TOKENIZERS,
    TRAINING,
    WEIGHTS,
    as_json,
    as_parquet,
    run_file_of,
    to_record,
)
from transformer.storage.own_data import write_own_data
from transformer.tasks import Task

KEPT_SECONDS = 1.0
"""Minimum time in seconds between two updates of the folder."""
KEEPING_SHARE = 0.05
"""Maximum share of its time that the run's thread spends on copies for the folder; updates are delayed."""
AGAIN_SECONDS = 5.0
"""Seconds between a failed write and the next attempt."""
CURVES = {
    "loss": "loss/training",
    "held_out_loss": "loss/held_out",
    "free_loss": "loss/writing_freely",
    "token_accuracy": "accuracy/tokens_training",
    "held_out_token_accuracy": "accuracy/tokens_held_out",
    "exact": "accuracy/exact",
    "bleu": "translation/bleu",
    "chrf": "translation/chrf",
    "learning_rate": "training/learning_rate",
    "gradient_norm": "training/gradient_norm",
}
"""Column of the table of a run to its name in TensorBoard."""

Training = tuple[Mapping[str, Array], Mapping[str, object]]
"""Arrays and facts of a training, as the run's thread packs them; facts are encoded as JSON."""


@dataclass(frozen=True)
class _Handed:
    """Content for the folder, handed over by the run's thread."""

    view: RunView
    words: tuple[str, ...]
    training: Training | None


class Archive:
    """Keeps one run's folder, in a thread of its own; every file is whole, or holds whole records.

    The run's thread hands over the content of the folder and continues. If a write fails, `problem` says why
    and the write is tried again; nothing in memory is lost, and training does not wait.

    Args:
        folder: created if it does not exist.
        resumed: whether a saved run continues in it.

    Raises:
        InputError: the folder cannot be created, holds something else, or another process writes there.
    """

    def __init__(self, folder: Path, *, resumed: bool = False) -> None:
        self.folder = folder
        self.problem = ""
        """Why the folder is not up to date, in words; empty where it is."""
        self.told: Callable[[str], None] = lambda problem: None
        """Called by the archive's thread with the new `problem` when it changes."""
        self.thinned: Callable[[], None] = lambda: None
        """Called by the archive's thread when weights may have been thinned."""
        self.written: Callable[[], None] = lambda: None
        """Called by the archive's thread whenever the folder has been brought up to date."""
        self.seconds = self.newest_seconds = 0.0
        """Processor time of the archive's thread, in seconds: in total, and for the latest write."""
        self.version = -1
        """Version number of the view that was handed over last; -1 before the first."""
        self._n_records, self._frames_end, self._generation = 0, 0, -1
        self._rows = -1
        self._board: Board | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not resumed and not all(path.name in (LOCK, WRITER) for path in folder.iterdir()):
                raise InputError(f"The folder {folder} is not empty; choose a new one.", "out")
            self._claim = Claim(folder)
        except Timeout as error:
            raise InputError(
                f"Another process is training the run in {folder}; watch it or stop it."
            ) from error
        except OSError as error:
            raise InputError(f"The folder {folder} cannot be written ({error.strerror}).", "out") from error
        self._changed = threading.Condition()
        self._next: _Handed | None = None
        self._busy = self._ending = False
        self._due_at = 0.0
        self._thread = threading.Thread(target=self._main, name=f"keep-{folder.name[:6]}", daemon=True)

    def begin(
        self,
        run: RunView,
        task: Task | None,
        weights: Weights,
        words: Callable[[], tuple[str, ...]],
        kept: int = 0,
    ) -> None:
        """Start the archive's thread; from then on `hand` can be called.

        Args:
            run: the current view.
            task: the task; None for an own model.
            weights: the weights of the run's steps; they are kept here from now on.
            words: returns the tracked words.
            kept: how many times a saved run's folder had been brought up to date; then it holds the recording
                of this very view.
        """
        self._words, self._kept, self._weights, self._task = words, kept, weights, task
        self._unchanging = False  # files that never change are not written yet
        if kept:
            # Frames that were read completely have generation 0; any other generation is rewritten.
            self._generation, self._n_records = 0, len(run.frames.records)
            path = self.folder / FRAMES
            self._frames_end = path.stat().st_size if path.exists() else 0
            for half in self.folder.glob("*.partial"):
                half.unlink(missing_ok=True)
        else:
            weights.move_to(self.folder / WEIGHTS)
        self._thread.start()

    @property
    def due(self) -> bool:
        """Whether it is time to hand over new content."""
        return time.monotonic() >= self._due_at and not self._busy

    def hand(self, view: RunView, version: int, pack: Callable[[], Training] | None) -> None:
        """Hand over new content for the folder.

        Args:
            version: the version number of this view.
            pack: copies the state of the training; None if the run cannot continue from its present state,
                so that the state already in the folder stays.
        """
        began = time.monotonic()
        training = None if pack is None else pack()
        took = time.monotonic() - began
        with self._changed:
            self._next, self.version = _Handed(view, self._words(), training), version
            self._due_at = began + max(KEPT_SECONDS, took / KEEPING_SHARE)
            self._changed.notify_all()

    def close(self) -> None:
        """Wait until the latest content is written or the write has failed; then release the folder."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()
        self._claim.release()

    @property
    def whole(self) -> bool:
        """Whether the folder holds all that was handed over."""
        with self._changed:
            return self._next is None and not self._busy and not self.problem

    # Methods that the archive's thread runs.

    def _main(self) -> None:
        refused: _Handed | None = None  # content whose write failed, to be tried again
        while True:
            with self._changed:
                seconds = None if refused is None else AGAIN_SECONDS
                self._changed.wait_for(lambda: self._next or self._ending, seconds)
                handed = self._next or (None if self._ending else refused)
                if handed is None:
                    break
                self._next, self._busy = None, True
            began = time.thread_time()
            problem = self._tried(handed)
            self.newest_seconds = time.thread_time() - began
            self.seconds += self.newest_seconds
            refused = handed if problem else None
            if problem != self.problem:
                self.problem = problem
                self.told(problem)
            with self._changed:
                self._busy = False
        if self._board is not None:
            self._board.close()

    def _tried(self, handed: _Handed) -> str:
        try:
            self._keep(handed)
            return ""
        except Exception as error:  # for any error, training goes on and the page shows it
            why = error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
            return (
                f"The latest steps of this run are not on disk ({why}). Training goes on in memory, and "
                "is saved when the disk can be written again."
            )

    def _keep(self, handed: _Handed) -> None:
        """Bring the folder up to date: recording, metrics, state of the training, run file."""
        view = handed.view
        if not self._unchanging:
            if self._task is not None:
                tokenizers = self._task.src_tokenizer, self._task.tgt_tokenizer
                for name, tokenizer in zip(TOKENIZERS, tokenizers, strict=True):
                    self._write_text(name, tokenizer.to_json())
                write_own_data(view.config.train, self._write_text)
                self._board = Board(self.folder) if view.config.train.tensorboard else None
            self._unchanging = True
        self._keep_recording(view)
        if len(view.metrics) != self._rows:
            n_rows = len(view.metrics)  # read first: rows may be added meanwhile
            write_whole(self.folder / METRICS, as_parquet(view.metrics))
            self._rows = n_rows
        run = run_file_of(view, handed.words, self._kept + 1)
        if handed.training is not None:
            arrays, others = handed.training
            text = msgspec.json.encode({"run": run, **others}).decode()
            write_whole(self.folder / TRAINING, as_bytes(arrays, text))
        write_whole(self.folder / RUN, as_json(run))
        self._kept += 1
        if self._board is not None:
            self._board.note(view)
        self.written()

    def _keep_recording(self, view: RunView) -> None:
        """Append new frames; if earlier frames were removed or changed, rewrite all of them."""
        path, frames = self.folder / FRAMES, view.frames
        if frames.generation != self._generation:
            entries = rewrite(path, [to_record(one) for one in frames.records])
        else:
            new = frames.records[self._n_records :]
            entries = append(path, [to_record(one) for one in new], at=self._frames_end)
        if entries:
            self._frames_end = entries[-1].end
        self._generation, self._n_records = frames.generation, len(frames.records)
        self._weights.flush()
        self._weights.thin({moment.step for moment in view.moments})
        self.thinned()
        sync(path)
        sync(self.folder / WEIGHTS)

    def _write_text(self, name: str, text: str) -> None:
        write_whole(self.folder / name, text.encode())


class Board:
    """Writes the curves of a run for TensorBoard: each number once, and no NaN."""

    def __init__(self, folder: Path) -> None:
        from tensorboardX import SummaryWriter  # imported only if requested

        self._writer = SummaryWriter(str(folder / "tensorboard"))
        self._n = 0
        """Number of rows that are written."""
        self._measured = -1
        """The step of the newest measurement that is written."""

    def note(self, view: RunView) -> None:
        """Write what is new: the rows of the table, and each head's score for the aim of the run."""
        steps, *columns = view.metrics.columns("step", *CURVES)
        for row in range(self._n, len(steps)):
            for name, values in zip(CURVES.values(), columns, strict=True):
                if values[row] == values[row]:  # not NaN, as without an evaluation
                    self._writer.add_scalar(name, float(values[row]), int(steps[row]))
        self._n = len(steps)
        if (frame := view.frame) is not None:
            for one in view.frames.measurements:
                for site in reading_sites(frame.axes) if one.step > self._measured else ():
                    for head, score in enumerate(one.head_scores[site][frame.aim]):
                        self._writer.add_scalar(f"{frame.aim}/{site}.{head + 1}", float(score), one.step)
                self._measured = max(self._measured, one.step)
        self._writer.flush()

    def close(self) -> None:
        """Close the files; `note` must not be called any more."""
        self._writer.close()

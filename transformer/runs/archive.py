"""A run as a folder on disk, kept up to date while it trains; nothing in it is executed when it is read.

run.json                      version, id, state, configuration, results
src_tokenizer.json            readable by the `tokenizers` package
tgt_tokenizer.json
pairs.tsv                     a person's own pairs, where these are learned
tokenizer.json                and the tokenizer that they brought, where they did
metrics.parquet               one row a step
tensorboard/                  the same for TensorBoard, where it was asked for
frames/000120.safetensors     everything recorded at step 120
snapshots/000120.safetensors  the weights at step 120, and what was taken away from the model
training.safetensors          all that the next step depends on: weights, optimiser, random state
run.lock                      held by the process that writes here
writer.json                   which process that is
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path

import msgspec
from filelock import Timeout

from transformer.errors import InputError
from transformer.recording.frame import Frame
from transformer.recording.snapshot import Snapshot
from transformer.recording.stored import SUFFIX, Array, store, write_whole
from transformer.runs.board import Board
from transformer.runs.brought import write_brought
from transformer.runs.claim import LOCK, WRITER, Claim
from transformer.runs.facts import FILE, as_json, facts_of
from transformer.runs.frames import write_frame
from transformer.runs.view import RunView
from transformer.tasks import Task

FRAMES, SNAPSHOTS = "frames", "snapshots"
METRICS, TRAINING = "metrics.parquet", f"training{SUFFIX}"
KEPT_SECONDS = 1.0
"""The folder is about this old at most, where keeping it takes little ..."""
KEEPING_SHARE = 0.05
"""... and otherwise so old that the run's thread spends this share of its time on copies for it."""
AGAIN_SECONDS = 5.0
"""After so long it is tried again on a disk that refused."""

Training = tuple[Mapping[str, Array], Mapping[str, object]]
"""Arrays and facts of a training, as the run's thread packs them; facts are encoded as JSON."""


def _is_unused(folder: Path) -> bool:
    """Whether it is empty, or holds no more than a run that was killed before it was kept leaves there."""
    made = (folder / FRAMES, folder / SNAPSHOTS)
    found = (path for path in folder.iterdir() if path.name not in (LOCK, WRITER))
    return all(path in made and path.is_dir() and not any(path.iterdir()) for path in found)


class Archive:
    """Keeps one run's folder, in a thread of its own; every file is whole or absent.

    The run's thread hands over what the folder is to hold, and goes on. Where the disk refuses, `problem`
    says so and it is tried again: nothing in memory is lost, and nothing waits.

    Args:
        folder: made where it is not there.
        known: what the folder holds, where a saved run goes on in it.

    Raises:
        InputError: the folder cannot be made, holds something else, or another process writes there.
    """

    def __init__(self, folder: Path, known: RunView | None = None) -> None:
        self.folder = folder
        self._frames: dict[int, Frame] = {} if known is None else {one.step: one for one in known.frames}
        self._snapshots: dict[int, Snapshot] = {}
        if known is not None:
            self._snapshots = {one.step: one for one in known.snapshots}
        self._rows = -1
        self._kept = 0
        self._unchanging: Callable[[], None] | None = None
        self._board: Board | None = None
        self.problem = ""
        """Why the folder is not up to date, in words; empty where it is."""
        self.told: Callable[[str], None] = lambda problem: None
        """Called by the archive's thread when that changes."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if known is None and not _is_unused(folder):
                raise InputError(f"The folder {folder} is not empty; choose a new one.", "out")
            (folder / FRAMES).mkdir(exist_ok=True)
            (folder / SNAPSHOTS).mkdir(exist_ok=True)
            self._claim = Claim(folder)
        except Timeout as error:
            raise InputError(f"Another process trains the run in {folder}; watch it, or stop it.") from error
        except OSError as error:
            raise InputError(f"The folder {folder} cannot be written ({error.strerror}).", "out") from error
        self._changed = threading.Condition()
        self._next: tuple[RunView, tuple[str, ...], Training | None] | None = None
        self._busy = self._ending = False
        self._due_at = 0.0
        self._thread = threading.Thread(target=self._main, name=f"keep-{folder.name[:6]}", daemon=True)

    def begin(self, run: RunView, task: Task, words: Callable[[], tuple[str, ...]], kept: int = 0) -> None:
        """From now on the folder can be handed what it is to hold.

        Args:
            run: as it is now.
            words: tells the probes.
            kept: how many times a saved run's folder had been brought up to date.
        """
        self._words, self._kept = words, kept

        def write_unchanging() -> None:
            self._write_text("src_tokenizer.json", task.src_tokenizer.to_json())
            self._write_text("tgt_tokenizer.json", task.tgt_tokenizer.to_json())
            write_brought(run.config.train, self._write_text)
            self._board = Board(self.folder) if run.config.train.tensorboard else None

        self._unchanging = write_unchanging
        self._thread.start()

    @property
    def due(self) -> bool:
        """Whether it is time to hand over what the folder is to hold."""
        return time.monotonic() >= self._due_at and not self._busy

    def hand(self, view: RunView, pack: Callable[[], Training] | None) -> None:
        """What the folder is to hold from now on.

        Args:
            pack: copies the training; None where there is nothing to go on from: what was kept stays.
        """
        began = time.monotonic()
        training = None if pack is None else pack()
        took = time.monotonic() - began
        with self._changed:
            self._next = view, self._words(), training
            self._due_at = began + max(KEPT_SECONDS, took / KEEPING_SHARE)
            self._changed.notify_all()

    def close(self) -> None:
        """Wait until the folder holds what was handed over last, or the disk has refused it; then let go."""
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

    # The thread.

    def _main(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._next is not None or self._ending)
                if self._next is None:
                    break
                handed, self._next, self._busy = self._next, None, True
            problem = self._tried(*handed)
            with self._changed:
                self._busy = False
                if problem and self._next is None:
                    if not self._ending:
                        self._changed.wait_for(lambda: self._next or self._ending, timeout=AGAIN_SECONDS)
                    if not self._ending:
                        self._next = self._next or handed
            if problem != self.problem:
                self.problem = problem
                self.told(problem)
        if self._board is not None:
            self._board.close()

    def _tried(self, view: RunView, words: tuple[str, ...], training: Training | None) -> str:
        try:
            self._keep(view, words, training)
        except Exception as error:  # whatever it is, training goes on and the page says it
            why = error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
            return (
                f"What is new in this run is not on disk ({why}). It goes on in memory, and is kept as soon "
                "as that is possible again."
            )
        return ""

    def _keep(self, view: RunView, words: tuple[str, ...], training: Training | None) -> None:
        """Bring the folder up to date: first what is looked up by others, the training, and then its name."""
        if self._unchanging is not None:
            self._unchanging()
            self._unchanging = None
        for frame in view.frames:
            if self._frames.get(frame.step) is not frame:
                write_frame(self._path(FRAMES, frame.step), frame)
                self._frames[frame.step] = frame
                if self._board is not None:
                    self._board.note_frame(frame)
        for snapshot in view.snapshots:
            if self._snapshots.get(snapshot.step) is not snapshot:
                taken = msgspec.json.encode(snapshot.interventions).decode()
                store(self._path(SNAPSHOTS, snapshot.step), snapshot.weights, taken)
                self._snapshots[snapshot.step] = snapshot
        if len(view.metrics) != self._rows:
            self._rows = self._write_metrics(view)
        facts = facts_of(view, words, self._kept + 1)
        if training is not None:
            arrays, others = training
            text = msgspec.json.encode({"run": facts, **others}).decode()
            store(self.folder / TRAINING, arrays, text)
        write_whole(self.folder / FILE, as_json(facts))
        self._kept += 1
        self._forget(FRAMES, self._frames, {frame.step for frame in view.frames})
        self._forget(SNAPSHOTS, self._snapshots, {snapshot.step for snapshot in view.snapshots})
        if self._board is not None:
            self._board.note(view.metrics)
            self._board.flush()

    def _forget(self, name: str, kept: dict[int, Frame] | dict[int, Snapshot], steps: set[int]) -> None:
        """Take away what the run has thinned out, what lies beyond where it went on, and halves of files."""
        for step in kept.keys() - steps:
            del kept[step]
        for path in (self.folder / name).glob(f"*{SUFFIX}*"):
            if not path.stem.isdecimal() or int(path.stem) not in steps:
                path.unlink()

    def _path(self, name: str, step: int) -> Path:
        return self.folder / name / f"{step:06d}{SUFFIX}"

    def _write_metrics(self, view: RunView) -> int:
        """The table as it is now; returns how many rows that are."""
        rows, table = view.metrics.table(), BytesIO()
        rows.to_parquet(table, index=False)
        write_whole(self.folder / METRICS, table.getvalue())
        return len(rows)

    def _write_text(self, name: str, text: str) -> None:
        write_whole(self.folder / name, text.encode())

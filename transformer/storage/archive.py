"""Keep a run's file up to date while it trains."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from transformer.recording.view import RunView
from transformer.recording.weights import Weights
from transformer.shared.attention_info import reading_sites
from transformer.storage.file import Store, discard, path_of, why
from transformer.storage.format import Mirror, Training, stored_weights

if TYPE_CHECKING:
    from tensorboardX.record_writer import RecordWriter

    from transformer.tasks import Task

KEPT_SECONDS = 1.0
"""Minimum seconds from one transaction of a training run to the next; of n runs that take turns, n times as
long."""
KEEPING_SHARE = 0.05
"""Maximum share of its time that the run's thread spends on copies for the file: transactions are delayed
accordingly."""
AGAIN_SECONDS = 5.0
"""Longest time in seconds from a failed transaction to the next attempt; newer content is tried at once."""
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


Handed = tuple[RunView, tuple[str, ...], Training | None]
"""The content of a file, handed over by the run's thread: the view, the tracked words, the training."""


class Archive:
    """Keeps one run's file, in a thread of its own: each transaction makes it hold the run as of one time.

    The run's thread hands over the content of the file and continues. If a transaction fails, `problem` says
    why and it is tried again; nothing in memory is lost, and training does not wait.

    Args:
        path: of the file; the suffix may be left out.
        resumed: whether the run in it continues; otherwise it must hold none.
        owner: the digest of the token that commands a new run; empty for none.

    Raises:
        Taken: it holds a run and is not resumed, or another process writes it.
        InputError: the file cannot be written, or is not a run's file.
    """

    def __init__(self, path: Path, *, resumed: bool = False, owner: str = "") -> None:
        self.path = path_of(path)
        self.problem = ""
        """Why the file is not up to date, in words; empty where it is."""
        self.on_problem: Callable[[str], None] = lambda problem: None
        """Called by the archive's thread with the new `problem` when it changes."""
        self.thinned: Callable[[], None] = lambda: None
        """Called by the archive's thread when weights may have been thinned."""
        self.written: Callable[[], None] = lambda: None
        """Called by the archive's thread whenever the file has been brought up to date."""
        self.seconds = self.newest_seconds = 0.0
        """Processor time of the archive's thread, in seconds: in total, and for the latest transaction."""
        self.version = -1
        """Version number of the view that was handed over last; -1 before the first."""
        self._owner = owner
        self._board: Board | None = None
        self._store = Store(self.path, new=not resumed)
        self._changed = threading.Condition()
        self._next: Handed | None = None
        self._busy = self._ending = False
        self._handed_at = self._pause = 0.0
        self._thread = threading.Thread(target=self._main, name=f"keep-{self.path.name[:6]}", daemon=True)

    def begin(
        self,
        run: RunView,
        task: Task | None,
        weights: Weights,
        words: Callable[[], tuple[str, ...]],
        *,
        whole: bool = False,
    ) -> None:
        """Start the archive's thread; from then on `hand` can be called.

        Args:
            run: the current view.
            task: the task; None for an own model.
            weights: the weights of the run's steps; those that are in the file are read from it from now on.
            words: returns the tracked words.
            whole: whether the file holds this very view already; otherwise everything is written.
        """
        self._words, self._weights = words, weights
        self._mirror = Mirror(task, weights, owner=self._owner, saved=run if whole else None)
        weights.stored = stored_weights(self.path)
        if run.config.train.tensorboard and task is not None:
            self._board = Board(self.path.with_suffix(".tensorboard"))
        self._thread.start()

    def due(self, runs: int = 1) -> bool:
        """Whether it is time to hand over new content; later for each of several runs that take turns."""
        return time.monotonic() >= self._handed_at + runs * self._pause and not self._busy

    def hand(self, view: RunView, version: int, pack: Callable[[], Training] | None) -> None:
        """Hand over new content for the file.

        Args:
            version: the version number of this view.
            pack: copies the state of the training; None if the run cannot continue from its present state,
                so that the state already in the file stays.
        """
        began = time.monotonic()
        training = None if pack is None else pack()
        took = time.monotonic() - began
        with self._changed:
            self._next, self.version = (view, self._words(), training), version
            self._handed_at, self._pause = began, max(KEPT_SECONDS, took / KEEPING_SHARE)
            self._changed.notify_all()

    def thin(self) -> None:
        """Delete the weights that are not kept any more. Raises as `Store.transaction`."""
        self._mirror.thin(self._store)

    def close(self) -> None:
        """Wait until the latest content is written or its transaction has failed; then release the file."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()
        self._store.close()

    def discard(self) -> None:
        """Release the file, to which nothing was handed over, and delete it."""
        self._store.close()
        discard(self.path)

    @property
    def whole(self) -> bool:
        """Whether the file holds all that was handed over."""
        with self._changed:
            return self._next is None and not self._busy and not self.problem

    # Methods that the archive's thread runs.

    def _main(self) -> None:
        refused: Handed | None = None  # content whose transaction failed, to be tried again
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
                self.on_problem(problem)
            with self._changed:
                self._busy = False
        if self._board is not None:
            self._board.close()

    def _tried(self, handed: Handed) -> str:
        try:
            self._keep(handed)
            return ""
        except Exception as error:  # for any error, training goes on and the page shows it
            return (
                f"The latest steps of this run are not on disk ({why(error)}). Training goes on in memory, "
                "and is saved when the disk can be written again."
            )

    def _keep(self, handed: Handed) -> None:
        """Bring the file up to date."""
        view, words, training = handed
        self._weights.thin({moment.step for moment in view.moments})
        self.thinned()
        self._mirror.write(self._store, view, words, training)
        if self._board is not None:
            self._board.note(view)
        self.written()


class Board:
    """Writes the curves of a run for TensorBoard: each number once, unless writing fails, and no NaN.

    A resumed run writes its curves again from the start, to a new file. All is written in the calling thread:
    the thread of tensorboardX's own writer ends on a full disk, and then every call waits forever.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writer: RecordWriter | None = None
        self._n = 0
        """Number of rows that are written."""
        self._measured = -1
        """The step of the newest measurement that is written."""

    def note(self, view: RunView) -> None:
        """Write what is new: the numbers of `CURVES`, and target scores of the heads that read the question.

        Raises OSError; then all that is new is written to a new file the next time.
        """
        from tensorboardX.proto.event_pb2 import Event  # imported only if requested
        from tensorboardX.record_writer import RecordWriter
        from tensorboardX.summary import scalar

        now, n_rows = time.time(), len(view.metrics)  # first: the run's thread may add rows meanwhile
        try:
            if self._writer is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._writer = RecordWriter(str(self._folder / f"events.out.tfevents.{now:.0f}.{self._n}"))
                first = Event(wall_time=now, file_version="brain.Event:2")
                self._writer.write(first.SerializeToString())
            for name, step, value in self._new(view, n_rows):
                event = Event(step=step, wall_time=now, summary=scalar(name, value))
                self._writer.write(event.SerializeToString())
            self._writer.flush()
        except OSError:
            self.close()  # its last record may be incomplete
            raise
        self._n = n_rows
        self._measured = max((measurement.step for measurement in view.frames.measurements), default=-1)

    def _new(self, view: RunView, n_rows: int) -> Iterator[tuple[str, int, float]]:
        """Name, step and value of every number that is not written yet."""
        steps, *columns = view.metrics.columns("step", *CURVES)
        for row in range(self._n, n_rows):
            for name, values in zip(CURVES.values(), columns, strict=True):
                if values[row] == values[row]:  # not NaN, as without an evaluation
                    yield name, int(steps[row]), float(values[row])
        if (frame := view.frame) is not None:
            for measurement in view.frames.measurements:
                for site in reading_sites(frame.axes) if measurement.step > self._measured else ():
                    for head, score in enumerate(measurement.head_scores[site][frame.target_score]):
                        yield f"{frame.target_score}/{site}.{head + 1}", measurement.step, float(score)

    def close(self) -> None:
        """Close the file."""
        writer, self._writer = self._writer, None
        if writer is not None:
            with suppress(OSError):
                writer.close()

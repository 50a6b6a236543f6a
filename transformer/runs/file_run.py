"""A run that this process cannot train, such as one that another process trains, watched through its file."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from pathlib import Path

from transformer.errors import InputError
from transformer.recording.view import IDLE, QUEUED, TRAINING, RunView
from transformer.runs.queue import Lease
from transformer.storage.file import is_held, stamp_of
from transformer.storage.saved import Reader
from transformer.tasks import Question, task_of

LOOK_SECONDS = 0.5
"""Minimum seconds between two reads of the file, however many pages need the view."""
SPEED_SECONDS = 10.0
"""Approximate longest time in seconds over which the steps per second are averaged."""
FREE_SECONDS = 1.0
"""Minimum seconds between two checks whether the run may be taken over."""
REFUSED_SECONDS = 60.0
"""The same for a run that this machine could not train: an attempt costs about as much as to open the run."""


class FileRun:
    """A run that takes no commands here. Members named as in `Run` mean the same.

    It is trained elsewhere, has ended there, or cannot go on.

    Args:
        refused: whether this machine could not train the run, which it may be able to later.

    Raises:
        InputError: as for `Reader.read`.
        OSError: there is no such file.
    """

    def __init__(self, path: Path, lease: Lease | None = None, *, refused: bool = False) -> None:
        self.path, self._refused = path, refused
        self.lease = lease or Lease()
        """Holds the time when the run was last viewed."""
        self._lock = threading.Lock()
        self._reader = Reader(path)
        self._looked_at = self._asked_at = time.monotonic()
        self._version = stamp_of(path)
        self._saved = self._reader.read()
        self._counted = self._looked_at, self._saved.view.step
        self._view = self._now()
        self.config = self._saved.view.config
        self.task = task_of(self.config)
        self.ready = threading.Event()
        self.ready.set()

    @property
    def view(self) -> RunView:
        """The run as in its file up to `LOOK_SECONDS` ago; the last view while the file cannot be read."""
        with self._lock:
            now = time.monotonic()
            if now - self._looked_at >= LOOK_SECONDS:
                self._looked_at = now
                try:
                    if (version := stamp_of(self.path)) != self._version:
                        self._saved, self._version = self._reader.read(), version
                    self._view = self._now()
                except (InputError, OSError):
                    pass  # it is gone, or locked
            return self._view

    @property
    def id(self) -> str:
        return self._view.id

    @property
    def questions(self) -> list[Question]:
        return [self.task.tracked(word) for word in self.words]

    @property
    def words(self) -> tuple[str, ...]:
        return self._saved.words

    @property
    def place(self) -> tuple[int, int] | None:
        """Always None: the run does not wait in this server's line."""
        return None

    def look(self) -> RunView:
        """The view, for a viewer."""
        self.lease.look()
        return self.view

    @property
    def can_be_taken_over(self) -> bool:
        """Whether this process may open the run as a `Run`.

        It may if the run stands still and can be continued, no process writes its file, and this process may
        write it. Of several callers within `FREE_SECONDS`, or `REFUSED_SECONDS`, at most one gets True.
        """
        if self.view.active or not self._saved.can_go_on:
            return False
        with self._lock:
            now = time.monotonic()
            if now - self._asked_at < (REFUSED_SECONDS if self._refused else FREE_SECONDS):
                return False
            self._asked_at = now
        return self.path.exists() and not is_held(self.path) and os.access(self.path, os.W_OK)

    @property
    def can_leave_memory(self) -> bool:
        """Whether the run can leave memory, because it has not been viewed for long."""
        return self.lease.forgotten

    def put_away(self) -> None:
        """Do nothing: this process only reads the run, so there is nothing to stop."""

    def _now(self) -> RunView:
        """The saved view; if a process trains the run or is about to, with its state there and its speed."""
        view, (at, step) = self._saved.view, self._counted
        if self._saved.state not in (IDLE, QUEUED, TRAINING) or not is_held(self.path):
            return view
        speed = (view.step - step) / max(self._looked_at - at, 1e-9)
        if self._looked_at - at > SPEED_SECONDS:
            self._counted = self._looked_at, view.step
        return replace(view, state=self._saved.state, reason="", steps_per_second=speed)

"""Every run of this process, by its unguessable id."""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import NamedTuple

from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.recording.view import ENDED, PAUSED, QUEUED, TRAINING, RunFacts
from transformer.runs.any_run import AnyRun, keep_in_file, reopened
from transformer.runs.checks import check_saved
from transformer.runs.file_run import FileRun
from transformer.runs.limits import Limits
from transformer.runs.machine import processors
from transformer.runs.owners import Owners
from transformer.runs.queue import Lease, Queue
from transformer.runs.run import Run
from transformer.runs.thread import RunThread
from transformer.storage.file import discard
from transformer.storage.library import FIELD, Library, RunInMemory, packed
from transformer.storage.log import LOG, log_to_terminal, note, refusals
from transformer.storage.own_data import UploadCache
from transformer.storage.saved import read_run
from transformer.storage.tokens import digest_of, new_token
from transformer.tasks import resolved

DRAFT_SECONDS = 900.0
"""A draft that was not viewed for this many seconds is forgotten when the next one is built."""
MOST_RESERVED = 1_000
"""Most runs that stories reserve; beyond it, the one needed longest ago is forgotten."""
_NOT_WHOLE = "The latest steps of this run are not on disk; they could not be restored."
CLOSING_SECONDS = 10.0
"""Maximum seconds to wait for runs to be put away: at shutdown for all, and before one is removed."""
LEAVING_SECONDS = 5.0
"""Maximum seconds that a visitor waits for a run to be put away before it is opened again."""


class Reserved(NamedTuple):
    """What is needed to build a draft. For the runs of stories it is kept, to build them again."""

    config: RunConfig
    words: tuple[str, ...] | None
    visitor: str


class Registry:
    """Holds drafts (untrained models) and runs. Safe to use from any thread.

    With the id of a run, a visitor can view it; with its token, command it.

    Args:
        limits: the limits for visitors; by default those that the environment sets.
        library: where runs are kept on disk; by default nowhere.
    """

    def __init__(self, limits: Limits | None = None, library: Library | None = None) -> None:
        self.problem = ""
        """The error in the limits that the environment sets; the defaults then apply. Empty if none."""
        try:
            self.limits = limits or Limits.from_environment()
        except InputError as error:
            self.limits = Limits()
            self.problem = f"A limit of this server is invalid. {error} Then restart the server."
            LOG.error("%s", self.problem)
        self.library = library or Library(None)
        self.owners = Owners(lambda id_: self.library.owner(id_))
        self.uploads = UploadCache()
        """Uploads of visitors, kept for a reload."""
        self.queue = Queue(self.limits.training)
        self._lock = threading.RLock()
        self._opening = threading.Lock()
        self._runs: dict[str, AnyRun] = {}
        self._drafts: dict[str, Run] = {}
        self._reserved: dict[str, Reserved] = {}  # by id; the one needed longest ago first
        # By id of a run that was put away: set once its file is closed. The run itself may leave memory.
        self._leaving: dict[str, threading.Event] = {}

    @refusals()
    def draft(
        self, config: RunConfig, words: tuple[str, ...] | None = None, *, visitor: str = "", token: str = ""
    ) -> Run:
        """An untrained run, to look at before it is started; forgotten when it is not viewed.

        Args:
            visitor: name of the visitor, whose unfinished runs are counted together.
            token: the token that allows commands to the run.

        Raises:
            InputError: the settings exceed the limits, this machine cannot train them, or a tracked word is
                invalid.
        """
        self.limits.check(resolved(config))
        run = self._build(Reserved(config, words, visitor), new_token())
        self.owners.set_token(run.id, token)
        return run

    def reserve(
        self,
        config: RunConfig,
        words: tuple[str, ...] | None = None,
        *,
        visitor: str = "",
        token: str = "",
        id_: str | None = None,
    ) -> str:
        """Reserve a run that `made` builds when it is needed, and again after it was forgotten.

        Args:
            visitor, token: as for `draft`.
            id_: an existing run, which keeps its token; by default a new one.

        Returns:
            The id of the run.

        Raises:
            InputError: the settings exceed the limits or cannot be used.
        """
        if id_ is None:
            self.limits.check(resolved(config))
            id_ = new_token()
            self.owners.set_token(id_, token)
        self.owners.recall(id_)
        with self._lock:
            self._reserved.pop(id_, None)
            self._reserved[id_] = Reserved(config, words, visitor)
            for oldest in list(self._reserved)[:-MOST_RESERVED]:
                del self._reserved[oldest]
                if oldest not in self._drafts and oldest not in self._runs:
                    self.owners.forget(oldest)
        return id_

    @refusals()
    def made(self, id_: str | None) -> AnyRun | None:
        """As `get`; a reserved run that does not exist, or no longer, is built as a draft.

        Raises:
            InputError: this machine cannot train its settings or has no memory for them now, or a tracked
                word is invalid.
        """
        run = self.get(id_)
        if run is not None or id_ is None:
            return run
        with self._opening:  # one at a time, so that no run is built twice
            with self._lock:
                reserved = self._reserved.pop(id_, None)
                if reserved is None:
                    return None
                self._reserved[id_] = reserved  # now the one needed most recently
            return self._in_memory(id_) or self._build(reserved, id_)

    def _build(self, reserved: Reserved, id_: str) -> Run:
        """Build a draft; forget drafts that were not viewed for long, and those beyond the limit."""
        config, words, visitor = reserved
        lease = Lease(self.queue, self.limits)
        run = Run(config, words=words, lease=lease, visitor=visitor, id_=id_, shown_first=True)
        with self._lock:
            self._leave_to_disk()
            for other in list(self._drafts.values()):
                if time.monotonic() - other.lease.seen_at > DRAFT_SECONDS:
                    self.discard(other.id)
            unseen = sorted(self._drafts.values(), key=lambda other: other.lease.seen_at)
            for other in unseen[: max(0, len(unseen) + 1 - self.limits.kept)]:
                self.discard(other.id)  # its page, if there still is one, makes another
            self._drafts[run.id] = run
        return run

    def discard(self, id_: str) -> None:
        """Forget a draft; does nothing if this is no draft."""
        with self._lock:
            run = self._drafts.pop(id_, None)
            if run is not None:
                self._forget_owner(id_)
                run.halt()

    def _forget_owner(self, id_: str) -> None:
        """Forget the owner of a run that leaves memory, unless a story may need the run again."""
        if id_ not in self._reserved:
            self.owners.forget(id_)

    @refusals()
    def admit(self, visitor: str, run: Run | None = None, *, more: int = 1) -> None:
        """Refuse a visitor an unfinished run more, or `more` of them, if this exceeds the limit.

        Runs in memory count if the visitor started them, or if an open page of the visitor holds their token:
        after a reload, the page belongs to a new visitor with the same tokens. Drafts do not count.

        Args:
            run: the run that is to be trained, which itself does not count; None for new ones.
            more: number of runs that are to be trained.

        Raises:
            InputError: the limit would be exceeded; the message says what to do.
        """
        others = [
            other
            for other in self._trained_here
            if other is not run and (other.visitor == visitor or self.owners.knows(visitor, other.id))
        ]
        going = sum(other.view.state not in ENDED for other in others)
        if more > 1 and going + more > self.limits.per_visitor:
            raise InputError(
                f"{more} more runs are too many: you have {going} of {self.limits.per_visitor} unfinished "
                "runs allowed on this server. Choose fewer, or stop some in the list of runs first.",
                "seeds_start",
            )
        if going >= self.limits.per_visitor:
            raise InputError(
                f"You have {going} of {self.limits.per_visitor} unfinished runs allowed on this server. "
                "Select one in the list of runs and stop it first.",
                "run_start",
            )

    def adopt(self, run: Run) -> None:
        """Turn a draft into a run that is kept.

        If memory holds too many runs, others that do not train in this process are put away, as in `_hold`.

        Raises:
            InputError: the visitor has as many unfinished runs as the limits allow.
        """
        with self._lock:
            self.admit(run.visitor, run)
            is_listed = run.id in self._runs
            self._drafts.pop(run.id, None)
            self._hold(run)
        path = self.library.path_of(run.id)
        if not is_listed and path is not None:
            keep_in_file(run, path, self.owners.digest(run.id) or "", self.make_room)

    def make_room(self) -> None:
        """Keep the runs on disk within the limit, as `Library.make_room` does."""
        since = time.time() - time.monotonic()
        here = {
            run.id: RunInMemory(
                since + run.lease.seen_at, run.view.state in (QUEUED, TRAINING), run.thin_weights
            )
            for run in self._trained_here
        }
        self.library.make_room(self.limits.disk_mb * 1_000_000, here)

    def file_of(self, run: AnyRun) -> bytes:
        """A run as one file: a copy of its own or, if that is missing or not up to date, what memory holds.

        The second has no state of the training.

        Raises:
            InputError: the file of the run cannot be read, or the copy cannot be written.
        """
        path = self._whole_file_of(run)
        if path is None:
            return packed(run.view, run.words, None)
        saved = read_run(path, training=True)
        return packed(saved.view, saved.words, saved)

    def _whole_file_of(self, run: AnyRun) -> Path | None:
        """The file of a run; None if there is none, or the latest steps could not be written."""
        path = self.library.path_of(run.id)
        return None if path is None or not path.exists() or run.view.unsaved else path

    def _hold(self, run: AnyRun) -> None:
        """Keep a run in memory; if there are too many, put others away.

        Runs of other processes go first, then ended runs that are complete on disk, other ended runs, and
        paused runs not viewed for long; within each group, the one viewed longest ago goes first.
        """
        self._runs[run.id] = run
        self._leave_to_disk()
        here = [old for old in self._trained_here if old is not run]
        going: list[AnyRun] = []
        for some in (
            [old for old in self.listed() if isinstance(old, FileRun) and old is not run],
            [old for old in here if old.view.state in ENDED and old.kept],
            [old for old in here if old.view.state in ENDED and not old.kept],
            [old for old in here if old.view.state == PAUSED and old.lease.unseen],
        ):
            going += sorted(some, key=lambda old: old.lease.seen_at)
        for old in going[: max(0, len(self._runs) - self.limits.kept)]:
            self._put_away(old)

    def _leave_to_disk(self) -> None:
        """Remove runs from memory that stand still and were not viewed for long; they can be opened again."""
        for run in self.listed():
            if run.can_leave_memory:
                self._put_away(run)

    def _put_away(self, run: AnyRun) -> None:
        self._runs.pop(run.id, None)
        self._forget_owner(run.id)
        run.put_away()
        if isinstance(run, Run):
            self._leaving = {id_: ended for id_, ended in self._leaving.items() if not ended.is_set()}
            self._leaving[run.id] = run.ended
        note("evict", run.view)

    def start(self, run: Run, *, after: str | None = None) -> None:
        """Keep a draft and let it train. Raises InputError as `adopt` does."""
        self.adopt(run)
        run.start(after=after)

    def race(self, runs: Sequence[Run]) -> None:
        """Let runs train in turn, in one thread and one slot; a run that is in another race leaves it."""
        if len({run.thread for run in runs}) > 1:
            thread = RunThread(f"run-{runs[0].id[:6]}")
            for run in runs:
                run.train_in(thread)

    def continue_for(self, run: Run, steps: int, rate: float) -> Future[None]:
        """Continue an ended run, which is unfinished again. Raises InputError as `admit` and the run do."""
        self.admit(run.visitor, run)
        return run.continue_for(steps, rate)

    def get(self, id_: str | None) -> AnyRun | None:
        """The run or draft of this id, from memory or else from disk; None if none can be read."""
        if not id_:
            return None
        run = self._in_memory(id_)
        # The file of a run without an owner is not claimed: the program that gave it a name may continue it.
        free = isinstance(run, FileRun) and self.owners.is_owned(id_) and run.can_be_taken_over
        if run is not None and not free:
            return run
        with self._opening:  # one at a time, so that no run is opened twice
            if (by_now := self._in_memory(id_)) is not run:
                return by_now
            path, opened = self.library.path_of(id_), None
            if path is not None and path.exists():
                if (leaving := self._leaving.get(id_)) is not None:
                    leaving.wait(LEAVING_SECONDS)  # until then another process would seem to write the file
                lease, owned = Lease(self.queue, self.limits), self.owners.is_owned(id_)
                opened = reopened(path, lease, self.make_room, claims=owned)
            if opened is not None:
                with self._lock:
                    self.owners.recall(id_)
                    self._hold(opened)
            return opened or run

    def open_file(self, data: bytes, *, visitor: str, token: str) -> AnyRun:
        """Add the run of an uploaded file to this server; this token commands it.

        Raises:
            InputError: the file is too large or cannot be used, this server cannot keep it, or the visitor
                has too many unfinished runs.
        """
        self.admit(visitor)
        with refusals():
            self.limits.check_upload(len(data))
            check = partial(check_saved, limits=self.limits)
            self.make_room()
            most = self.limits.disk_mb * 1_000_000
            id_ = self.library.open_file(data, digest_of(token), processors(), check, most)
            run = self.get(id_)
            if run is None:
                if path := self.library.path_of(id_):
                    discard(path)
                raise InputError("The run in this file cannot be opened on this server.", FIELD)
        if isinstance(run, Run):
            run.visitor = visitor  # it counts as theirs from now on
        LOG.info("open %s", run.id[:6])
        return run

    def _in_memory(self, id_: str) -> AnyRun | None:
        with self._lock:
            run = self._drafts.get(id_) or self._runs.get(id_)
            if isinstance(run, Run) and (id_ in self._drafts or run.can_leave_memory):
                run.look()  # so that it is not put away right after
            return run

    def facts_of_run(self, id_: str) -> RunFacts | None:
        """The facts of a started run for a list, without opening it; None if there is none."""
        with self._lock:
            run = self._runs.get(id_)
        return self.library.facts_of_run(id_) if run is None else run.view

    def listed(self) -> list[AnyRun]:
        """Started runs in memory, the one that was started or opened last first."""
        with self._lock:
            return list(self._runs.values())[::-1]

    @property
    def _trained_here(self) -> list[Run]:
        return [run for run in self.listed() if isinstance(run, Run)]

    def control(self, id_: str, token: str) -> Run:
        """The run of this id, to send commands to it.

        Raises:
            InputError: the run does not exist, it can only be watched here, or this is not its token.
        """
        run = self.get(id_)
        if not isinstance(run, Run):
            why = "is no longer on this server" if run is None else "cannot be changed here"
            raise InputError(f"This run {why}. Start your own run.")
        if not self.owners.is_owner(id_, token):
            LOG.info("refuse command of %s", id_[:6])
            raise InputError("Only the owner of this run can change it. Start your own run.")
        return run

    @refusals()
    def remove(self, id_: str, token: str) -> None:
        """Remove a run that does not train now, and its file; `restore` brings both back.

        Raises:
            InputError: it does not exist, this is not its token, it trains or waits to, it is not saved on
                disk or is still being saved, or its file cannot be removed.
        """
        with self._opening:  # so that no page opens it meanwhile
            if self.facts_of_run(id_) is None:
                raise InputError("This run is no longer on this server.")
            if not self.owners.is_owner(id_, token):
                raise InputError("Only the owner of this run can remove it.")
            with self._lock:
                run = self._runs.get(id_)
            if run is not None and run.view.active:
                raise InputError("This run is not paused and has not ended; stop it first.")
            if run is not None and self._whole_file_of(run) is None:
                raise InputError(_NOT_WHOLE)
            if run is not None:
                with self._lock:
                    self._put_away(run)
                if isinstance(run, Run) and not run.join(CLOSING_SECONDS):
                    raise InputError("This run is still being saved; try again in a moment.")
                if self._whole_file_of(run) is None:  # its end could not be written
                    raise InputError(_NOT_WHOLE)
            self.library.remove(id_)
            LOG.info("remove %s", id_[:6])

    @refusals()
    def restore(self, id_: str, token: str) -> None:
        """Bring a removed run back. Raises InputError as `Library.restore` does."""
        with self._opening:
            self.library.restore(id_, token)
            LOG.info("restore %s", id_[:6])

    def close(self) -> None:
        """Put all runs away after their current step, and wait for that, at most `CLOSING_SECONDS`."""
        with self._lock:
            going = [*self._drafts.values(), *self._trained_here]
        for run in going:
            run.halt()
        end = time.monotonic() + CLOSING_SECONDS
        for run in going:
            run.join(max(0.0, end - time.monotonic()))


def _of_this_process() -> Registry:
    log_to_terminal()
    registry = Registry(library=Library.of_environment())
    # Python must not exit during a step: torch would abort the process. A plain `atexit` callback would run
    # too late for the exit handlers that torch registers if it is still being imported.
    weakref.finalize(sys.modules[__name__], registry.close)
    return registry


# Stored in `sys`, so that reloading this module in development does not create a second registry.
if "_headlight_registry" not in sys.__dict__:
    sys.__dict__["_headlight_registry"] = _of_this_process()
REGISTRY: Registry = sys.__dict__["_headlight_registry"]

"""Every run of this process, by its unguessable id."""

from __future__ import annotations

import sys
import threading
import time
import weakref

from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.recording.frames import MEMORY_LIMIT
from transformer.recording.view import ENDED, FAILED, MAX_WORDS, PAUSED, QUEUED, TRAINING, RunFacts
from transformer.runs.limits import Limits
from transformer.runs.machine import processors
from transformer.runs.owners import Owners
from transformer.runs.queue import Lease, Queue
from transformer.runs.remote import Remote
from transformer.runs.run import Run
from transformer.runs.watched import Watched
from transformer.storage.archive import Archive
from transformer.storage.arrays import write_whole
from transformer.storage.brought import Returning
from transformer.storage.bundle import FIELD, pack_view
from transformer.storage.format import OWNER
from transformer.storage.library import AtHand, Library
from transformer.storage.log import LOG, log_to_terminal, note, refusals
from transformer.storage.saved import Saved, read_run
from transformer.storage.tokens import digest_of
from transformer.tasks import completed, task_of

DRAFT_SECONDS = 900.0
"""An untrained model that nobody has looked at for this long is forgotten."""
CLOSING_SECONDS = 10.0
"""So long at most a server that ends waits for the steps that its runs are in."""


class Registry:
    """Holds drafts (models that nobody has started yet) and runs. Safe to use from any thread.

    Who has a run's id may look at it; who has its token as well may command it.

    Args:
        limits: of what visitors may take; by default those that the environment sets.
        library: where runs are kept on disk; by default nowhere.
    """

    def __init__(self, limits: Limits | None = None, library: Library | None = None) -> None:
        self.problem = ""
        """What is wrong with the limits that the environment sets, in words: then they are the usual ones."""
        try:
            self.limits = limits or Limits.from_environment()
        except InputError as error:
            self.limits = Limits()
            self.problem = f"A limit of this server cannot be read. {error} Then start the server again."
            LOG.error("%s", self.problem)
        self.library = library or Library(None)
        self.owners = Owners(lambda id_: self.library.owner(id_))
        self.returning = Returning()
        """What visitors brought, for a reload."""
        self.queue = Queue(self.limits.training)
        self._lock = threading.RLock()
        self._opening = threading.Lock()
        self._runs: dict[str, Run | Remote] = {}
        self._drafts: dict[str, tuple[Run, float]] = {}

    @refusals()
    def draft(
        self, config: RunConfig, words: tuple[str, ...] | None = None, *, visitor: str = "", token: str = ""
    ) -> Run:
        """An untrained run, to look at before it is started; forgotten when nobody does.

        Args:
            visitor: whose runs are counted together.
            token: of who may command it.

        Raises:
            InputError: more than the limits allow, or a probe that cannot be asked.
        """
        self.limits.check(completed(config))
        run = Run(config, words=words, lease=Lease(self.queue, self.limits), visitor=visitor)
        now = time.monotonic()
        with self._lock:
            self._leave_to_disk()
            for id_, (_, seen) in list(self._drafts.items()):
                if now - seen > DRAFT_SECONDS:
                    self.discard(id_)
            self._drafts[run.id] = run, now
            self.owners.appoint(run.id, token)
        return run

    def discard(self, id_: str) -> None:
        """Forget a draft that has been replaced."""
        with self._lock:
            run, _ = self._drafts.pop(id_, (None, 0.0))
            if run is not None:
                self.owners.forget(id_)
                run.close()

    @refusals()
    def admit(self, visitor: str, run: Run | None = None) -> None:
        """Refuse a visitor one more run that has not ended: this one, or one that is yet to be made.

        Raises:
            InputError: how many there are, and what to do.
        """
        with self._lock:
            others = [other for other in self._runs.values() if isinstance(other, Run) and other is not run]
        going = sum(other.visitor == visitor and other.view.state not in ENDED for other in others)
        if going >= self.limits.per_visitor:
            raise InputError(
                f"You have as many runs that have not ended as this server allows: {going}. Stop one first; "
                "the list of runs, on the left, leads to them.",
                "run_start",
            )

    def adopt(self, run: Run) -> None:
        """Turn a draft into a run that is kept.

        If there are too many, one that has ended makes room, or else one that was paused and to which nobody
        has come back: the one that nobody has looked at for longest.

        Raises:
            InputError: its visitor has as many as one may have.
        """
        with self._lock:
            self.admit(run.visitor, run)
            known = run.id in self._runs
            self._drafts.pop(run.id, None)
            self._hold(run)
        if not known:
            self._keep(run)

    def _keep(self, run: Run) -> None:
        """Keep a run on disk from now on; where the disk refuses, it says so and lives in memory alone."""
        folder = self.library.folder_of(run.id)
        if folder is None:
            return
        try:
            archive = Archive(folder)
            write_whole(folder / OWNER, (self.owners.digest(run.id) or "").encode())
        except (InputError, OSError) as error:
            LOG.warning("%s is not kept on disk: %s", run.id[:6], error)
            cause = error.__cause__ if isinstance(error, InputError) else error
            why = cause.strerror if isinstance(cause, OSError) else "its folder cannot be made"
            run.live_in_memory(f"This run is not kept on disk ({why}). It lives as long as the server runs.")
            return
        archive.written = self.make_room
        run.keep_in(archive)

    def make_room(self) -> None:
        """Have the runs on disk within their limit: the weights of those unseen for longest are thinned."""
        now, clock = time.time(), time.monotonic()
        with self._lock:
            here = {id_: run for id_, run in self._runs.items() if isinstance(run, Run)}
        self.library.make_room(
            self.limits.disk_mb * 1_000_000,
            {
                id_: AtHand(
                    now - (clock - run.seen_at), run.view.state in (QUEUED, TRAINING), run.thin_weights
                )
                for id_, run in here.items()
            },
        )

    def file_of(self, run: Watched) -> bytes:
        """A run as one file: as its folder has it, or without its training where it is in memory alone.

        Raises:
            InputError: the disk does not let it be read.
        """
        view, words = run.view, tuple(one.text for one in run.questions)
        return self.library.file_of(view, lambda: pack_view(view, run.task, words))

    def _hold(self, run: Run | Remote) -> None:
        """Have a run at hand; if there are too many, others go: those first that a folder brings back.

        Among these it is the one that was seen last the longest ago.
        """
        self._runs[run.id] = run
        self._leave_to_disk()
        others = sorted((old for old in self._runs.values() if old is not run), key=lambda old: old.seen_at)
        elsewhere = [old for old in others if isinstance(old, Remote)]
        here = [old for old in others if isinstance(old, Run)]
        ended = [old for old in here if old.view.state in ENDED]
        left = [old for old in here if old.view.state == PAUSED and old.unseen]
        going: list[Run | Remote] = [*elsewhere, *sorted(ended, key=lambda old: not old.kept), *left]
        for old in going[: max(0, len(self._runs) - self.limits.kept)]:
            self._put_away(old)

    def _leave_to_disk(self) -> None:
        """Let go of those that nobody has looked at for long: their folders bring them back."""
        for run in list(self._runs.values()):
            if run.left:
                self._put_away(run)

    def _put_away(self, run: Run | Remote) -> None:
        self._runs.pop(run.id, None)
        self.owners.forget(run.id)
        run.put_away()
        note("evict", run.view)

    def start(self, run: Run, *, after: str | None = None) -> None:
        """Keep a draft and let it train. Raises InputError as `adopt` does."""
        self.adopt(run)
        run.start(after=after)

    def continue_for(self, run: Run, steps: int, rate: float) -> threading.Event:
        """Let a run that ended go on; it counts again. Raises InputError as `admit` and the run do."""
        self.admit(run.visitor, run)
        return run.continue_for(steps, rate)

    def get(self, id_: str | None) -> Watched | None:
        """The run or draft of this id, if there is one, to look at: in memory, or else from disk."""
        if not id_:
            return None
        run = self._at_hand(id_)
        if run is None or self._can_be_had(run):
            with self._opening:  # one after the other, so that none is opened twice
                if (by_now := self._at_hand(id_)) is not run:
                    return by_now
                opened = self._reopened(id_)
                if opened is not None:
                    with self._lock:
                        self.owners.recall(id_)
                        self._hold(opened)
                return opened or run
        return run

    def _reopened(self, id_: str) -> Run | Remote | None:
        """A run that was kept, as it last was, or as another process trains it; None where there is none."""
        folder, lease = self.library.folder_of(id_), Lease(self.queue, self.limits)
        if folder is None or not folder.exists():
            return None
        try:
            saved = read_run(folder)
            if not saved.can_go_on and saved.view.state != FAILED:
                return Remote(folder, lease)  # a replay: everything but training
            try:
                archive = Archive(folder, resumed=True)
                archive.written = self.make_room
            except InputError:  # another process writes there, or nobody may: it can only be watched
                return Remote(folder, lease)
            return Run(saved.view.config, archive=archive, saved=saved, lease=lease)
        except InputError as error:
            LOG.warning("%s cannot be opened: %s", id_[:6], error)
            return None

    def open_file(self, data: bytes, *, visitor: str, token: str) -> Watched:
        """Let a run that was brought along in a file be one of this server's.

        Args:
            data: the file.
            token: of who may command it.

        Raises:
            InputError: it is too large, cannot be used, or its visitor has as many runs as one may have.
        """
        self.admit(visitor)
        with refusals():
            self.limits.check_upload(len(data))
            run = self.get(self.library.open_file(data, digest_of(token), processors(), self._check))
            if run is None:
                raise InputError("This file holds a run that cannot be opened here.", FIELD)
        if isinstance(run, Run):
            run.visitor = visitor  # it counts as theirs from now on
        LOG.info("open %s", run.id[:6])
        return run

    def _check(self, saved: Saved) -> None:
        """Refuse a run that nobody could have trained here, or that cannot be shown. Raises InputError."""
        view = saved.view
        self.limits.check(completed(view.config))
        self.limits.check_steps(view.planned)
        task = task_of(view.config)
        if len([task.question(word) for word in saved.words]) > MAX_WORDS:
            raise InputError(
                f"This file asks {len(saved.words):,} words; a run asks at most {MAX_WORDS}.", FIELD
            )
        if view.frames.nbytes > 2 * MEMORY_LIMIT:
            raise InputError("This file holds more frames than a run keeps.", FIELD)

    def _can_be_had(self, run: Run | Remote) -> bool:
        """Whether somebody here commands a run that was trained elsewhere and has been let go.

        Of one without an owner nothing is gained: whoever keeps it under a name goes on with it there.
        """
        return isinstance(run, Remote) and self.owners.is_owned(run.id) and run.let_go

    def _at_hand(self, id_: str) -> Run | Remote | None:
        with self._lock:
            if id_ in self._drafts:
                run, _ = self._drafts[id_]
                self._drafts[id_] = run, time.monotonic()
                return run
            found = self._runs.get(id_)
            if isinstance(found, Run) and found.left:
                found.look()  # so that who asks for it does not find it put away in the next moment
            return found

    def glimpse(self, id_: str) -> RunFacts | None:
        """What a list says of a run that has been started, without opening it."""
        with self._lock:
            run = self._runs.get(id_)
        return self.library.glimpse(id_) if run is None else run.view

    def listed(self) -> list[Run | Remote]:
        """Started runs that are at hand, the newest first."""
        with self._lock:
            return list(self._runs.values())[::-1]

    def control(self, id_: str, token: str) -> Run:
        """A run to command.

        Raises:
            InputError: it is not there, another process trains it, or this is not its token.
        """
        run = self.get(id_)
        if not isinstance(run, Run):
            why = "is not here any more" if run is None else "is not trained here"
            raise InputError(f"This run {why}. Start one of your own beside it.")
        if not self.owners.is_owner(id_, token):
            LOG.info("refuse command of %s", id_[:6])
            raise InputError("Only who has started this run may change it. Start one of your own beside it.")
        return run

    def close(self) -> None:
        """End the threads of all runs as they stand: what is kept in a folder goes on from there."""
        with self._lock:
            going = [run for run, _ in self._drafts.values()]
            going += [run for run in self._runs.values() if isinstance(run, Run)]
        for run in going:
            run.halt()
        end = time.monotonic() + CLOSING_SECONDS
        for run in going:
            run.join(max(0.0, end - time.monotonic()))


def _of_this_process() -> Registry:
    log_to_terminal()
    registry = Registry(library=Library.of_environment())
    # Python may not end in the middle of a step: torch would end it by force. `atexit` itself would be too
    # late for what torch, if it is just being loaded, leaves to be done at the end.
    weakref.finalize(sys.modules[__name__], registry.close)
    return registry


# Anchored outside the module, so that a reload of the source in development does not fork it.
if "_headlight_registry" not in sys.__dict__:
    sys.__dict__["_headlight_registry"] = _of_this_process()
REGISTRY: Registry = sys.__dict__["_headlight_registry"]

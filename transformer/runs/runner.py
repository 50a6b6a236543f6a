"""One run in its thread: it carries out commands between steps, waits for a slot, keeps its pace, saves."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING

from transformer.errors import InputError, explained
from transformer.recording.view import (
    FAILED,
    FINISHED,
    IDLE,
    PAUSED,
    QUEUED,
    STOPPED,
    TRAINING,
    Publisher,
    RunView,
)
from transformer.runs.machine import give_back_memory
from transformer.runs.queue import Lease
from transformer.runs.untrained import BUILDING, Untrained
from transformer.storage.log import LOG, note

if TYPE_CHECKING:  # training_session imports torch
    from transformer.runs.training_session import TrainingSession
    from transformer.storage.archive import Archive

_EVENTS = {TRAINING: "start", FINISHED: "finish", STOPPED: "stop"}
"""States that are logged when they begin. Resume is logged only for a run that was opened from its file."""


class Runner:
    """One run, in the only thread that touches its model, optimiser and random state: see `RunThread`.

    Args:
        published: the view of the run.
        lease: what the run may use of a shared server.
        build: makes the training, from the untrained model if that was shown; called in the thread, because
            it imports torch.
    """

    def __init__(
        self, published: Publisher, lease: Lease, build: Callable[[Untrained | None], TrainingSession]
    ) -> None:
        self.lease = lease
        self.untrained: Untrained | None = None
        """The untrained model that was shown before the run began."""
        self.ready, self.ended = threading.Event(), threading.Event()
        """`ready`: set once the first frame can be seen, or the run has failed or was put away without one.
        `ended`: set once the run needs no thread and no file any more."""
        self.archive: Archive | None = None
        """The file in which the run is kept."""
        self.awake = threading.Event()
        """The event for which the run's thread waits."""
        self.move: Callable[[Runner], None] | None = None
        """Hands the run to another thread; called by its present thread between two steps. None: it stays."""
        self.closing = self._over = False
        self._training: TrainingSession | None = None
        self._published, self._build = published, build
        self._commands: queue.SimpleQueue[tuple[Callable[[], None], Future[None]]] = queue.SimpleQueue()
        self._asking = threading.Lock()  # so that no command is queued after the run has ended
        self._budget: int | None = None  # steps until the next pause, after `advance`
        self._next_step_at = 0.0  # by `time.perf_counter`, if there is a pace
        self._noted = published.view.state  # the state logged last; a saved run's was logged earlier

    # For any thread.

    def ask(self, command: Callable[[], None]) -> Future[None]:
        """Have a command carried out between two steps.

        Returns:
            A future: done once the command has run, with its exception if it raised one, and cancelled if the
            run fails or is put away first.
        """
        self.lease.look()  # a command counts as viewing
        return self._put(command)

    def move_to(self, take: Callable[[Runner], None]) -> None:
        """Have the run's thread hand it to another one between two steps, by calling `take`."""
        self._put(lambda: setattr(self, "move", take))

    def _put(self, command: Callable[[], None]) -> Future[None]:
        answer: Future[None] = Future()
        with self._asking:
            if self._over:
                answer.cancel()
            else:
                self._commands.put((command, answer))
        self.awake.set()
        return answer

    def halt(self) -> None:
        """End after the current step: commands sent before are still carried out, but no more steps."""
        self.closing = True
        self.awake.set()

    @property
    def kept(self) -> bool:
        """Whether a file holds the run as it is now."""
        archive = self.archive
        return archive is not None and archive.version == self._published.version and archive.whole

    # Commands of `Run`, carried out in this thread.

    def pause(self) -> None:
        if self.view.state in (QUEUED, TRAINING):
            self.training.recording.compute()
            self._published.publish(state=PAUSED)

    def resume(self) -> None:
        self._budget = None
        if self.view.state == PAUSED:
            self._take_slot()

    def advance(self, steps: int) -> None:
        if self.view.state in (IDLE, QUEUED, PAUSED, TRAINING):
            self._budget = steps
            self._take_slot()

    def stop(self) -> None:
        if self.view.state in (QUEUED, TRAINING, PAUSED):
            self.training.end(STOPPED, f"Stopped at step {self.view.step:,}.")

    def continue_for(self, steps: int, rate: float) -> None:
        if self.view.state in (FINISHED, STOPPED):
            self.training.continue_for(steps, rate)
            self._budget = None
            self._take_slot()

    def set_pace(self, pace: float | None) -> None:
        """Take at most this many steps per second from now on; None is full pace."""
        self._next_step_at = time.perf_counter()
        self._published.publish(pace=pace)

    def called(self) -> None:
        """Ask for the slot that may be free now, unless the run was paused or stopped meanwhile."""
        if self.view.state in (QUEUED, TRAINING):
            self._take_slot()

    @property
    def training(self) -> TrainingSession:
        """The training of the run; exists from the first `tend` to `end`."""
        assert self._training is not None
        return self._training

    def _take_slot(self) -> None:
        """Train if there is a slot; otherwise wait in the queue. A run that is put away takes no slot."""
        if self.closing:
            return
        self._next_step_at = time.perf_counter()
        slot = self.lease.take(lambda: self._put(self.called))
        self._published.publish(state=TRAINING if slot else QUEUED, reason="")

    # For the thread.

    @property
    def view(self) -> RunView:
        return self._published.view

    @property
    def has_backfill(self) -> bool:
        """Whether the recording lacks something of the past, as `RunRecorder.has_backfill`."""
        return self._training is not None and self._training.recording.has_backfill

    @property
    def wait(self) -> float:
        """Seconds until the next step, by the pace."""
        return 0.0 if self.view.pace is None else max(0.0, self._next_step_at - time.perf_counter())

    def tend(self) -> None:
        """Do what is due between steps; does nothing for a failed run.

        Builds the model if there is none, and carries out the commands that wait. Then a run that trains
        obeys the limits of the server, and any other computes and saves what is pending. Finally, some of
        what the recording lacks of the past is computed.
        """
        if self.view.state == FAILED:
            return
        if self._training is None:
            with BUILDING:
                self._training = self._build(self.untrained)
            self.ready.set()
        self._training.use_threads()
        while not self._commands.empty():
            self._obey(*self._commands.get())
            self._settle()
        if self.closing or self.move is not None:
            return
        if self.view.state != TRAINING:
            self._training.recording.compute()
            self._keep()
        elif (over := self.lease.over()) is not None:
            self._give_way(*over)
            self._settle()
        if self.has_backfill:
            self._training.recording.compute_past()

    def step(self, runs: int = 1) -> None:
        """Take the next step of a run that trains.

        Args:
            runs: number of runs that take turns in this thread.
        """
        if (pace := self.view.pace) is not None:
            # Lost time is not made up: after a slow step a new interval begins.
            self._next_step_at = max(self._next_step_at + 1.0 / pace, time.perf_counter())
        self.training.use_threads()
        self.training.step(alone=self._budget is not None, watched=self.lease.watched, runs=runs)
        if self._budget is not None:
            self._budget -= 1
            if self._budget <= 0:
                self._budget = None
                if self.view.state == TRAINING:
                    self._published.publish(state=PAUSED)
        if self.view.state == TRAINING and self.archive is not None and self.archive.due(runs):
            self._keep()
        self._settle()

    def fail(self, error: Exception) -> None:
        """Note this error as the reason why the run ends; what has been recorded is kept."""
        if self._training is not None:
            self._training.recording.rescue()
        self._published.publish(state=FAILED, reason=explained(error))
        if not self.closing:  # at exit, modules cannot be imported: such an error is not logged
            note("fail", self.view, f", {type(error).__name__}")

    def end(self) -> None:
        """Accept no more commands, release the slot, save the run and let go of its model."""
        try:
            self._refuse_the_rest()
            self.lease.leave()
            self.ready.set()
            self._put_away()
        finally:
            self._training = None
            self.ended.set()

    @staticmethod
    def _obey(command: Callable[[], None], answer: Future[None]) -> None:
        """Carry out a command. The caller gets any error; all but an InputError end the run too."""
        if not answer.set_running_or_notify_cancel():
            return
        try:
            command()
        except InputError as error:
            answer.set_exception(error)
        except BaseException as error:
            answer.set_exception(error)
            raise
        else:
            answer.set_result(None)

    def _refuse_the_rest(self) -> None:
        """Accept no more commands: cancel those that wait, and any later one at once."""
        with self._asking:
            self._over = True
        with suppress(queue.Empty):
            while True:
                self._commands.get_nowait()[1].cancel()

    def _put_away(self) -> None:
        """Save what the file does not hold yet, and close the file even if that fails."""
        try:
            self._keep()
        except Exception as error:
            LOG.exception("The end of run %s is not saved", self.view.id[:6])
            self._published.note(unsaved=f"The end of this run could not be saved: {explained(error)}")
        finally:
            if self.archive is not None:
                self.archive.close()

    def _give_way(self, state: str, why: str) -> None:
        """The server's limits end this turn: the run is stopped, or paused because it has no viewers."""
        reason = f"{state.capitalize()} at step {self.view.step:,}: {why}"
        if state == STOPPED:
            self.training.end(STOPPED, reason)
        else:
            self._published.publish(state=state, reason=reason)
            note("neglect", self.view)

    def _settle(self) -> None:
        """After a change: release a slot that is not needed, log a new state, save a run that has ended."""
        view = self.view
        if view.state not in (QUEUED, TRAINING):
            self.lease.leave()
        if view.state != self._noted and view.state in _EVENTS:
            self._noted = view.state
            note(_EVENTS[view.state], view)
            if view.state in (FINISHED, STOPPED):
                self._keep()
                give_back_memory()

    def _keep(self) -> None:
        """Hand to the file what it does not hold yet, without waiting for it."""
        archive, training = self.archive, self._training
        if archive is None or training is None or archive.version == self._published.version:
            return
        failed = self.view.state == FAILED
        if not failed:
            training.catch_up()
        archive.hand(self.view, self._published.version, None if failed else training.pack)

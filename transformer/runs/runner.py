"""The thread of a run: it carries out commands between steps, waits for a slot, keeps the pace and saves."""

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
from transformer.runs.calibration import calibrate, speed
from transformer.runs.machine import give_back_memory
from transformer.runs.queue import Lease, Turns
from transformer.storage.log import LOG, note

if TYPE_CHECKING:  # recorded_training imports torch
    from transformer.runs.recorded_training import RecordedTraining
    from transformer.storage.archive import Archive

CALM_SECONDS = 3.0
"""Seconds without a command before the speed of the machine is measured."""
_BUILDING = threading.Lock()
"""Held while a run is built. If a class starts at once, runs are built one after the other: many threads that
build would keep every page waiting."""
_EVENTS = {TRAINING: "start", FINISHED: "finish", STOPPED: "stop"}
"""States that are logged when they begin; pausing and resuming are not logged."""


class Runner(threading.Thread):
    """The only thread that touches model, optimiser and random state. Other threads use `ask` for commands.

    Args:
        published: the view of the run.
        lease: what the run may use of a shared server.
        build: makes the model and its training; called in this thread, because it imports torch.
    """

    def __init__(self, published: Publisher, lease: Lease, build: Callable[[], RecordedTraining]) -> None:
        super().__init__(name=f"run-{published.view.id[:6]}", daemon=True)
        self.ready = threading.Event()
        """Set once there is something to see: the frame of step 0, or the reason why there is none."""
        self.archive: Archive | None = None
        """The file in which the run is kept."""
        self.turns: Turns | None = None
        """The turns with the other run of a race; None if there is none."""
        self._closing = False
        self._training: RecordedTraining | None = None
        self._published, self._lease, self._build = published, lease, build
        self._commands: queue.SimpleQueue[tuple[Callable[[], None], Future[None]]] = queue.SimpleQueue()
        self._asking = threading.Lock()  # so that no command is queued after the thread has ended
        self.over = False
        """Whether commands are no longer accepted."""
        self._budget: int | None = None  # steps until the next pause, after `advance`
        self._next_step_at = 0.0  # by `time.perf_counter`, if there is a pace
        self._noted = published.view.state  # the state logged last; a saved run's was logged earlier

    # For any thread.

    def ask(self, command: Callable[[], None]) -> Future[None]:
        """Have a command carried out between two steps.

        Returns:
            A future: done once the command has run, with its exception if it raised one, and cancelled if the
            thread ends first.
        """
        self._lease.look()  # a command counts as viewing
        return self._put(command)

    def wake(self) -> None:
        """Make the thread check again whether it may train."""
        self._put(lambda: None)

    def _put(self, command: Callable[[], None]) -> Future[None]:
        answer: Future[None] = Future()
        with self._asking:
            if self.over:
                answer.cancel()
            else:
                self._commands.put((command, answer))
        return answer

    def halt(self) -> None:
        """End after the current step: commands sent before are still carried out, but no more steps."""
        self._closing = True
        self.wake()

    @property
    def kept(self) -> bool:
        """Whether a file holds the run as it is now."""
        archive = self.archive
        return archive is not None and archive.version == self._published.version and archive.whole

    # Commands of `Run`, carried out in this thread.

    def pause(self) -> None:
        if self.view.state in (QUEUED, TRAINING):
            self.training.recording.develop()
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
        if self.view.state == QUEUED:
            self._take_slot()

    @property
    def training(self) -> RecordedTraining:
        """The training of the run; only for a run that has not failed."""
        assert self._training is not None
        return self._training

    def _take_slot(self) -> None:
        """Train if there is a slot; otherwise wait in the queue. A run that ends takes no slot."""
        if self._closing:
            return
        self._next_step_at = time.perf_counter()
        slot = self._lease.take(lambda: self._put(self.called))
        self._published.publish(state=TRAINING if slot else QUEUED, reason="")

    # The thread.

    @property
    def view(self) -> RunView:
        return self._published.view

    def run(self) -> None:
        """Build the model, carry out commands and train until the thread is to end."""
        try:
            if self.view.state != FAILED:  # a failed run can only be viewed
                with _BUILDING:
                    if not self._closing:
                        self._training = self._build()
            self.ready.set()
            while not self._closing:
                before = self.view.state, self.view.step
                self._obey_and_step()
                self._settle()
                if self.turns is not None and before != (self.view.state, self.view.step):
                    self.turns.wake(but=self)
            while self._training is not None and not self._commands.empty():
                self._obey(*self._commands.get())  # such as to save the run
        except Exception as error:  # the page shows any error, and all other runs go on
            self._fail(error)
        finally:
            self._refuse_the_rest()
            self._lease.leave()
            if self.turns is not None:
                self.turns.wake(but=self)
            self.ready.set()
            self._put_away()
            self._training = None

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
            self.over = True
        with suppress(queue.Empty):
            while True:
                self._commands.get_nowait()[1].cancel()

    def _put_away(self) -> None:
        """Save what the folder does not hold yet, and close the folder even if that fails."""
        try:
            self._keep()
        except Exception as error:
            LOG.exception("The end of run %s is not saved", self.view.id[:6])
            self._published.note(unsaved=f"The end of this run could not be saved: {explained(error)}")
        finally:
            if self.archive is not None:
                self.archive.close()

    def _fail(self, error: Exception) -> None:
        """End the run with this error as the reason; what has been recorded is kept."""
        if self._training is not None:
            self._training.recording.rescue()
        self._published.publish(state=FAILED, reason=explained(error))
        if not self._closing:  # at exit, modules cannot be imported: such an error is not logged
            note("fail", self.view, f", {type(error).__name__}")

    def _obey_and_step(self) -> None:
        """Carry out one command, or take one step where the run is training and its pace allows."""
        if self.view.state != TRAINING:
            if self.view.state != FAILED:
                self.training.recording.develop()
            self._keep()
            self._wait_for_a_command()
        elif (over := self._lease.over()) is not None:
            self._give_way(*over)
        else:
            self._train_at_pace()

    @property
    def _owes_a_past(self) -> bool:
        return self._training is not None and self._training.recording.owes_a_past

    def _wait_for_a_command(self) -> None:
        owes, measured = self._owes_a_past, speed() is not None or self._lease.limits is None
        try:
            asked = self._commands.get(timeout=0.0 if owes else None if measured else CALM_SECONDS)
        except queue.Empty:
            if owes:
                self.training.recording.develop_past()
            else:  # for the estimate of how long a run will take
                calibrate(self._lease.quiet)
        else:
            self._obey(*asked)

    def _train_at_pace(self) -> None:
        """Obey one command, or take the next step when it is time for it."""
        if self.turns is not None and not self.turns.allow(self) and not self._owes_a_past:
            self._obey(*self._commands.get())  # until the other run wakes this thread
            return
        pace = self.view.pace
        wait = 0.0 if pace is None or self._owes_a_past else self._next_step_at - time.perf_counter()
        try:
            asked = self._commands.get(block=wait > 0.0, timeout=max(wait, 0.0))
        except queue.Empty:
            if self._owes_a_past:
                self.training.recording.develop_past()
            if pace is not None:
                if self._next_step_at > time.perf_counter():
                    return
                # Lost time is not made up: after a slow step a new interval begins.
                self._next_step_at = max(self._next_step_at + 1.0 / pace, time.perf_counter())
            self._step()
        else:
            self._obey(*asked)

    def _step(self) -> None:
        if self.turns is not None and not self.turns.allow(self):
            return
        self.training.step(alone=self._budget is not None, watched=self._lease.watched)
        if self._budget is not None:
            self._budget -= 1
            if self._budget <= 0:
                self._budget = None
                if self.view.state == TRAINING:
                    self._published.publish(state=PAUSED)
        if self.view.state == TRAINING and self.archive is not None and self.archive.due:
            self._keep()

    def _give_way(self, state: str, why: str) -> None:
        """The server's limits end this turn: the run is stopped, or paused because it has no viewers."""
        reason = f"{state.capitalize()} at step {self.view.step:,}: {why}"
        if state == STOPPED:
            self.training.end(STOPPED, reason)
        else:
            self._published.publish(state=state, reason=reason)
            note("neglect", self.view)

    def _settle(self) -> None:
        """After each command and step: release a slot that is not needed; log a new state."""
        view = self.view
        if view.state not in (QUEUED, TRAINING):
            self._lease.leave()
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

"""The thread of a run: it obeys between two steps, waits for its slot, and keeps its pace."""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable

from transformer.runs.calibration import speed
from transformer.runs.log import note
from transformer.runs.turn import Turn
from transformer.runs.view import FAILED, FINISHED, PAUSED, QUEUED, STOPPED, TRAINING
from transformer.runs.worker import Worker
from transformer.tasks import Question

PAINTING_SECONDS = 5.0
"""So long at most a watched run waits to load torch: a page that is being painted needs the processor."""
CALM_SECONDS = 3.0
"""So long nobody has asked for anything before the machine is measured."""
_EVENTS = {TRAINING: "start", FINISHED: "finish", STOPPED: "stop"}
"""States whose beginning is logged; a pause is none, and what follows one no new start."""


class RunThread(threading.Thread):
    """Alone touches model, optimiser and random state. Others `ask` it for things, which it then does itself.

    Args:
        worker: the model at work.
        turn: what it may take of a server that others share.
        questions: the probes to begin with.
        live: whether somebody watches.
    """

    def __init__(self, worker: Worker, turn: Turn, questions: list[Question], *, live: bool) -> None:
        super().__init__(name=f"run-{worker.view.id[:6]}", daemon=True)
        self.ready = threading.Event()
        """Set once there is something to see: the frame of step 0, or the reason why there is none."""
        self.closing = False
        """Whether it is to end."""
        self.budget: int | None = None
        """Steps until the next pause, where steps were asked for."""
        self._worker, self._turn, self._questions, self._live = worker, turn, questions, live
        self._commands: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._wanted = threading.Event()  # somebody does not want to wait any longer
        self._next_step_at = 0.0  # on the clock, where there is a pace
        self._noted = worker.view.state  # that was logged last, of a saved run in its time

    # For everybody.

    def ask(self, command: Callable[[], None]) -> threading.Event:
        """Have a command obeyed between two steps.

        Returns:
            An event that is set when it has been.
        """
        obeyed = threading.Event()

        def obey() -> None:
            command()
            obeyed.set()

        self._turn.look()  # who asks for something is there
        self._commands.put(obey)
        self._wanted.set()
        if not self.is_alive():
            obeyed.set()  # nobody is left to obey, and nobody is to wait
        return obeyed

    def hurry(self) -> None:
        """Build the model now, if that has been put off."""
        self._wanted.set()

    def halt(self) -> None:
        """End after the step it is in, whatever else has been asked."""
        self.closing = True
        self._commands.put(lambda: None)  # it may be waiting for one
        self._wanted.set()

    # For commands, which it obeys itself.

    def train(self) -> None:
        """Train if there is a slot; otherwise wait in line to be called."""
        self._next_step_at = time.perf_counter()
        slot = self._turn.take(lambda: self._commands.put(self.called))
        self._worker.publish(state=TRAINING if slot else QUEUED, reason="")

    def called(self) -> None:
        """There may be a slot now; meanwhile the run may have been paused or stopped."""
        if self._worker.view.state == QUEUED:
            self.train()

    def set_pace(self, pace: float | None) -> None:
        """Take at most so many steps a second from now on; None is full speed."""
        self._next_step_at = time.perf_counter()
        self._worker.publish(pace=pace)

    # What it does.

    def run(self) -> None:
        """Build, obey and train until it is to end."""
        try:
            if self._live and "torch" not in sys.modules:
                self._wanted.wait(PAINTING_SECONDS)
            if not self.closing and self._worker.view.state != FAILED:  # a failed one is only looked at
                self._worker.build(self._questions, self._turn.quiet)
            self.ready.set()
            while not self.closing:
                self._obey_and_step()
                self._settle()
        except Exception as error:  # whatever it is, the page says it, and every other run goes on
            self._worker.fail(error)
            if not self.closing:  # a process that ends lets nothing be loaded any more
                note("fail", self._worker.view, f", {type(error).__name__}")
        finally:
            self._turn.leave()
            self.ready.set()
            self._worker.close()

    def _obey_and_step(self) -> None:
        """Obey what has been asked; then, where the run is training and its pace allows, take one step."""
        if self._worker.view.state != TRAINING:
            self._worker.keep()
            self._wait_for_a_command()
        elif (over := self._turn.over()) is not None:
            self._give_way(*over)
        else:
            self._train_at_pace()

    def _wait_for_a_command(self) -> None:
        measured = speed() is not None or not self._live
        try:
            self._commands.get(timeout=None if measured else CALM_SECONDS)()
        except queue.Empty:
            self._worker.calibrate(self._turn.quiet)

    def _train_at_pace(self) -> None:
        """Obey one command, or take the next step when it is time for it."""
        pace = self._worker.view.pace
        wait = 0.0 if pace is None else self._next_step_at - time.perf_counter()
        try:
            if wait > 0.0:
                self._commands.get(timeout=wait)()
            else:
                self._commands.get_nowait()()
        except queue.Empty:
            if pace is not None:  # never owe steps: after a slow one the rhythm starts anew
                self._next_step_at = max(self._next_step_at + 1.0 / pace, time.perf_counter())
            self._step()

    def _step(self) -> None:
        self._worker.step(alone=self.budget is not None)
        if self.budget is not None:
            self.budget -= 1
            if self.budget <= 0:
                self.budget = None
                if self._worker.view.state == TRAINING:
                    self._worker.publish(state=PAUSED)

    def _give_way(self, state: str, why: str) -> None:
        """The server's limits end this turn: the run is stopped, or paused because nobody looks."""
        reason = f"{state.capitalize()} at step {self._worker.view.step:,}: {why}"
        if state == STOPPED:
            self._worker.end(STOPPED, reason)
        else:
            self._worker.publish(state=state, reason=reason)
            note("neglect", self._worker.view)

    def _settle(self) -> None:
        """After each command and step: who neither trains nor waits needs no slot; a new state is logged."""
        view = self._worker.view
        if view.state not in (QUEUED, TRAINING):
            self._turn.leave()
        if view.state != self._noted and view.state in _EVENTS:
            self._noted = view.state
            note(_EVENTS[view.state], view)

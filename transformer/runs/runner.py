"""The thread of a run: it obeys between two steps, waits for its slot, and keeps its pace."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence

from transformer.errors import InputError
from transformer.recording.view import FAILED, FINISHED, PAUSED, QUEUED, STOPPED, TRAINING, RunView
from transformer.runs.calibration import speed
from transformer.runs.machine import give_back_memory
from transformer.runs.published import Published
from transformer.runs.queue import Lease
from transformer.runs.recorded_training import RecordedTraining
from transformer.storage.log import note
from transformer.tasks import Question

CALM_SECONDS = 3.0
"""So long nobody has asked for anything before the machine is measured."""
LEFT_ALONE = "Another process of this training has ended, and this one cannot go on without it."
_EVENTS = {TRAINING: "start", FINISHED: "finish", STOPPED: "stop"}
"""States whose beginning is logged; a pause is none, and what follows one no new start."""


class Runner(threading.Thread):
    """Alone touches model, optimiser and random state. Others `ask` it for things, which it then does itself.

    Args:
        published: the view of the run.
        training: the model at work.
        lease: what it may take of a server that others share.
        questions: the tracked words to begin with.
    """

    def __init__(
        self,
        published: Published,
        training: RecordedTraining,
        lease: Lease,
        questions: Sequence[Question],
    ) -> None:
        super().__init__(name=f"run-{published.view.id[:6]}", daemon=True)
        self.ready = threading.Event()
        """Set once there is something to see: the frame of step 0, or the reason why there is none."""
        self.closing = False
        """Whether it is to end."""
        self.budget: int | None = None
        """Steps until the next pause, where steps were asked for."""
        self.training = training
        self._published, self._lease, self._questions = published, lease, questions
        self._commands: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._next_step_at = 0.0  # on the clock, where there is a pace
        self._noted = published.view.state  # that was logged last, of a saved run in its time

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

        self._lease.look()  # who asks for something is there
        self._commands.put(obey)
        if not self.is_alive():
            obeyed.set()  # nobody is left to obey, and nobody is to wait
        return obeyed

    def halt(self) -> None:
        """End after the step it is in, whatever else has been asked."""
        self.closing = True
        self._commands.put(lambda: None)  # it may be waiting for one

    # For commands, which it obeys itself.

    def train(self) -> None:
        """Train if there is a slot; otherwise wait in line to be called."""
        self._next_step_at = time.perf_counter()
        slot = self._lease.take(lambda: self._commands.put(self.called))
        self._published.publish(state=TRAINING if slot else QUEUED, reason="")

    def called(self) -> None:
        """There may be a slot now; meanwhile the run may have been paused or stopped."""
        if self._view.state == QUEUED:
            self.train()

    def set_pace(self, pace: float | None) -> None:
        """Take at most so many steps a second from now on; None is full speed."""
        self._next_step_at = time.perf_counter()
        self._published.publish(pace=pace)

    # What it does.

    @property
    def _view(self) -> RunView:
        return self._published.view

    def run(self) -> None:
        """Build, obey and train until it is to end."""
        try:
            if not self.closing and self._view.state != FAILED:  # a failed one is only looked at
                self.training.build(self._questions, self._lease.quiet)
            self.ready.set()
            while not self.closing:
                self._obey_and_step()
                self._settle()
        except Exception as error:  # whatever it is, the page says it, and every other run goes on
            self.training.fail(explained(error))
            if not self.closing:  # a process that ends lets nothing be loaded any more
                note("fail", self._view, f", {type(error).__name__}")
        finally:
            self._lease.leave()
            self.ready.set()
            self.training.close()

    def _obey_and_step(self) -> None:
        """Obey what has been asked; then, where the run is training and its pace allows, take one step."""
        if self._view.state != TRAINING:
            if self._view.state != FAILED:
                self.training.develop()
            self.training.keep()
            self._wait_for_a_command()
        elif (over := self._lease.over()) is not None:
            self._give_way(*over)
        else:
            self._train_at_pace()

    def _wait_for_a_command(self) -> None:
        owes, measured = self.training.owes_a_past, speed() is not None or self._lease.limits is None
        try:
            self._commands.get(timeout=0.0 if owes else None if measured else CALM_SECONDS)()
        except queue.Empty:
            if owes:
                self.training.develop_past()
            else:
                self.training.calibrate(self._lease.quiet)

    def _train_at_pace(self) -> None:
        """Obey one command, or take the next step when it is time for it."""
        pace = self._view.pace
        wait = 0.0 if pace is None else self._next_step_at - time.perf_counter()
        if wait > 0.0 and self.training.owes_a_past:
            wait = 0.0
        try:
            if wait > 0.0:
                self._commands.get(timeout=wait)()
            else:
                self._commands.get_nowait()()
        except queue.Empty:
            if self.training.owes_a_past:
                self.training.develop_past()
            if pace is not None:
                if self._next_step_at > time.perf_counter():
                    return
                # Never owe steps: after a slow one the rhythm starts anew.
                self._next_step_at = max(self._next_step_at + 1.0 / pace, time.perf_counter())
            self._step()

    def _step(self) -> None:
        self.training.step(alone=self.budget is not None, watched=self._lease.watched)
        if self.budget is not None:
            self.budget -= 1
            if self.budget <= 0:
                self.budget = None
                if self._view.state == TRAINING:
                    self._published.publish(state=PAUSED)

    def _give_way(self, state: str, why: str) -> None:
        """The server's limits end this turn: the run is stopped, or paused because nobody looks."""
        reason = f"{state.capitalize()} at step {self._view.step:,}: {why}"
        if state == STOPPED:
            self.training.end(STOPPED, reason)
        else:
            self._published.publish(state=state, reason=reason)
            note("neglect", self._view)

    def _settle(self) -> None:
        """After each command and step: who neither trains nor waits needs no slot; a new state is logged."""
        view = self._view
        if view.state not in (QUEUED, TRAINING):
            self._lease.leave()
        if view.state != self._noted and view.state in _EVENTS:
            self._noted = view.state
            note(_EVENTS[view.state], view)
            if view.state in (FINISHED, STOPPED):
                self.training.keep()
                give_back_memory()


def explained(error: Exception) -> str:
    """A failure in words that name what went wrong and what to do."""
    text, kind = str(error)[:500], type(error).__name__
    if kind in ("MemoryError", "OutOfMemoryError") or "can't allocate memory" in text:
        advice = "There is not enough memory for this model; choose a smaller width or batch."
        return f"{advice} ({text})" if text else advice
    if kind.startswith("Dist") or (kind == "RuntimeError" and "gloo" in text):  # of torch.distributed
        return LEFT_ALONE
    if isinstance(error, InputError) or kind == "NotFinite":
        return text
    return f"{kind}: {text}"

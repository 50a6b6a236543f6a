"""One training in its own thread: it obeys commands between two steps and publishes what may be seen."""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from transformer.config import RunConfig, TrainConfig
from transformer.errors import InputError
from transformer.interventions import Interventions, check_interventions
from transformer.runs.calibration import speed
from transformer.runs.machine import check_machine
from transformer.runs.view import FAILED, FINISHED, IDLE, PAUSED, QUEUED, STOPPED, TRAINING, RunView
from transformer.runs.worker import Worker
from transformer.tasks import task_of

if TYPE_CHECKING:  # it imports torch, which a run loads in its own thread
    from transformer.runs.archive import Archive

PACES = (None, 20.0, 5.0, 1.0)
"""Most steps per second; None is full speed."""
MAX_CONTINUE = 100_000
MAX_WORDS = 12
"""Probes of one run; the oldest of a person's own gives way."""
PAINTING_SECONDS = 5.0
"""So long at most a watched run waits to load torch: a page that is being painted needs the processor."""
CALM_SECONDS = 3.0
"""So long nobody has asked for anything before the machine is measured."""


class Run:
    """The background thread of one training, and the commands it takes.

    The thread alone touches model, optimiser and random state. Everyone else reads `view` and sends commands.

    Args:
        config: what to train.
        words: probes to begin with; by default a few that fit the trained length.
        archive: a folder to keep the run in, written by the thread.
        live: whether to make frames for someone who watches; the losses are the same either way.
    """

    def __init__(
        self,
        config: RunConfig,
        *,
        words: tuple[str, ...] | None = None,
        archive: Archive | None = None,
        live: bool = True,
    ) -> None:
        self.config = config
        """As asked for; the view's is completed with what the task needs."""
        check_machine(config)
        if config.train.tensorboard and archive is None:
            raise InputError("Logging to TensorBoard needs a folder: give --out DIR.", "tensorboard")
        self.task = task_of(config)
        self._first = tuple(self.task.probes())
        self.questions = [self.task.question(word) for word in words or self._first]
        """The probes; changed by the thread alone."""
        self.ready = threading.Event()
        """Set once there is something to see: the frame of step 0, or the reason why there is none."""
        self._commands: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._wanted = threading.Event()  # somebody does not want to wait any longer
        self._closing = False
        self._budget: int | None = None  # steps until the next pause, where steps were asked for
        self._next_step_at = 0.0  # on the clock, where there is a pace
        self._live = live
        self._worker = Worker(config, archive, live)
        self._thread = threading.Thread(target=self._main, name=f"run-{self.view.id[:6]}", daemon=True)
        self._thread.start()

    # Commands: checked where they are given, obeyed by the thread between two steps. Each returns an event
    # that is set when it has been obeyed, for who wants to show the effect at once.

    @property
    def view(self) -> RunView:
        """What may be known of the run now."""
        return self._worker.view

    @property
    def id(self) -> str:
        """The unguessable name by which the run is addressed."""
        return self.view.id

    def build(self) -> None:
        """Build the untrained model now: the page is painted. Any command does the same."""
        self._wanted.set()

    def start(self, *, after: str | None = None) -> threading.Event:
        """Begin training; `after` names the run that this one grew out of."""

        def obey() -> None:
            if self.view.state == QUEUED:
                self._worker.publish(state=TRAINING)
                self._next_step_at = time.perf_counter()

        self._worker.publish(only_if=IDLE, state=QUEUED, after=after)
        return self._ask(obey)

    def pause(self) -> threading.Event:
        """Stand still after the present step."""
        return self._ask(lambda: self._when(TRAINING, PAUSED))

    def resume(self) -> threading.Event:
        """Go on after a pause."""

        def obey() -> None:
            self._budget = None
            self._when(PAUSED, TRAINING)

        return self._ask(obey)

    def advance(self, steps: int = 1) -> threading.Event:
        """Take this many steps, then stand still; also before the start and in mid-training.

        Raises:
            InputError: not a number of steps.
        """
        _check_steps(steps)

        def obey() -> None:
            if self.view.state in (IDLE, QUEUED, PAUSED, TRAINING):
                self._budget = steps
                self._next_step_at = time.perf_counter()
                self._worker.publish(state=TRAINING)

        return self._ask(obey)

    def stop(self) -> threading.Event:
        """End the run after the present step; it can be continued."""

        def obey() -> None:
            if self.view.state in (QUEUED, TRAINING, PAUSED):
                self._worker.end(STOPPED, f"Stopped at step {self.view.step:,}.")

        return self._ask(obey)

    def set_pace(self, pace: float | None) -> threading.Event:
        """Let the run take at most this many steps a second; None is full speed. Changes no loss.

        Raises:
            InputError: not one of `PACES`.
        """
        if pace not in PACES:
            known = ", ".join("full" if p is None else f"{p:g}" for p in PACES)
            raise InputError(f"A pace of {pace!r} does not exist; choose from {known}.", "pace")

        def obey() -> None:
            self._next_step_at = time.perf_counter()
            self._worker.publish(pace=pace)

        return self._ask(obey)

    def set_learning_rate(self, rate: float) -> threading.Event:
        """Change the highest rate of the plan from the next step on.

        Raises:
            InputError: not a positive number.
        """
        TrainConfig(learning_rate=rate)  # the same check as at the start

        def obey() -> None:
            self._worker.set_learning_rate(rate)

        return self._ask(obey)

    def continue_for(self, steps: int, rate: float) -> threading.Event:
        """Let a run that ended go on for more steps, freshly warmed up to this rate and decayed again.

        Raises:
            InputError: not a number of steps, not a rate, or a run that has failed.
        """
        _check_steps(steps)
        TrainConfig(learning_rate=rate)
        if self.view.state == FAILED:
            raise InputError("A failed run cannot go on; start a new one.", "run_continue")

        def obey() -> None:
            if self.view.state in (FINISHED, STOPPED):
                self._worker.continue_for(steps, rate)
                self._budget = None
                self._next_step_at = time.perf_counter()
                self._worker.publish(state=TRAINING)

        return self._ask(obey)

    def intervene(self, interventions: Interventions) -> threading.Event:
        """Go on without these heads and looks from the next step on, in any state; `NOTHING` gives all back.

        Raises:
            InputError: something that is not in the model, or that would leave a row nothing to look at in
                some word that this run trains on.
        """
        self._check(interventions)

        def obey() -> None:
            if self.view.interventions != interventions:
                self._worker.intervene(interventions)

        return self._ask(obey)

    def _check(self, interventions: Interventions) -> None:
        """Refuse what cannot be taken away from this run now. Raises InputError."""
        view = self.view
        if view.frame is None or view.state == FAILED:
            advice = "start a new one" if view.state == FAILED else "wait until its untrained model is built"
            raise InputError(f"This run cannot be changed ({view.state}); {advice}.", "intervene")
        for word in self.task.hardest([block.token for block in interventions.blocked if block.token]):
            batch = self.task.encode([word])
            check_interventions(
                interventions,
                view.frame.axes,
                self.config.model.n_heads,
                self.task.src_tokenizer.tokens(batch.src[0].tolist()),
                self.task.tgt_tokenizer.tokens(batch.tgt_in[0].tolist()),
                masks=self.config.model.masks,
            )

    def switch_mask(self, mask: str, on: bool) -> threading.Event:
        """Switch the causal or the padding mask from the next step on; whatever else is taken away stays so.

        Raises:
            InputError: there is no such mask, or something that was blocked by hand would then leave a row
                nothing to look at.
        """

        def switched(now: Interventions) -> Interventions:
            configured = self.config.model.masks
            masks = {**configured, **dict(now.masks), mask: on}
            differing = tuple((name, state) for name, state in masks.items() if state != configured.get(name))
            return replace(now, masks=differing)

        self._check(switched(self.view.interventions))

        def obey() -> None:
            wanted = switched(self.view.interventions)  # as it is by then
            if self.view.interventions != wanted:
                self._worker.intervene(wanted)

        return self._ask(obey)

    def add_word(self, text: str) -> str:
        """Make a person's word a probe, in any state: a frame of it is made at once.

        Returns:
            The word as it will be shown.

        Raises:
            InputError: a word that cannot be asked, or a run that has failed.
        """
        question = self.task.question(text)
        if self.view.state == FAILED:
            raise InputError("A failed run cannot be asked; start a new one.", "probe_words")

        def obey() -> None:
            if question in self.questions:
                return
            dropped = None
            if len(self.questions) >= MAX_WORDS:
                own = [q for q in self.questions if q.text not in self._first]
                dropped = (own or self.questions)[0]
                self.questions.remove(dropped)
            self.questions.append(question)
            self._worker.ask(question, instead_of=dropped)

        self._ask(obey)
        return question.text

    def close(self) -> threading.Event:
        """End the thread, and with it the training; the view stays readable."""

        def obey() -> None:
            if self.view.state in (QUEUED, TRAINING, PAUSED):
                self._worker.end(STOPPED, f"Stopped at step {self.view.step:,}.")
            self._closing = True

        return self._ask(obey)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the run has ended or stands still; for the command line and tests, not for pages."""
        end = None if timeout is None else time.monotonic() + timeout
        while self.view.active:
            if not self._thread.is_alive() or (end is not None and time.monotonic() > end):
                return False
            time.sleep(0.01)
        return True

    def join(self, timeout: float | None = 30.0) -> None:
        """Wait for a closed run's thread."""
        self._thread.join(timeout)

    # The thread.

    def _ask(self, command: Callable[[], None]) -> threading.Event:
        obeyed = threading.Event()

        def obey() -> None:
            command()
            obeyed.set()

        self._commands.put(obey)
        self._wanted.set()
        if not self._thread.is_alive():
            obeyed.set()  # nobody is left to obey, and nobody is to wait
        return obeyed

    def _main(self) -> None:
        try:
            if self._live and "torch" not in sys.modules:
                self._wanted.wait(PAINTING_SECONDS)
            self._worker.build(self.questions)
            self.ready.set()
            while not self._closing:
                self._obey_and_step()
        except Exception as error:  # whatever it is, the page says it, and every other run goes on
            self._worker.fail(error)
        finally:
            self.ready.set()

    def _obey_and_step(self) -> None:
        """Obey what has been asked; then, where the run is training and its pace allows, take one step."""
        if self.view.state != TRAINING:
            measured = speed() is not None or not self._live
            try:
                self._commands.get(timeout=None if measured else CALM_SECONDS)()
            except queue.Empty:
                self._worker.calibrate()
            return
        pace = self.view.pace
        wait = 0.0 if pace is None else self._next_step_at - time.perf_counter()
        try:
            if wait > 0.0:
                self._commands.get(timeout=wait)()
            else:
                self._commands.get_nowait()()
        except queue.Empty:
            if pace is not None:  # never owe steps: after a slow one the rhythm starts anew
                self._next_step_at = max(self._next_step_at + 1.0 / pace, time.perf_counter())
            self._worker.step(alone=self._budget is not None)
            if self._budget is not None:
                self._budget -= 1
                if self._budget <= 0:
                    self._budget = None
                    self._when(TRAINING, PAUSED)

    def _when(self, state: str, becomes: str) -> None:
        if self.view.state == state:
            self._next_step_at = time.perf_counter()
            self._worker.publish(state=becomes)


def _check_steps(steps: int) -> None:
    if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= MAX_CONTINUE:
        raise InputError(f"{steps!r} steps cannot be taken; choose from 1 to {MAX_CONTINUE:,}.", "steps")

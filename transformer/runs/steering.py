"""The commands that decide when a run trains: start, pause, single steps, pace, stop, and more steps."""

from __future__ import annotations

import threading

from transformer.config import TrainConfig
from transformer.errors import InputError
from transformer.runs.thread import RunThread
from transformer.runs.turn import Turn
from transformer.runs.view import FAILED, FINISHED, IDLE, PACES, PAUSED, QUEUED, STOPPED, TRAINING
from transformer.runs.worker import Worker

MAX_CONTINUE = 100_000


class Steering:
    """Commands are checked where they are given, and obeyed by the run's thread between two steps.

    Each returns an event that is set when it has been obeyed, for who wants to show the effect at once.
    """

    def __init__(self, worker: Worker, thread: RunThread, turn: Turn) -> None:
        self._worker, self._thread, self._turn = worker, thread, turn

    def start(self, *, after: str | None = None) -> threading.Event:
        """Begin training as soon as there is a slot; `after` names the run that this one grew out of."""
        self._worker.publish(only_if=IDLE, state=QUEUED, after=after)
        return self._thread.ask(self._thread.called)

    def pause(self) -> threading.Event:
        """Stand still after the present step, or wait no longer; another run may train meanwhile."""

        def obey() -> None:
            if self._worker.view.state in (QUEUED, TRAINING):
                self._worker.publish(state=PAUSED)

        return self._thread.ask(obey)

    def resume(self) -> threading.Event:
        """Go on after a pause, as soon as there is a slot."""

        def obey() -> None:
            self._thread.budget = None
            if self._worker.view.state == PAUSED:
                self._thread.train()

        return self._thread.ask(obey)

    def advance(self, steps: int = 1) -> threading.Event:
        """Take this many steps, then stand still; also before the start and in mid-training.

        Raises:
            InputError: not a number of steps.
        """
        _check_steps(steps)

        def obey() -> None:
            if self._worker.view.state in (IDLE, QUEUED, PAUSED, TRAINING):
                self._thread.budget = steps
                self._thread.train()

        return self._thread.ask(obey)

    def stop(self) -> threading.Event:
        """End the run after the present step; it can be continued."""

        def obey() -> None:
            if self._worker.view.state in (QUEUED, TRAINING, PAUSED):
                self._worker.end(STOPPED, f"Stopped at step {self._worker.view.step:,}.")

        return self._thread.ask(obey)

    def set_pace(self, pace: float | None) -> threading.Event:
        """Let the run take at most this many steps a second; None is full speed. Changes no loss.

        Raises:
            InputError: not one of `PACES`.
        """
        if pace not in PACES:
            known = ", ".join("full" if p is None else f"{p:g}" for p in PACES)
            raise InputError(f"A pace of {pace!r} does not exist; choose from {known}.", "pace")
        return self._thread.ask(lambda: self._thread.set_pace(pace))

    def continue_for(self, steps: int, rate: float) -> threading.Event:
        """Let a run that ended go on for more steps, freshly warmed up to this rate and decayed again.

        Raises:
            InputError: not a number of steps, more than the server allows, not a rate, or a run that has
                failed.
        """
        _check_steps(steps)
        if self._turn.limits is not None:
            self._turn.limits.check_steps(self._worker.view.step + steps)
        TrainConfig(learning_rate=rate)
        if self._worker.view.state == FAILED:
            raise InputError("A failed run cannot go on; start a new one.", "run_continue")

        def obey() -> None:
            if self._worker.view.state in (FINISHED, STOPPED):
                self._worker.continue_for(steps, rate)
                self._thread.budget = None
                self._thread.train()

        return self._thread.ask(obey)


def _check_steps(steps: int) -> None:
    if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= MAX_CONTINUE:
        raise InputError(f"{steps!r} steps cannot be taken; choose from 1 to {MAX_CONTINUE:,}.", "steps")

"""The thread of a run, or of the runs of a race, which it trains in turn."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from transformer.recording.view import FAILED, QUEUED, TRAINING
from transformer.runs.runner import Runner


class RunThread:
    """Trains one run, or several in turn: of those that train, the one that is behind takes the next step.

    It begins with the first run that it takes, and ends when it has none. Its runs share one slot.

    Args:
        name: of the thread.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.by_seconds = False
        """Whether the run behind is the one with the least training time, instead of the fewest steps."""
        self._runners: list[Runner] = []
        self._awake = threading.Event()
        self._lock = threading.Lock()  # so that no run is added to a thread that has just ended
        self._alive = False

    def take(self, runner: Runner) -> None:
        """Train this run too from now on. No other thread may have it any more."""
        runner.lease.join(self)
        runner.awake = self._awake
        with self._lock:
            self._runners.append(runner)
            if not self._alive:
                self._alive = True
                threading.Thread(target=self._main, name=self.name, daemon=True).start()
        self._awake.set()

    def _main(self) -> None:
        try:
            while self._has_runs():
                self._awake.clear()
                for runner in list(self._runners):
                    self._tend(runner)
                self._step_or_wait()
        except BaseException:  # such as SystemExit
            with self._lock:
                left, self._runners, self._alive = self._runners, [], False
            for runner in left:
                runner.end()
            raise

    def _has_runs(self) -> bool:
        with self._lock:
            self._alive = bool(self._runners)
            return self._alive

    def _tend(self, runner: Runner) -> None:
        """Do what a run needs between steps; end it, or hand it to another thread, if it is to leave."""
        closing = runner.closing  # read first: commands sent before are still carried out
        self._do(runner, runner.tend)
        failed = runner.view.state == FAILED  # it can only be viewed
        if not closing and not failed and runner.move is None:
            return
        with self._lock:
            self._runners.remove(runner)
        if closing or failed:
            runner.end()
        elif (move := runner.move) is not None:
            # The run takes its slot along, so the others need another one.
            rest = self._runners if runner.view.state in (QUEUED, TRAINING) else []
            for other in rest:
                other.lease.leave()
            runner.move = None
            move(runner)
            for other in rest:
                self._do(other, other.called)

    def _step_or_wait(self) -> None:
        training = [
            runner for runner in self._runners if runner.view.state == TRAINING and not runner.closing
        ]
        behind = min(training, key=self._progress, default=None)
        wait = None if behind is None else behind.wait
        if behind is not None and wait == 0.0:
            self._do(behind, partial(behind.step, len(training)))
        elif self._runners and not any(runner.has_backfill for runner in self._runners):
            self._awake.wait(wait)

    def _progress(self, runner: Runner) -> float:
        return runner.view.seconds if self.by_seconds else runner.view.step

    @staticmethod
    def _do(runner: Runner, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:  # the page shows any error, and all other runs go on
            runner.fail(error)

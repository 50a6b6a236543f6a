"""What a run's thread does: build the model, take steps, change it, end, and let others see and keep it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from transformer.config import RunConfig
from transformer.insight.names import examples_of
from transformer.interventions import Interventions
from transformer.runs.calibration import calibrate, threads_of
from transformer.runs.failures import explained
from transformer.runs.keeping import Keeping
from transformer.runs.looks import Looks
from transformer.runs.machine import processors
from transformer.runs.published import Published
from transformer.runs.view import FAILED, FINISHED, STOPPED, RunView, untrained
from transformer.tasks import Question

if TYPE_CHECKING:  # torch comes with these; it is loaded by `build`, in the run's own thread
    from transformer.runs.archive import Archive, Training
    from transformer.runs.resuming import Memory
    from transformer.runs.saved import Saved
    from transformer.training.loop import Report
    from transformer.training.spread import Spread
    from transformer.training.state import TrainState


class Worker:
    """The model of one run at work; knows no queue and no command. Its methods are for the run's thread.

    Only `view` may be read from elsewhere, and `publish` called.
    """

    def __init__(
        self,
        config: RunConfig,
        archive: Archive | None,
        live: bool,
        saved: Saved | None = None,
        spread: Spread | None = None,
    ) -> None:
        self._folder, self._spread = None if saved is None else saved.folder, spread
        self._published = Published(untrained(config) if saved is None else saved.view)
        self._looks = Looks(self._published, live)
        self._keeping = Keeping(self._published, archive, None if saved is None else saved.view)
        self._built = False  # before that there is nothing to keep

    @property
    def view(self) -> RunView:
        """What may be known of the run now."""
        return self._published.view

    def publish(self, *, only_if: str | None = None, **changes: Any) -> None:
        """Replace the view by one with these changes; with `only_if`, only where that is the state."""
        self._published.publish(only_if=only_if, **changes)

    def build(self, questions: list[Question], quiet: Callable[[], bool]) -> None:
        """Load torch and build the model: the untrained one, looked at once, or that of a saved run.

        Args:
            quiet: tells whether nothing trains in this process.
        """
        import torch

        # A saved run goes on with as many threads as before: sums of another order would be other sums.
        threads = min(self.view.threads, processors()) or threads_of(self.view.config, quiet)
        torch.set_num_threads(threads)
        self.state, memory = self._trained_so_far()
        self._looks.begin(self.state, questions)
        self.publish(
            config=self.state.config,
            device=str(self.state.device),
            threads=threads,
            parameters=self.state.n_parameters,
        )
        if memory is None:
            self._looks.first()
        else:
            self._looks.go_on(memory)
        self._reports = self._train()
        self._built = True

    def _trained_so_far(self) -> tuple[TrainState, Memory | None]:
        from transformer.runs.resuming import unpack
        from transformer.training.state import TrainState

        if self._folder is None:
            return TrainState.begin(self.view.config, self._spread), None
        return unpack(self._folder, self.view.config)

    def _train(self) -> Iterator[Report]:
        from transformer.training.loop import train

        return train(self.state)

    def calibrate(self, quiet: Callable[[], bool]) -> None:
        """Measure how fast this machine is, for those who wonder how long a run will take."""
        import torch

        calibrate(quiet)
        torch.set_num_threads(self.view.threads)

    # What is learned.

    def step(self, *, alone: bool) -> None:
        """Take one training step; `alone` where a person asked for this very one."""
        began = time.perf_counter()
        report = next(self._reports, None)
        if report is None:
            self.end(FINISHED, self._how_it_ended())
            return
        self._count(report, self.view.seconds + time.perf_counter() - began)
        ended = self.state.goal_reached or report.step == self.state.stretch.last
        self._looks.after_step(report, ended=ended, alone=alone)
        if ended:
            self.end(FINISHED, self._how_it_ended())
        elif self._keeping.due:
            self.keep()

    def _count(self, report: Report, seconds: float) -> None:
        """Publish what a step has brought; its numbers go into the table as soon as they have been read."""
        view = self.view
        if report.evaluation is not None:
            self.publish(
                first_step_at=dict(self.state.first_step_at),
                goal_reached=self.state.goal_reached,
                everyday=report.evaluation.everyday or view.everyday,
            )
        numbers = (report.losses, report.token_accuracies, report.gradient_norms, report.learning_rates)
        view.metrics.add(
            self.state.step,
            numbers,
            seconds=seconds,
            tokens_per_second=report.tokens_per_second,
            evaluation=report.evaluation,
        )
        speed = view.metrics.speed()
        speed = speed if view.pace is None else min(speed, view.pace)
        self.publish(step=report.step, seconds=seconds, steps_per_second=speed)

    def set_learning_rate(self, rate: float) -> None:
        """Scale the plan to another highest rate."""
        self.state.set_learning_rate(rate)
        self.publish(learning_rate=rate)

    def continue_for(self, steps: int, rate: float) -> None:
        """Plan more steps after the end."""
        self.state.continue_for(steps, rate)
        self._reports = self._train()
        self.publish(reason="", planned=self.state.stretch.last, learning_rate=rate, goal_reached=False)

    def intervene(self, interventions: Interventions) -> None:
        """Train without these heads and looks from the next step on, and look at once what that does."""
        from transformer.training.evaluation import LIVE_WORDS, evaluate

        changed, task = interventions.change_text(self.view.interventions), self.state.task
        self.state.intervene(interventions)
        if self.view.state in (FINISHED, STOPPED):  # asked as at the end, so that the numbers can be compared
            self._looks.evaluation = evaluate(self.state, task.held_out(), task.everyday())
            self.publish(
                everyday=self._looks.evaluation.everyday,
                reason=f"At step {self.view.step:,}, {changed}: {self._right()}.",
            )
        else:
            self._looks.evaluation = evaluate(self.state, task.held_out()[:LIVE_WORDS])
        self.publish(interventions=interventions)  # not before: who sees it is shown what it does
        self._looks.after_change(changed)

    def ask(self, question: Question, instead_of: Question | None) -> None:
        """Record one more word from now on, perhaps in place of another, and at once."""
        self._looks.ask(question, instead_of)

    # How it ends.

    def end(self, state: str, reason: str) -> None:
        """The run has come to its end, perhaps not for good."""
        self._read_all()
        self._looks.at_end()
        self.publish(state=state, reason=reason)

    def fail(self, error: Exception) -> None:
        """The run ends with what went wrong; the frames up to here stay."""
        self.publish(state=FAILED, reason=explained(error))

    def _read_all(self) -> None:
        """Bring over the numbers that are still on the device."""
        from transformer.training.loop import read_numbers

        self.view.metrics.add(self.state.step, read_numbers(self.state), seconds=self.view.seconds)

    def _how_it_ended(self) -> str:
        view = self.view
        if self.state.goal_reached:
            how = f"Goal reached at step {view.step:,}"
        else:
            how = f"All {view.planned:,} steps are done"
        return f"{how}: {self._right()} after {view.seconds:.1f} s."

    def _right(self) -> str:
        found, things = self._looks.evaluation, examples_of(self.view.config.train.task)
        return f"{found.right:,} of {found.total:,} held-out {things} right"

    # What is kept.

    def keep_in(self, archive: Archive) -> None:
        """Keep the run in a folder from now on."""
        self._keeping.move_to(archive)

    def keep(self) -> None:
        """Hand to the folder what it does not hold yet, without waiting for it."""
        if self._built and self._keeping.lacks:
            if self.view.state != FAILED:
                self._read_all()  # what is unread on the device is no part of what is kept
            self._keeping.hand(None if self.view.state == FAILED else self._training)

    @property
    def kept(self) -> bool:
        """Whether a folder holds the run as it is now."""
        return self._keeping.whole

    def close(self) -> None:
        """Wait until the folder holds all there is, or the disk has refused it; then let go of the model."""
        self.keep()
        self._keeping.close()
        self._built = False
        self._looks.end()
        for held in ("state", "_reports"):  # where it could not be built, it may hold half of it
            vars(self).pop(held, None)

    def _training(self) -> Training:
        from transformer.runs.resuming import pack

        return pack(self.state, self._looks.memory())

"""The training of one run together with its recording: its steps, changes to it, and its end."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from transformer.config import TASK_INFO
from transformer.errors import InputError
from transformer.recording.view import FINISHED, STOPPED, Publisher, RunView
from transformer.recording.weights import Weights
from transformer.runs.machine import processors
from transformer.runs.queue import ASLEEP_SECONDS
from transformer.runs.run_recorder import RunRecorder
from transformer.shared.interventions import Interventions
from transformer.storage.format import Training
from transformer.storage.saved import Saved, read_training
from transformer.tasks import Question
from transformer.training.checkpoint import Progress, packed, unpacked
from transformer.training.evaluation import evaluate
from transformer.training.loop import Report, read_numbers, train
from transformer.training.state import TrainState

if TYPE_CHECKING:  # distributed imports torch.distributed
    from transformer.runs.untrained import Untrained
    from transformer.training.distributed import Distributed


@dataclass(frozen=True, kw_only=True)
class RecordingState:
    """State of the recording that is saved with the training, so that a resumed run can go on recording."""

    moments: tuple[list[tuple[str, int]], int, bool]
    """The state of `Moments`, which finds the moments."""


@dataclass(frozen=True, kw_only=True)
class TrainingFacts:
    """What a file keeps of a training beside its arrays."""

    progress: Progress
    memory: RecordingState


class TrainingSession:
    """Trains the model of one run and records it; a recording without frames begins with the present model.

    Must be built and used in one thread: that of the run, or the one that builds untrained models.

    Args:
        published: holds the view of the run, which is replaced during training.
        questions: the tracked words; the recording changes this list.
        weights: stores the weights of recorded steps; for a saved run, it already holds the earlier ones.
        every_step: whether to record steps between evaluations too, as far as the share of time for recording
            allows.
        saved: a saved run to continue.
        begun: the untrained model of these settings and words, which the view and `weights` hold already.
        distributed: set if other processes, led by this one, train the same model.

    Raises:
        InputError: the saved training is damaged or of another model, or the device is not available.
    """

    def __init__(
        self,
        published: Publisher,
        questions: list[Question],
        weights: Weights | None = None,
        *,
        every_step: bool = True,
        saved: Saved | None = None,
        begun: Untrained | None = None,
        distributed: Distributed | None = None,
    ) -> None:
        self._published, config = published, published.view.config
        # A saved run keeps its number of threads, if there are as many processors: another number would
        # change the order of sums.
        self._threads = min(self._view.threads, processors()) or config.threads or 1
        self.use_threads()
        memory = None if begun is None else begun.memory
        if saved is None:
            self.state = TrainState.begin(config, distributed)
        else:
            self.state, memory = unpack(saved)
        weights = Weights() if weights is None else weights
        self.recording = RunRecorder(self.state, published, questions, weights, every_step=every_step)
        published.publish(
            config=self.state.config,
            device=str(self.state.device),
            threads=self._threads,
            parameters=self.state.n_parameters,
        )
        if memory is not None:
            self.recording.moments.restore(self._view.moments, memory.moments)
            self.recording.resume()
        if not self._view.frames:
            self.recording.begin(evaluate(self.state, self.state.task.live_words()))
        self._reports = train(self.state)

    @property
    def _view(self) -> RunView:
        return self._published.view

    # Training.

    def use_threads(self) -> None:
        """Let torch compute with the CPU threads of this run; the other runs of a race may have others."""
        torch.set_num_threads(self._threads)

    def step(self, *, alone: bool, watched: bool, runs: int = 1) -> None:
        """Take one training step.

        Args:
            alone: whether this is one of the steps that a user asked for with `Run.advance`.
            watched: whether there are viewers.
            runs: number of runs that take turns in this thread.

        Raises:
            NotFinite: the loss, the gradient or an attention weight is infinite or NaN.
        """
        state = self.state
        if watched and (state.step + 1) % state.config.train.evaluate_every == 0:
            self.recording.show_pending()  # an evaluation takes as long as many steps
        began, spent = time.perf_counter(), time.thread_time()
        report = next(self._reports, None)
        if report is None:  # a saved run that was at its end
            self.end(FINISHED, self._how_it_ended())
            return
        computed, took = time.thread_time() - spent, time.perf_counter() - began
        self.recording.scheduler.trained(computed)
        self._count(report, self._view.seconds + (took if took < ASLEEP_SECONDS else computed))
        ended = state.goal_reached or report.step == state.phase.last
        self.recording.record(report, ended=ended, alone=alone, watched=watched, runs=runs)
        if ended:
            self.end(FINISHED, self._how_it_ended())

    def _count(self, report: Report, seconds: float) -> None:
        """Publish the results of a step, and add the numbers that have been read from the device."""
        view = self._view
        if report.evaluation is not None:
            self._published.publish(
                first_step_at=dict(self.state.first_step_at),
                goal_reached=self.state.goal_reached,
                everyday=report.evaluation.everyday or view.everyday,
                right=(report.evaluation.right, report.evaluation.total),
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
        self._published.publish(step=report.step, seconds=seconds, steps_per_second=speed)

    # Changes.

    def set_learning_rate(self, rate: float) -> None:
        """Scale the learning rates of the plan to another peak rate."""
        self.state.set_learning_rate(rate)
        self._published.publish(learning_rate=rate)

    def continue_for(self, steps: int, rate: float) -> None:
        """Plan more steps from here, with a new warm-up to this peak rate."""
        self.state.continue_for(steps, rate)
        self._reports = train(self.state)
        self._published.publish(
            reason="", planned=self.state.phase.last, learning_rate=rate, goal_reached=False
        )

    def intervene(self, interventions: Interventions) -> None:
        """Apply other interventions from the next step on, and evaluate and record their effect at once."""
        if interventions == self._view.interventions:
            return
        self.recording.compute()
        changed, task = interventions.change_text(self._view.interventions), self.state.task
        self.state.intervene(interventions)
        if self._view.state in (FINISHED, STOPPED):
            # Evaluated as at the end of a run, so that the numbers can be compared.
            evaluation = evaluate(self.state, task.held_out(), task.corpus.everyday())
            right = self._right(evaluation.right, evaluation.total)
            self._published.publish(
                everyday=evaluation.everyday, reason=f"At step {self._view.step:,}, {changed}: {right}."
            )
        else:
            evaluation = evaluate(self.state, task.live_words())
        self.recording.moments.intervention(self.state.step, changed)
        # Published only now: a viewer that sees the intervention must also see its effect.
        self._published.publish(interventions=interventions, right=(evaluation.right, evaluation.total))
        self.recording.record_now([evaluation])

    # End, and state to save.

    def end(self, state: str, reason: str) -> None:
        """Record the last step, and publish how the run has ended; it may be continued later."""
        self._read_numbers()
        self.recording.record_last()
        self._published.publish(state=state, reason=reason)

    def catch_up(self) -> None:
        """Bring the view up to date with numbers that are still on the device and with pending steps."""
        self._read_numbers()
        self.recording.compute()

    def pack(self) -> Training:
        """Copy everything that a file keeps of the training. Call `catch_up` first."""
        arrays, progress = packed(self.state)
        return arrays, TrainingFacts(progress=progress, memory=self.memory())

    def memory(self) -> RecordingState:
        """The state of the recording."""
        return RecordingState(moments=self.recording.moments.state())

    def _read_numbers(self) -> None:
        self._view.metrics.add(self.state.step, read_numbers(self.state), seconds=self._view.seconds)

    def _how_it_ended(self) -> str:
        view = self._view
        if self.state.goal_reached:
            how = f"Goal reached at step {view.step:,}"
        else:
            how = f"All {view.planned:,} steps are done"
        return f"{how}: {self._right(*(view.right or (0, 0)))} after {view.seconds:.1f} s."

    def _right(self, right: int, total: int) -> str:
        return f"{right:,} of {total:,} test {TASK_INFO[self._view.config.train.task].plural} right"


def unpack(saved: Saved) -> tuple[TrainState, RecordingState]:
    """The training of a saved run, and the state of its recording.

    Raises:
        InputError: it is damaged, or of another model; or the device is not available.
    """
    (arrays, facts), view = read_training(saved.path, TrainingFacts), saved.view
    if (view.step, view.planned) != (facts.progress.step, facts.progress.stretch.last):
        raise InputError("The saved training mixes two different steps or plans.")
    return unpacked(view.config, arrays, facts.progress), facts.memory

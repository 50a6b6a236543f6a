"""What a run's thread does: build the model, take steps, look at it, publish what may be seen."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.insight.moments import Moment, Moments
from transformer.insight.names import examples_of
from transformer.insight.scores import THRESHOLD
from transformer.interventions import NOTHING, Interventions
from transformer.recording.snapshot import Snapshot, snapshot_is_due
from transformer.recording.timeline import Timeline, frame_is_due
from transformer.runs.calibration import calibrate, threads_of
from transformer.runs.metrics import Metrics
from transformer.runs.view import FAILED, FINISHED, IDLE, STOPPED, RunView
from transformer.tasks import Question

if TYPE_CHECKING:  # torch comes with these; it is loaded by `build`, in the run's own thread
    from transformer.recording.recorder import Recorder
    from transformer.runs.archive import Archive
    from transformer.training.evaluation import Evaluation
    from transformer.training.loop import Report
    from transformer.training.state import TrainState

EVERY_STEP_UP_TO = 5.0
"""At this pace or less, every step is a frame."""
LIVE_SECONDS, AT_LEAST_SECONDS = 0.5, 3.0
"""At full speed a watched run makes a frame this often where that is cheap, and so often in any case."""
FIRST_STEPS = 5
"""So many steps are frames whatever that costs: untrained is when most changes."""
LOOKING_SHARE, LOOKING_ADVANCE = 0.03, 0.05
"""At full speed all frames may take this share of the training time, and so many seconds more: those that no
evaluation needs wait until then."""


class Worker:
    """The model of one run at work; knows no queue and no command. Its methods are for the run's thread.

    Only `view` may be read from elsewhere, and `publish` called.
    """

    def __init__(self, config: RunConfig, archive: Archive | None, live: bool) -> None:
        self._archive, self._live = archive, live
        self._publishing = threading.Lock()
        self._last_frame_at = 0.0
        self._looking = 0.0  # seconds that frames have taken since training began
        self._timeline = Timeline()
        self._moments = Moments()
        self._metrics = Metrics()
        self.view = RunView(
            id=secrets.token_urlsafe(16),
            config=config,
            state=IDLE,
            reason="",
            step=0,
            planned=config.train.steps,
            seconds=0.0,
            steps_per_second=0.0,
            pace=None,
            learning_rate=config.train.learning_rate,
            device="",
            threads=0,
            parameters=0,
            frames=(),
            snapshots=(),
            moments=(),
            interventions=NOTHING,
            metrics=self._metrics,
            first_step_at={},
            goal_reached=False,
            everyday=None,
            turned_at=None,
            after=None,
        )

    @property
    def _things(self) -> str:
        return examples_of(self.view.config.train.task)

    def publish(self, *, only_if: str | None = None, **changes: Any) -> bool:
        """Replace the view by one with these changes; with `only_if`, only where that is the state."""
        with self._publishing:  # the thread and `Run.start` both publish; readers take the reference unlocked
            if only_if is not None and self.view.state != only_if:
                return False
            self.view = replace(self.view, **changes)
            return True

    def build(self, questions: list[Question]) -> None:
        """Load torch, build the untrained model, look at it once."""
        import torch

        from transformer.recording.recorder import Recorder
        from transformer.training.evaluation import LIVE_WORDS, evaluate
        from transformer.training.state import TrainState

        threads = threads_of(self.view.config)
        torch.set_num_threads(threads)
        self.state: TrainState = TrainState.begin(self.view.config)
        self._recorder: Recorder = Recorder(self.state.model, self.state.task, self.state.decoding)
        for question in questions:
            self._recorder.add(question)
        self.publish(
            config=self.state.config,
            device=str(self.state.device),
            threads=threads,
            parameters=self.state.n_parameters,
        )
        self._evaluation = evaluate(self.state, self.state.task.held_out()[:LIVE_WORDS])
        if self._archive is not None:
            self._archive.open(self.view, self.state.task)
        self._make_frame()
        self._take_snapshot()
        self._reports = self._train()

    def calibrate(self) -> None:
        """Measure how fast this machine is, for those who wonder how long a run will take."""
        import torch

        calibrate()
        torch.set_num_threads(self.view.threads)

    def _train(self) -> Iterator[Report]:
        from transformer.training.loop import train

        return train(self.state)

    def ask(self, question: Question, instead_of: Question | None) -> None:
        """Record one more word from now on, perhaps in place of another, and at once."""
        if instead_of is not None:
            self._recorder.questions.remove(instead_of)
        self._recorder.add(question)
        if self._make_frame():
            self._note_moments()
            self._take_snapshot()

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

        changed, things = interventions.change_text(self.view.interventions), self._things
        self.state.intervene(interventions)
        task, ended = self.state.task, self.view.state in (FINISHED, STOPPED)
        if ended:  # asked as at the end, so that the numbers can be compared
            self._evaluation = evaluate(self.state, task.held_out(), task.everyday())
            right, asked = self._evaluation.right, self._evaluation.total
            self.publish(
                everyday=self._evaluation.everyday,
                reason=f"At step {self.view.step:,}, {changed}: "
                f"{right:,} of {asked:,} held-out {things} right.",
            )
        else:
            self._evaluation = evaluate(self.state, task.held_out()[:LIVE_WORDS])
        self._moments.intervention(self.state.step, changed)
        self.publish(interventions=interventions)  # not before: who sees it is shown what it does
        self._make_frame()
        self._note_moments()
        self._take_snapshot()
        if self._archive is not None:
            self._archive.note_change(self.view, self.state)

    def step(self, *, alone: bool) -> None:
        """Take one training step; `alone` where a person asked for this very one."""
        began = time.perf_counter()
        report = next(self._reports, None)
        if report is None:
            self.end(FINISHED, self._how_it_ended())
            return
        if report.evaluation is not None:
            self._evaluation = report.evaluation
        seconds = self.view.seconds + time.perf_counter() - began
        self._recorder.drawn.note(report.step, report.words)
        self._count(report, seconds)
        ended = self.state.goal_reached or report.step == self.state.stretch.last
        self.publish(step=report.step, seconds=seconds, steps_per_second=self._speed())
        found = self._moments.accuracy(report.step, self.state.first_step_at, self._things)
        found += self._moments.losses(*self._metrics.columns("step", "loss"))
        if ended or found or self._frame_is_due(report, alone):
            found += self._make_frame()
        if found:
            self._note_moments()
        if ended or found or (snapshot_is_due(report.step) and not self._large):
            self._take_snapshot()
        if self._archive is not None:
            self._archive.note_step(self.view, self.state)
        if ended:
            self.end(FINISHED, self._how_it_ended())

    def _count(self, report: Report, seconds: float) -> None:
        """Add the steps since the last reading to the table, the newest with its evaluation."""
        if report.evaluation is not None:
            self.publish(
                first_step_at=dict(self.state.first_step_at),
                goal_reached=self.state.goal_reached,
                everyday=report.evaluation.everyday or self.view.everyday,
            )
        numbers = (report.losses, report.token_accuracies, report.gradient_norms, report.learning_rates)
        self._append(numbers, seconds, report.tokens_per_second, report.evaluation)

    def _append(
        self,
        numbers: tuple[tuple[float, ...], ...],
        seconds: float,
        tokens_per_second: float,
        evaluation: Evaluation | None,
    ) -> None:
        """Rows for the steps that have been read; the evaluation belongs to the newest."""
        first = self.state.step - len(numbers[0]) + 1
        for step, (loss, accuracy, norm, rate) in enumerate(zip(*numbers, strict=True), start=first):
            values: dict[str, Any] = {}
            if evaluation is not None and step == evaluation.step:
                values = {
                    "held_out_loss": evaluation.loss,
                    "free_loss": evaluation.free_loss,
                    "held_out_token_accuracy": evaluation.token_accuracy,
                    "exact": evaluation.exact,
                    "bleu": evaluation.bleu,
                    "chrf": evaluation.chrf,
                }
            self._metrics.append(
                step=step,
                loss=loss,
                token_accuracy=accuracy,
                learning_rate=rate,
                gradient_norm=norm,
                tokens_per_second=tokens_per_second,
                seconds=seconds,
                **values,
            )

    def _speed(self) -> float:
        """Steps per second over about the last second, or what the pace allows."""
        seconds, steps = self._metrics.columns("seconds", "step")
        if len(seconds) < 2:
            return 0.0
        first = max(0, min(len(seconds) - 2, int(seconds.searchsorted(seconds[-1] - 1.0))))
        speed = float((steps[-1] - steps[first]) / max(seconds[-1] - seconds[first], 1e-9))
        return speed if self.view.pace is None else min(speed, self.view.pace)

    def _frame_is_due(self, report: Report, alone: bool) -> bool:
        """Evaluations are frames; for someone who watches, so are early steps and about two a second."""
        if report.evaluation is not None:
            return True
        if not self._live:
            return False
        pace = self.view.pace
        if alone or (pace is not None and pace <= EVERY_STEP_UP_TO):
            return True
        since = time.perf_counter() - self._last_frame_at
        spent = self._looking > LOOKING_SHARE * self.view.seconds + LOOKING_ADVANCE
        if spent and pace is None and report.step > FIRST_STEPS:
            return since >= AT_LEAST_SECONDS
        return frame_is_due(report.step) or since >= LIVE_SECONDS

    def _take_snapshot(self) -> None:
        """Keep the weights of this step."""
        weights = {
            name: tensor.cpu().numpy().copy() for name, tensor in self.state.model.state_dict().items()
        }
        snapshot = Snapshot(step=self.state.step, weights=weights, interventions=self.view.interventions)
        self._large = self._timeline.is_large(snapshot.nbytes)
        self._timeline.add_snapshot(snapshot)
        self.publish(snapshots=self._timeline.snapshots)
        if self._archive is not None:
            self._archive.note_snapshot(snapshot)

    def _note_moments(self) -> None:
        """What is recorded of moments stays: of the step of each, and of this one, at which it was found."""
        for step in (self.state.step, *(found.step for found in self._moments.found)):
            self._timeline.protect(step)
        self.publish(moments=self._moments.found)

    def _make_frame(self) -> tuple[Moment, ...]:
        """Look at the model now.

        Returns:
            The moments that this look has found.
        """
        from transformer.training.loop import NotFinite

        began = time.perf_counter()
        steps, losses = self._metrics.columns("step", "loss")
        read = len(steps) > 0 and steps[-1] == self.state.step  # off the CPU the newest loss may be unread
        frame = self._recorder.frame(
            step=self.state.step,
            seconds=self.view.seconds,
            loss=float(losses[-1]) if read else None,
            exact=(self._evaluation.right, self._evaluation.total),
            exact_step=self._evaluation.step,
            by_length=self._evaluation.by_length,
            held_out_loss=self._evaluation.loss,
            free_loss=self._evaluation.free_loss,
            token_accuracy=self._evaluation.token_accuracy,
            bleu=self._evaluation.bleu,
            chrf=self._evaluation.chrf,
            samples=self._evaluation.samples,
        )
        if not all(np.isfinite(scores).all() for scores in frame.scores.values()):
            raise NotFinite(
                f"At step {frame.step} the attention weights are no numbers any more. "
                "Start again with a lower learning rate."
            )
        self._timeline.add(frame)
        turned = self.view.turned_at
        (site, head), score = frame.best
        if turned is None and score >= THRESHOLD:
            turned = (frame.step, site, head)
        self.publish(frames=self._timeline.frames, turned_at=turned)
        if self._archive is not None:
            self._archive.note_frame(frame)
        self._last_frame_at = time.perf_counter()
        if frame.step > 0:
            self._looking += self._last_frame_at - began
        return self._moments.heads(frame.step, frame.scores, frame.aim)

    def _how_it_ended(self) -> str:
        view, exact = self.view, self._evaluation
        if self.state.goal_reached:
            how = f"Goal reached at step {view.step:,}"
        else:
            how = f"All {view.planned:,} steps are done"
        right = f"{exact.right:,} of {exact.total:,} held-out {self._things} right"
        return f"{how}: {right} after {view.seconds:.1f} s."

    def end(self, state: str, reason: str) -> None:
        """The run has come to its end, perhaps not for good."""
        from transformer.training.loop import read_numbers

        self._append(read_numbers(self.state), self.view.seconds, float("nan"), None)
        if self.view.frame is None or self.view.frame.step != self.state.step:
            self._make_frame()
            self._note_moments()
        if self.view.snapshots[-1].step != self.state.step:
            self._take_snapshot()
        self.publish(state=state, reason=reason)
        if self._archive is not None:
            self._archive.note_change(self.view, self.state)

    def fail(self, error: Exception) -> None:
        """The run ends with what went wrong; the frames up to here stay."""
        self.publish(state=FAILED, reason=_explained(error))
        if self._archive is not None:
            try:
                self._archive.close(self.view)
            except OSError as trouble:  # perhaps the very reason why the run has failed
                self.publish(reason=f"{self.view.reason} The folder is not up to date ({trouble.strerror}).")


def _explained(error: Exception) -> str:
    """A failure in words that name what went wrong and what to do."""
    text, kind = str(error)[:500], type(error).__name__
    if kind in ("MemoryError", "OutOfMemoryError") or "can't allocate memory" in text:
        advice = "There is not enough memory for this model; choose a smaller width or batch."
        return f"{advice} ({text})" if text else advice
    if isinstance(error, InputError) or kind == "NotFinite":
        return text
    return f"{kind}: {text}"

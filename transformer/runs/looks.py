"""When a run's thread looks at its model, and what it sees: frames, weights and moments."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from transformer.insight.moments import Moment, Moments
from transformer.insight.names import examples_of
from transformer.insight.scores import THRESHOLD
from transformer.recording.snapshot import Snapshot, snapshot_is_due
from transformer.recording.timeline import Timeline, frame_is_due
from transformer.runs.published import Published
from transformer.tasks import Question

if TYPE_CHECKING:  # torch comes with these; it is loaded by `begin`, in the run's own thread
    from transformer.runs.resuming import Memory
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


class Looks:
    """All that is seen of one run. Its methods are for the run's thread.

    Args:
        published: where it can be seen.
        live: whether to make frames for someone who watches, beside those of evaluations.
    """

    def __init__(self, published: Published, live: bool) -> None:
        self._published, self._live = published, live
        self.evaluation: Evaluation
        """The newest."""
        self._timeline = Timeline()
        self._moments = Moments()
        self._last_frame_at = 0.0
        self._looking = 0.0  # seconds that frames have taken since training began

    def begin(self, state: TrainState, questions: Sequence[Question]) -> None:
        """Have a model to look at, by these probes."""
        from transformer.recording.recorder import Recorder

        self._state = state
        self._recorder = Recorder(state.model, state.task, state.decoding)
        for question in questions:
            self._recorder.add(question)

    def first(self) -> None:
        """Look at the untrained model."""
        from transformer.training.evaluation import LIVE_WORDS, evaluate

        self.evaluation = evaluate(self._state, self._state.task.held_out()[:LIVE_WORDS])
        self._add_snapshot()  # published with the frame: who has seen an idle run's frame does not look again
        self._make_frame()

    def go_on(self, memory: Memory) -> None:
        """Have seen what the saved run had seen."""
        view = self._published.view
        self.evaluation, self._looking = memory.evaluation, memory.looking
        self._moments.restore(view.moments, memory.moments)
        self._recorder.resume(view.frame, self._state.config.seed, self._state.step)
        for step in (0, *(moment.step for moment in view.moments)):
            self._timeline.protect(step)
        for frame in view.frames:
            self._timeline.add(frame)
        self._large = self._timeline.is_large(
            sum(tensor.nbytes for tensor in self._state.model.state_dict().values())
        )
        for snapshot in view.snapshots:  # into memory, as they were
            self._timeline.add_snapshot(snapshot if self._large else snapshot.in_memory())
        self._published.publish(frames=self._timeline.frames, snapshots=self._timeline.snapshots)

    def memory(self) -> Memory:
        """What the next looks depend on, to be kept."""
        from transformer.runs.resuming import Memory

        return Memory(evaluation=self.evaluation, looking=self._looking, moments=self._moments.state())

    def end(self) -> None:
        """Let go of the model; what was seen of it stays."""
        for held in ("_state", "_recorder"):
            vars(self).pop(held, None)

    # The occasions.

    def after_step(self, report: Report, *, ended: bool, alone: bool) -> None:
        """Look at what a step has done, as far as that is due.

        Args:
            ended: whether it was the last.
            alone: whether a person asked for this very one.
        """
        view = self._published.view
        if report.evaluation is not None:
            self.evaluation = report.evaluation
        self._recorder.drawn.note(report.step, report.words)
        found = self._moments.accuracy(
            report.step, self._state.first_step_at, examples_of(view.config.train.task)
        )
        found += self._moments.losses(*view.metrics.columns("step", "loss"))
        if ended or found or self._frame_is_due(report, alone):
            found += self._make_frame()
        if found:
            self._note_moments()
        if ended or found or (snapshot_is_due(report.step) and not self._large):
            self._take_snapshot()

    def ask(self, question: Question, instead_of: Question | None) -> None:
        """Record one more word from now on, perhaps in place of another, and at once."""
        if instead_of is not None:
            self._recorder.questions.remove(instead_of)
        self._recorder.add(question)
        if self._make_frame():
            self._note_moments()
            self._take_snapshot()

    def after_change(self, what: str) -> None:
        """Look at once at what an intervention does; that it was made is a moment."""
        self._moments.intervention(self._state.step, what)
        self._make_frame()
        self._note_moments()
        self._take_snapshot()

    def at_end(self) -> None:
        """See to it that the last step can be looked at."""
        view, step = self._published.view, self._state.step
        if view.frame is None or view.frame.step != step:
            self._make_frame()
            self._note_moments()
        if not view.snapshots or view.snapshots[-1].step != step:
            self._take_snapshot()

    # What is seen.

    def _frame_is_due(self, report: Report, alone: bool) -> bool:
        """Evaluations are frames; for someone who watches, so are early steps and about two a second."""
        if report.evaluation is not None:
            return True
        if not self._live:
            return False
        view = self._published.view
        if alone or (view.pace is not None and view.pace <= EVERY_STEP_UP_TO):
            return True
        since = time.perf_counter() - self._last_frame_at
        spent = self._looking > LOOKING_SHARE * view.seconds + LOOKING_ADVANCE
        if spent and view.pace is None and report.step > FIRST_STEPS:
            return since >= AT_LEAST_SECONDS
        return frame_is_due(report.step) or since >= LIVE_SECONDS

    def _make_frame(self) -> tuple[Moment, ...]:
        """Look at the model now.

        Returns:
            The moments that this look has found.
        """
        from transformer.training.loop import NotFinite

        began, view, now = time.perf_counter(), self._published.view, self.evaluation
        steps, losses = view.metrics.columns("step", "loss")
        read = len(steps) > 0 and steps[-1] == self._state.step  # off the CPU the newest loss may be unread
        frame = self._recorder.frame(
            step=self._state.step,
            seconds=view.seconds,
            loss=float(losses[-1]) if read else None,
            exact=(now.right, now.total),
            exact_step=now.step,
            by_length=now.by_length,
            held_out_loss=now.loss,
            free_loss=now.free_loss,
            token_accuracy=now.token_accuracy,
            bleu=now.bleu,
            chrf=now.chrf,
            samples=now.samples,
        )
        if not all(np.isfinite(scores).all() for scores in frame.scores.values()):
            raise NotFinite(
                f"At step {frame.step} the attention weights are no numbers any more. "
                "Start again with a lower learning rate."
            )
        self._timeline.add(frame)
        turned = view.turned_at
        (site, head), score = frame.best
        if turned is None and score >= THRESHOLD:
            turned = (frame.step, site, head)
        self._published.publish(
            frames=self._timeline.frames, snapshots=self._timeline.snapshots, turned_at=turned
        )
        self._last_frame_at = time.perf_counter()
        if frame.step > 0:
            self._looking += self._last_frame_at - began
        return self._moments.heads(frame.step, frame.scores, frame.aim)

    def _note_moments(self) -> None:
        """What is recorded of moments stays: of the step of each, and of this one, at which it was found."""
        for step in (self._state.step, *(found.step for found in self._moments.found)):
            self._timeline.protect(step)
        self._published.publish(moments=self._moments.found)

    def _take_snapshot(self) -> None:
        """Keep the weights of this step, for everybody to ask."""
        self._add_snapshot()
        self._published.publish(snapshots=self._timeline.snapshots)

    def _add_snapshot(self) -> None:
        weights = {
            name: tensor.cpu().numpy().copy() for name, tensor in self._state.model.state_dict().items()
        }
        taken = self._published.view.interventions
        snapshot = Snapshot(step=self._state.step, weights=weights, interventions=taken)
        self._large = self._timeline.is_large(snapshot.nbytes)
        self._timeline.add_snapshot(snapshot)

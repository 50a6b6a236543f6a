"""Record a run while it trains: choose of which steps maps are computed, and what is kept of them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from transformer.config import TASK_INFO
from transformer.errors import InputError
from transformer.insight.moments import Moments
from transformer.insight.scores import THRESHOLD
from transformer.recording.chunk import Chunk
from transformer.recording.frame import Array, Measurement
from transformer.recording.map_recorder import FrameScheduler, MapRecorder
from transformer.recording.recording import MEMORY_LIMIT, Recorded, Recording
from transformer.recording.view import MAX_WORDS, WATCHED_SECONDS, Publisher
from transformer.recording.weights import DISK_LIMIT, Snapshot, Weights
from transformer.shared.attention_info import reading_sites
from transformer.shared.evaluation import Evaluation
from transformer.tasks import Question
from transformer.training.loop import NotFinite, Report
from transformer.training.state import TrainState

EVERY_STEP_UP_TO = 5.0
"""At a pace of this many steps per second or fewer, scores and outputs are measured at every step, unless
only evaluations are recorded."""
PAST_STEPS = 25
"""Maximum number of steps of a word's past that are computed between two training steps."""
PAST_BATCHES = 50
"""Maximum number of batches of a resumed run that are drawn again between two training steps, to know when a
word was drawn."""
FEWEST = 16
"""If fewer snapshots than this fit into `DISK_LIMIT`, they are kept only at measured steps and at moments."""


class RunRecorder:
    """The growing recording of the run that `state` trains. For the other arguments, see `TrainingSession`.

    Use it in one thread only, that of its `TrainingSession`. During training, only this object changes the
    list of questions.
    """

    def __init__(
        self,
        state: TrainState,
        published: Publisher,
        questions: list[Question],
        weights: Weights,
        *,
        every_step: bool,
    ) -> None:
        self._state, self._published, self._every_step = state, published, every_step
        self.weights, self._questions = weights, questions
        self.moments = Moments()
        self.scheduler = FrameScheduler(published.view.every)
        self._recorder = MapRecorder(state.model, state.task, state.decoding)
        for question in questions:
            self._recorder.add(question)
        self._pasts: deque[tuple[Question, list[Snapshot]]] = deque()
        self._shown_at = 0.0
        each = 4 * sum(tensor.numel() for tensor in state.model.state_dict().values())
        self._large = DISK_LIMIT // each < FEWEST  # then snapshots are kept at few steps only
        self._kept_all = None if self._large else weights

    def resume(self) -> None:
        """Continue the recording that the view holds already: of a saved run, or of the untrained model."""
        view, step = self._published.view, self._state.step
        measured, written = view.frames.measured_at(step), view.frames.written_at(step)
        self._recorder.resume(measured, written)
        for question in self._questions:
            self._owe(question)

    def begin(self, evaluation: Evaluation) -> None:
        """Record the model's first frame: it is untrained, or its recording was lost."""
        frames = Recording(
            numbers=self._published.view.metrics.at, target_score=self._state.task.target_score, generation=1
        )
        self._published.publish(frames=frames)
        self.record_now([evaluation])

    # Steps.

    def record(self, report: Report, *, ended: bool, alone: bool, watched: bool, runs: int) -> None:
        """Copy the weights of a step if it is to be recorded, and compute and measure what is due.

        Args:
            report: of the step.
            ended: whether the run ends with this step.
            alone, watched, runs: as for `TrainingSession.step`.

        Raises:
            NotFinite: an attention weight is infinite or NaN.
        """
        spent, view, step = time.thread_time(), self._published.view, report.step
        self._recorder.drawn.note(step, report.words)
        moments = self.moments.losses(*view.metrics.columns("step", "loss"))
        slow = view.pace is not None and view.pace <= EVERY_STEP_UP_TO
        if report.evaluation is not None:
            things = TASK_INFO[view.config.train.task].plural
            moments += self.moments.accuracy(self._state.first_step_at, things)
        measured = report.evaluation is not None or ended or alone or (slow and self._every_step)
        if measured or moments or (self._every_step and step % self.scheduler.every == 0):
            self._recorder.buffer.copy(step)
        # Each of many runs is shown less often, so that the maps of several steps are computed together.
        late = watched and time.perf_counter() - self._shown_at >= runs * WATCHED_SECONDS
        n_pending = len(self._recorder.buffer.steps)
        if measured or late or self._recorder.buffer.full:
            new: list[Recorded] = [*self._computed()]
            if measured and watched:
                self._publish(new)  # viewers need not wait for the measurements
                new = []
            if report.evaluation is not None:
                new.append(report.evaluation)
            self._publish([*new, *(self._measured(step) if measured else ())])
        if view.pace is None and not alone:  # otherwise there is time to record every step
            n_computed = n_pending - len(self._recorder.buffer.steps)
            self.scheduler.recorded(n_computed, time.thread_time() - spent, watched=watched)
        if self.scheduler.every != view.every:
            self._published.publish(every=self.scheduler.every)

    def record_now(self, records: Sequence[Recorded] = ()) -> None:
        """Record and measure the model as it is now, even if this step is already recorded."""
        self._recorder.buffer.copy(self._state.step)
        if self._published.view.frames:
            computed = self._computed()
            self._publish([*computed, *records, *self._measured(self._state.step)])
        else:  # maps of a word with an unknown answer need an output, which is written first
            measured = self._measured(self._state.step)
            self._publish([*records, *measured, *self._computed()])

    def record_last(self) -> None:
        """Record and measure the last step of a run that has ended, as far as this was not done."""
        self.compute()
        frames, step = self._published.view.frames, self._state.step
        if frames.steps[-1:] != (step,):
            self.record_now()
        elif (measured := frames.measured_at(step)) is None or measured.step != step:
            self._publish(self._measured(step))

    def compute(self) -> None:
        """Compute what is pending, before the model, words or masks change or the run pauses."""
        if self._recorder.buffer.steps:
            self._publish(self._computed())

    def show_pending(self) -> None:
        """Compute what is pending before a long operation; the time counts as recording."""
        spent, n_pending = time.thread_time(), len(self._recorder.buffer.steps)
        self.compute()
        self.scheduler.recorded(n_pending, time.thread_time() - spent, watched=True)

    def rescue(self) -> None:
        """After a failure, compute those pending steps whose weights are all finite."""
        self._pasts.clear()
        with suppress(Exception):  # the cause of the failure may make this fail too
            self._publish(self._recorder.compute(self._kept_all, finite=True))

    def _computed(self) -> list[Recorded]:
        try:
            return [*self._recorder.compute(self._kept_all)]
        except FloatingPointError as error:
            raise NotFinite(
                f"At step {self._state.step} {error}. Start again with a lower learning rate."
            ) from error

    def _publish(self, records: Sequence[Recorded]) -> None:
        """Publish what has been recorded, with frames and weights thinned to fit into memory."""
        state, moments = self._state, self.moments.found
        moment_steps = {moment.step for moment in moments}
        protected = {0, state.step, *moment_steps}
        # Snapshots of a large model are kept only at measured steps and at moments.
        measured = not all(isinstance(one, Chunk) for one in records)
        if self._large and (measured or state.step in moment_steps):
            row = {state.step: self._recorder.row()}
            self.weights.append(row, state.model.interventions, self._recorder.tensors)
        self.weights.thin_waiting(protected)
        frames = self._published.view.frames.extended(records).thinned(protected, MEMORY_LIMIT)
        self._published.publish(frames=frames, snapshots=self.weights.snapshots, moments=moments)
        self._shown_at = time.perf_counter()

    # Scores, and the steps at which heads turn.

    def _measured(self, step: int) -> list[Recorded]:
        """Current scores and outputs, and scores of past steps measured to find where heads have turned."""
        before, target_score = self._published.view.frames.measured_at(step), self._state.task.target_score
        now = self._recorder.measure(step)
        scored: dict[int, Measurement] = {step: now}
        if before is not None:
            scored.setdefault(before.step, before)

        located = partial(self._located, scored, -1 if before is None else before.step, step)
        sites = reading_sites(self._state.model.axes())
        scores: dict[str, Array] = {site: now.head_scores[site][target_score] for site in sites}
        self.moments.heads(step, scores, target_score, located)
        outputs = self._recorder.write(step)
        extra = [one for at, one in sorted(scored.items()) if one is not before and one is not now]
        return [*extra, now, outputs]

    def _located(self, scored: dict[int, Measurement], low: int, high: int, site: str, head: int) -> int:
        """The step at which a head has turned: after `low`, where it had not, and up to `high`, where it has.

        The step is found by bisection over the kept snapshots; of several such steps, any may be found.
        Measurements made on the way are stored in `scored` and reused for other heads.
        """
        kept = {snapshot.step for snapshot in self.weights.snapshots}
        while inside := sorted(step for step in kept if low < step < high):
            scored_steps = [step for step in inside if step in scored]
            half_way = (low + high) / 2
            middle = min(scored_steps or inside, key=lambda step: abs(step - half_way))
            if middle not in scored:
                try:
                    scored[middle] = self._recorder.measure_past(middle, self.weights)
                except InputError:  # its snapshot has been thinned meanwhile
                    kept.remove(middle)
                    continue
            if scored[middle].head_scores[site][self._state.task.target_score][head] >= THRESHOLD:
                high = middle
            else:
                low = middle
        return high

    # Words.

    def add_word(self, question: Question) -> None:
        """Track one more word: its newest map at once, then its past.

        At the limit, the oldest word that the user added is dropped or, if there is none, the first word.
        A mean map replaces the one before: each costs as much time as all its words.
        """
        if question in self._questions:
            return
        self.compute()
        for before in [one for one in self._questions if one.words and question.words]:
            self.drop_word(before)
        if len(self._questions) >= MAX_WORDS:
            examples = self._state.task.corpus.tracked_words()
            own = [question for question in self._questions if question.text not in examples]
            self.drop_word((own or self._questions)[0])
        self._questions.append(question)
        self._recorder.add(question)
        outputs, newest = self._recorder.write(self._state.step), self.weights.snapshots[-1:]
        if newest and newest[0].step == self._state.step:
            chunks = self._recorder.past(question, newest, self.weights)
        else:
            self._recorder.buffer.copy(self._state.step)
            chunks = self._recorder.compute(self._kept_all)
        self._publish([outputs, *chunks])
        self._owe(question)

    def drop_word(self, question: Question) -> None:
        """Stop tracking a word, and discard its maps."""
        self.compute()
        self._questions.remove(question)
        self._recorder.remove(question)
        self._published.publish(frames=self._published.view.frames.without(question.text))
        self._pasts = deque(past for past in self._pasts if past[0] != question)

    def _owe(self, question: Question) -> None:
        """Queue the maps that a word lacks for computation, at the steps whose weights are kept."""
        frames = self._published.view.frames
        lacking = {*frames.steps} - {*frames.steps_of(question.text)}
        past = [snapshot for snapshot in self.weights.snapshots if snapshot.step in lacking]
        if past:
            self._pasts.append((question, past))

    @property
    def has_backfill(self) -> bool:
        """Whether earlier batches are still to be drawn again, or past maps of a word to be computed."""
        return self._forgets_batches or bool(self._pasts)

    @property
    def _forgets_batches(self) -> bool:
        drawn = self._recorder.drawn
        return drawn.steps < self._state.step and not drawn.full

    def compute_past(self) -> None:
        """Draw some earlier batches again, or compute more of the past of a word, the newest steps first."""
        if self._forgets_batches:
            self._recorder.draw_again(self._state.config.seed, self._state.step, PAST_BATCHES)
            return
        question, left = self._pasts[0]
        recorded = {*self._published.view.frames.steps}  # some may have been thinned since
        some = [one for one in left[-PAST_STEPS:] if one in self.weights.snapshots and one.step in recorded]
        del left[-PAST_STEPS:]
        if not left:
            self._pasts.popleft()
        self._publish(self._recorder.past(question, some, self.weights))

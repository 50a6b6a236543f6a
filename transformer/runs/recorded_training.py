"""One training and its recording: steps, what is seen of each, changes in mid-run, and how it ends."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from transformer.errors import InputError
from transformer.insight.moments import Moments
from transformer.insight.names import examples_of
from transformer.insight.scores import THRESHOLD
from transformer.interventions import Interventions
from transformer.recording.chunk import Chunk
from transformer.recording.frame import Array, reading_sites
from transformer.recording.frame_scheduler import FrameScheduler
from transformer.recording.frames import MEMORY_LIMIT, Frames, Recorded
from transformer.recording.view import FAILED, FINISHED, STOPPED, RunView
from transformer.recording.weights import DISK_LIMIT, Snapshot, Weights
from transformer.runs.calibration import calibrate, threads_of
from transformer.runs.machine import processors
from transformer.runs.published import Published
from transformer.tasks import Question

if TYPE_CHECKING:  # torch comes with these; it is loaded by `build`, in the run's own thread
    from transformer.recording.frame import Measurement
    from transformer.runs.resuming import Memory
    from transformer.storage.archive import Archive, Training
    from transformer.storage.saved import Saved
    from transformer.training.distributed import Distributed
    from transformer.training.loop import Report
    from transformer.training.state import TrainState

WATCHED_SECONDS = 0.2
"""A frame that somebody waits for is developed after so long at most."""
EVERY_STEP_UP_TO = 5.0
"""At this pace or less, every step is shown, with its scores and outputs."""
PAST_STEPS = 25
"""Steps of a word's past that are developed between two training steps."""
GUESSES = 4
"""So often a turn is looked for where a straight line says; then half-way."""
FEWEST = 16
"""Weights of which fewer fit are kept at evaluations and moments alone: each is large."""


class RecordedTraining:
    """The model of one run at work. Its methods are for the run's thread.

    Args:
        published: the view, which it replaces as it goes.
        archive: a folder to keep the run in.
        every_step: whether to record every step; otherwise evaluations alone are looked at.
        saved: a run that goes on where it stood.
        distributed: where other processes train along, which this one leads.
    """

    def __init__(
        self,
        published: Published,
        archive: Archive | None,
        *,
        every_step: bool = True,
        saved: Saved | None = None,
        distributed: Distributed | None = None,
    ) -> None:
        self._published, self._archive, self._every_step = published, archive, every_step
        self._folder, self._distributed = None if saved is None else saved.folder, distributed
        self.weights = Weights() if saved is None else saved.weights
        """Of the steps that were recorded."""
        self._moments = Moments()
        self._scheduler = FrameScheduler()
        self._pasts: deque[tuple[Question, list[Snapshot]]] = deque()
        self._shown_at = 0.0
        self._built = False  # before that there is nothing to keep
        if archive is not None:
            self._listen(archive)
            if saved is not None:
                archive.version = published.version  # it holds this very view

    @property
    def _view(self) -> RunView:
        return self._published.view

    # Building.

    def build(self, questions: Sequence[Question], quiet: Callable[[], bool]) -> None:
        """Load torch and build the model: the untrained one, looked at once, or that of a saved run.

        Args:
            quiet: tells whether nothing trains in this process.
        """
        import torch

        from transformer.recording.recorder import Recorder

        # A saved run goes on with as many threads as before: sums of another order would be other sums.
        threads = min(self._view.threads, processors()) or threads_of(self._view.config, quiet)
        torch.set_num_threads(threads)
        self.state, memory = self._trained_so_far()
        self._recorder = Recorder(self.state.model, self.state.task, self.state.decoding)
        for question in questions:
            self._recorder.add(question)
        self._published.publish(
            config=self.state.config,
            device=str(self.state.device),
            threads=threads,
            parameters=self.state.n_parameters,
        )
        each = 4 * sum(tensor.numel() for tensor in self.state.model.state_dict().values())
        self._large = DISK_LIMIT // each < FEWEST  # then weights are kept at few steps alone
        if memory is not None:
            self._go_on(memory, questions)
        if not self._view.frames:
            self._look_first()
        self._reports = self._train()
        self._built = True

    def _trained_so_far(self) -> tuple[TrainState, Memory | None]:
        from transformer.runs.resuming import unpack
        from transformer.training.state import TrainState

        if self._folder is None:
            return TrainState.begin(self._view.config, self._distributed), None
        return unpack(self._folder, self._view.config)

    def _train(self) -> Iterator[Report]:
        from transformer.training.loop import train

        return train(self.state)

    def _go_on(self, memory: Memory, questions: Sequence[Question]) -> None:
        view, step = self._view, self.state.step
        self._moments.restore(view.moments, memory.moments)
        self._scheduler = FrameScheduler(view.every)
        frames = view.frames
        self._recorder.resume(frames.measured_at(step), frames.written_at(step), self.state.config.seed, step)
        for question in questions:
            self._owe(question)

    def _look_first(self) -> None:
        """Look at the model as it is: untrained, or with what was recorded of it lost."""
        from transformer.training.evaluation import LIVE_WORDS, evaluate

        evaluation = evaluate(self.state, self.state.task.held_out()[:LIVE_WORDS])
        frames = Frames(numbers=self._view.metrics.at, aim=self.state.task.aim, generation=1)
        self._published.publish(frames=frames)
        self._record_now([evaluation])

    def calibrate(self, quiet: Callable[[], bool]) -> None:
        """Measure how fast this machine is, for those who wonder how long a run will take."""
        import torch

        calibrate(quiet)
        torch.set_num_threads(self._view.threads)

    # Training.

    def step(self, *, alone: bool, watched: bool) -> None:
        """Take one training step.

        Args:
            alone: whether a person asked for this very one.
            watched: whether somebody looks.
        """
        if watched and (self.state.step + 1) % self.state.config.train.evaluate_every == 0:
            self._show_pending()  # an evaluation takes as long as many steps
        began, spent = time.perf_counter(), time.thread_time()
        report = next(self._reports, None)
        if report is None:
            self.end(FINISHED, self._how_it_ended())
            return
        self._scheduler.trained(time.thread_time() - spent)
        self._count(report, self._view.seconds + time.perf_counter() - began)
        ended = self.state.goal_reached or report.step == self.state.stretch.last
        self._record(report, ended=ended, alone=alone, watched=watched)
        if ended:
            self.end(FINISHED, self._how_it_ended())
        elif self._archive is not None and self._archive.due:
            self.keep()

    def _count(self, report: Report, seconds: float) -> None:
        """Publish what a step has brought; its numbers go into the table as soon as they have been read."""
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

    def set_learning_rate(self, rate: float) -> None:
        """Scale the plan to another highest rate."""
        self.state.set_learning_rate(rate)
        self._published.publish(learning_rate=rate)

    def continue_for(self, steps: int, rate: float) -> None:
        """Plan more steps after the end."""
        self.state.continue_for(steps, rate)
        self._reports = self._train()
        self._published.publish(
            reason="", planned=self.state.stretch.last, learning_rate=rate, goal_reached=False
        )

    def intervene(self, interventions: Interventions) -> None:
        """Train without these heads and cells from the next step on, and look at once what that does."""
        from transformer.training.evaluation import LIVE_WORDS, evaluate

        self.develop()
        changed, task = interventions.change_text(self._view.interventions), self.state.task
        self.state.intervene(interventions)
        if self._view.state in (FINISHED, STOPPED):
            # Asked as at the end, so that the numbers can be compared.
            evaluation = evaluate(self.state, task.held_out(), task.everyday())
            right = self._right(evaluation.right, evaluation.total)
            self._published.publish(
                everyday=evaluation.everyday, reason=f"At step {self._view.step:,}, {changed}: {right}."
            )
        else:
            evaluation = evaluate(self.state, task.held_out()[:LIVE_WORDS])
        self._moments.intervention(self.state.step, changed)
        # Not before: who sees the intervention is shown what it does.
        self._published.publish(interventions=interventions, right=(evaluation.right, evaluation.total))
        self._record_now([evaluation])

    # Recording.

    def _record(self, report: Report, *, ended: bool, alone: bool, watched: bool) -> None:
        """Copy the weights of a step, and look at it as far as that is due."""
        spent, view, step = time.thread_time(), self._view, report.step
        self._recorder.drawn.note(step, report.words)
        found = self._moments.losses(*view.metrics.columns("step", "loss"))
        slow = view.pace is not None and view.pace <= EVERY_STEP_UP_TO
        if report.evaluation is not None:
            things = examples_of(view.config.train.task)
            found += self._moments.accuracy(step, self.state.first_step_at, things)
        measured = report.evaluation is not None or ended or alone or (slow and self._every_step)
        if measured or found or (self._every_step and step % self._scheduler.every == 0):
            self._recorder.copy(step)
        late = watched and time.perf_counter() - self._shown_at >= WATCHED_SECONDS
        n_pending = self._recorder.pending
        if measured or late or self._recorder.full:
            new: list[Recorded] = [*self._developed()]
            if measured and watched:
                self._publish(new)  # nobody waits for the measurements
                new = []
            if report.evaluation is not None:
                new.append(report.evaluation)
            self._publish([*new, *(self._measured(step) if measured else ())])
        if view.pace is None and not alone:  # else there is time for all of it
            n_developed = n_pending - self._recorder.pending
            self._scheduler.recorded(n_developed, time.thread_time() - spent, watched=watched)
        if self._scheduler.every != view.every:
            self._published.publish(every=self._scheduler.every)

    def _record_now(self, records: Sequence[Recorded]) -> None:
        """Look at the model as it is now in every way, whether or not this step has been looked at."""
        self._recorder.copy(self.state.step)
        if self._view.frames:
            developed = self._developed()
            self._publish([*developed, *records, *self._measured(self.state.step)])
        else:  # the maps of a word whose answer is not known run over an output: it is written first
            measured = self._measured(self.state.step)
            self._publish([*records, *measured, *self._developed()])

    def develop(self) -> None:
        """Develop what is pending: model, words or masks are about to change, or nothing goes on."""
        if self._built and self._recorder.pending:
            self._publish(self._developed())

    def _show_pending(self) -> None:
        spent, n_pending = time.thread_time(), self._recorder.pending
        self.develop()
        self._scheduler.recorded(n_pending, time.thread_time() - spent, watched=True)

    def _developed(self) -> list[Recorded]:
        from transformer.training.loop import NotFinite

        try:
            return [*self._recorder.develop(None if self._large else self.weights)]
        except FloatingPointError as error:
            raise NotFinite(
                f"At step {self.state.step} {error}. Start again with a lower learning rate."
            ) from error

    def _measured(self, step: int) -> list[Recorded]:
        """Scores and outputs as they are now, and scores of where heads have turned since the last time."""
        before = self._view.frames.measured_at(step)
        now = self._recorder.measure(step)
        scored: dict[int, Measurement] = {step: now}
        if before is not None:
            scored.setdefault(before.step, before)

        def located(site: str, head: int) -> int:
            return self._located(site, head, scored, -1 if before is None else before.step, step)

        self._moments.heads(step, self._aimed(now), self.state.task.aim, located)
        outputs = self._recorder.write(step)
        extra = [one for at, one in sorted(scored.items()) if one is not before and one is not now]
        return [*extra, now, outputs]

    def _aimed(self, measured: Measurement) -> dict[str, Array]:
        from transformer.recording.developer import axes_of

        sites = reading_sites(axes_of(self.state.model))
        return {site: measured.head_scores[site][self.state.task.aim] for site in sites}

    def _located(self, site: str, head: int, scored: dict[int, Measurement], low: int, high: int) -> int:
        """The first step at which a head has turned, between one where it has not and one where it has.

        It is found by bisection over the kept weights, which begins where a straight line would cross the
        threshold. What is measured on the way is kept, and serves for other heads too.
        """
        aim, guesses = self.state.task.aim, GUESSES
        kept = {one.step for one in self.weights.snapshots}

        def score(step: int) -> float:
            return float(scored[step].head_scores[site][aim][head])

        while inside := sorted(step for step in kept if low < step < high):
            wanted = (low + high) / 2
            known = [step for step in inside if step in scored]
            if not known and guesses and low in scored:
                wanted = low + (high - low) * (THRESHOLD - score(low)) / (score(high) - score(low))
                guesses -= 1
            middle = min(known or inside, key=lambda step: abs(step - wanted))
            if middle not in scored:
                try:
                    scored[middle] = self._recorder.measure_past(middle, self.weights)
                except InputError:  # its weights have been thinned meanwhile
                    kept.remove(middle)
                    continue
            if score(middle) >= THRESHOLD:
                high = middle
            else:
                low = middle
        return high

    def _publish(self, records: Sequence[Recorded]) -> None:
        """Let everybody see what has been recorded, within what memory and the disk allow."""
        protected = {0, self.state.step, *(moment.step for moment in self._moments.found)}
        if self._large and self._is_kept(records):
            interventions = self.state.model.interventions
            row = {self.state.step: self._recorder.row()}
            self.weights.append(row, interventions, self._recorder.tensors)
        self.weights.thin_waiting(protected)
        frames = self._view.frames.extended(records).thinned(protected, MEMORY_LIMIT)
        turned = self._view.turned_at
        if turned is None:
            heads = [one for one in self._moments.found if one.site is not None and one.head is not None]
            turned = (heads[0].step, heads[0].site or "", heads[0].head or 0) if heads else None
        self._published.publish(
            frames=frames,
            snapshots=self.weights.snapshots,
            moments=self._moments.found,
            turned_at=turned,
        )
        self._shown_at = time.perf_counter()

    def _is_kept(self, records: Sequence[Recorded]) -> bool:
        """Whether the weights of a large model are kept now: with what is measured, and at moments."""
        moments = {moment.step for moment in self._moments.found}
        return self.state.step in moments or not all(isinstance(one, Chunk) for one in records)

    # Words.

    def ask(self, question: Question, instead_of: Question | None) -> None:
        """Record one more word, perhaps in place of another: its newest map at once, then its past."""
        if instead_of is None:
            self.develop()
        else:
            self.forget(instead_of)
        self._recorder.add(question)
        outputs, newest = self._recorder.write(self.state.step), self.weights.snapshots[-1:]
        if newest and newest[0].step == self.state.step:
            chunks = self._recorder.past(question, newest, self.weights)
        else:
            self._recorder.copy(self.state.step)
            chunks = self._recorder.develop(None if self._large else self.weights)
        self._publish([outputs, *chunks])
        self._owe(question)

    def forget(self, question: Question) -> None:
        """Record a word no more, and let go of what was recorded of it."""
        self.develop()
        self._recorder.remove(question)
        self._published.publish(frames=self._view.frames.without(question.text))
        self._pasts = deque(one for one in self._pasts if one[0] != question)

    def _owe(self, question: Question) -> None:
        """Have the frames developed that a word lacks, as far as their weights are kept."""
        frames = self._view.frames
        lacking = {*frames.steps} - {*frames.steps_of(question.text)}
        past = [one for one in self.weights.snapshots if one.step in lacking]
        if past:
            self._pasts.append((question, past))

    @property
    def owes_a_past(self) -> bool:
        """Whether a word that came later lacks some of its frames."""
        return bool(self._pasts)

    def develop_past(self) -> None:
        """Develop some more of the past of a word that came later, the newest steps first."""
        question, left = self._pasts[0]
        recorded = {*self._view.frames.steps}  # some may have been thinned since
        some = [one for one in left[-PAST_STEPS:] if one in self.weights.snapshots and one.step in recorded]
        del left[-PAST_STEPS:]
        if not left:
            self._pasts.popleft()
        self._publish(self._recorder.past(question, some, self.weights))

    # How it ends.

    def end(self, state: str, reason: str) -> None:
        """The run has come to its end, perhaps not for good."""
        self._read_all()
        self.develop()
        step = self.state.step
        if self._view.frames.steps[-1:] != (step,):
            self._record_now(())
        elif (measured := self._view.frames.measured_at(step)) is None or measured.step != step:
            self._publish(self._measured(step))
        self._published.publish(state=state, reason=reason)

    def fail(self, reason: str) -> None:
        """The run ends with what went wrong; the frames up to here stay."""
        self._pasts.clear()
        if self._built:
            with suppress(Exception):  # whatever it was may stand in the way of this too
                self._publish(self._recorder.develop(None if self._large else self.weights, finite=True))
        self._published.publish(state=FAILED, reason=reason)

    def _read_all(self) -> None:
        """Bring over the numbers that are still on the device."""
        from transformer.training.loop import read_numbers

        self._view.metrics.add(self.state.step, read_numbers(self.state), seconds=self._view.seconds)

    def _how_it_ended(self) -> str:
        view = self._view
        if self.state.goal_reached:
            how = f"Goal reached at step {view.step:,}"
        else:
            how = f"All {view.planned:,} steps are done"
        return f"{how}: {self._right(*(view.right or (0, 0)))} after {view.seconds:.1f} s."

    def _right(self, right: int, total: int) -> str:
        return f"{right:,} of {total:,} held-out {examples_of(self._view.config.train.task)} right"

    # What is kept.

    def keep_in(self, archive: Archive) -> None:
        """Keep the run in a folder from now on."""
        self._archive = archive
        self._listen(archive)

    def _listen(self, archive: Archive) -> None:
        archive.told = lambda problem: self._published.note(unsaved=problem)
        archive.thinned = lambda: self._published.note(snapshots=self.weights.snapshots)

    def keep(self) -> None:
        """Hand to the folder what it does not hold yet, without waiting for it."""
        if not self._built or self._archive is None or self._archive.version == self._published.version:
            return
        failed = self._view.state == FAILED
        if not failed:
            self._read_all()  # what is unread on the device is no part of what is kept
            self.develop()
        self._archive.hand(self._view, self._published.version, None if failed else self._training)

    @property
    def kept(self) -> bool:
        """Whether a folder holds the run as it is now."""
        return (
            self._archive is not None
            and self._archive.version == self._published.version
            and self._archive.whole
        )

    def close(self) -> None:
        """Wait until the folder holds all there is, or the disk has refused it; then let go of the model."""
        self.keep()
        if self._archive is not None:
            self._archive.close()
        self._built = False
        self._pasts.clear()
        for held in ("state", "_reports", "_recorder"):  # where it could not be built, it may hold half of it
            vars(self).pop(held, None)

    def _training(self) -> Training:
        from transformer.runs.resuming import Memory, pack

        return pack(self.state, Memory(moments=self._moments.state()))

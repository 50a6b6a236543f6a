"""One training in its own thread: it obeys commands between two steps and publishes what may be seen."""

from __future__ import annotations

import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from transformer.config import RunConfig, TrainConfig
from transformer.errors import InputError
from transformer.insight.scores import MIRROR_THRESHOLD
from transformer.recording.timeline import Timeline
from transformer.runs.metrics import Metrics
from transformer.runs.view import (
    FAILED,
    FINISHED,
    IDLE,
    PAUSED,
    QUEUED,
    STOPPED,
    TRAINING,
    RunView,
)
from transformer.tasks import make_task

if TYPE_CHECKING:  # torch comes with these; a run loads them in its own thread
    from transformer.recording.recorder import Recorder
    from transformer.runs.archive import Archive
    from transformer.training.loop import Report
    from transformer.training.state import TrainState

PACES = (None, 20.0, 5.0, 1.0)
"""Most steps per second; None is full speed."""
EVERY_STEP_UP_TO = 5.0
"""At this pace or less, every step is a frame."""
LIVE_SECONDS = 0.5
"""At full speed a watched run makes a frame this often."""
EARLY_STEPS = 5
"""The first steps are frames too: most of what changes first changes here."""
MAX_CONTINUE = 100_000
MAX_WORDS = 12
"""Probes of one run; the oldest of a person's own gives way."""
DEFAULT_WORDS = ("playground", "banana", "strawberry", "kayak", "cat")


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
        self.task = make_task(config.train)
        if words is None:
            words = tuple(word for word in DEFAULT_WORDS if len(word) <= config.train.max_letters)
        self.questions = [self.task.question(word) for word in words]
        """The probes; changed by the thread alone."""
        self._n_given = min(len(self.questions), MAX_WORDS - 1)
        self._archive, self._live = archive, live
        self.ready = threading.Event()
        """Set once there is something to see: the frame of step 0, or the reason why there is none."""
        self._commands: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._publishing = threading.Lock()
        self._closing = False
        self._budget: int | None = None  # steps until the next pause, where steps were asked for
        self._next_step_at = 0.0  # on the clock, where there is a pace
        self._last_frame_at = 0.0
        self._timeline = Timeline()
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
            parameters=0,
            frames=(),
            metrics=self._metrics,
            first_step_at={},
            goal_reached=False,
            everyday=None,
            by_length={},
            turned_at=None,
            after=None,
        )
        self._thread = threading.Thread(target=self._main, name=f"run-{self.view.id[:6]}", daemon=True)
        self._thread.start()

    # Commands: checked where they are given, obeyed by the thread between two steps. Each returns an event
    # that is set when it has been obeyed, for who wants to show the effect at once.

    @property
    def id(self) -> str:
        """The unguessable name by which the run is addressed."""
        return self.view.id

    def start(self, *, after: str | None = None) -> threading.Event:
        """Begin training; `after` names the run that this one grew out of."""

        def obey() -> None:
            if self.view.state == QUEUED:
                self._publish(state=TRAINING)
                self._next_step_at = time.perf_counter()

        with self._publishing:
            if self.view.state == IDLE:
                self.view = replace(self.view, state=QUEUED, after=after)
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
                self._publish(state=TRAINING)

        return self._ask(obey)

    def stop(self) -> threading.Event:
        """End the run after the present step; it can be continued."""

        def obey() -> None:
            if self.view.state in (QUEUED, TRAINING, PAUSED):
                self._end(STOPPED, f"Stopped at step {self.view.step:,}.")

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
            self._publish(pace=pace)

        return self._ask(obey)

    def set_learning_rate(self, rate: float) -> threading.Event:
        """Change the highest rate of the plan from the next step on.

        Raises:
            InputError: not a positive number.
        """
        TrainConfig(learning_rate=rate)  # the same check as at the start

        def obey() -> None:
            self._state.set_learning_rate(rate)
            self._publish(learning_rate=rate)

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
                self._state.continue_for(steps, rate)
                self._reports = self._train()
                self._budget = None
                self._next_step_at = time.perf_counter()
                self._publish(state=TRAINING, reason="", planned=self._state.stretch.last, learning_rate=rate)

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
            if len(self.questions) >= MAX_WORDS:
                dropped = self.questions.pop(self._n_given)
                self._recorder.questions.remove(dropped)
            self.questions.append(question)
            self._recorder.add(question)
            self._make_frame()

        self._ask(obey)
        return question.text

    def close(self) -> threading.Event:
        """End the thread; the view stays readable."""

        def obey() -> None:
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

    def _ask(self, command: Callable[[], None]) -> threading.Event:
        obeyed = threading.Event()

        def obey() -> None:
            command()
            obeyed.set()

        self._commands.put(obey)
        return obeyed

    def join(self, timeout: float | None = 30.0) -> None:
        """Wait for a closed run's thread."""
        self._thread.join(timeout)

    # The thread.

    def _main(self) -> None:
        try:
            self._prepare()
            while not self._closing:
                self._obey_and_step()
        except InputError as error:
            self._fail(str(error))
        except MemoryError:
            self._fail("There is not enough memory for this model; choose a smaller width or batch.")
        except Exception as error:
            self._fail(_explained(error))
        if self._archive is not None:
            self._archive.close(self.view)

    def _prepare(self) -> None:
        """Load torch, build the untrained model, look at it once."""
        import torch

        from transformer.recording.recorder import Recorder
        from transformer.training.evaluation import LIVE_WORDS, evaluate
        from transformer.training.state import TrainState

        torch.set_num_threads(self.view.config.threads)
        self._state: TrainState = TrainState.begin(self.view.config)
        self._recorder: Recorder = Recorder(self._state.model, self._state.task, self._state.config.seed)
        for question in self.questions:
            self._recorder.add(question)
        self._publish(
            config=self._state.config,
            device=str(self._state.device),
            parameters=self._state.n_parameters,
        )
        self._evaluation = evaluate(self._state, self._state.task.held_out()[:LIVE_WORDS])
        self._publish(by_length=self._evaluation.by_length)
        if self._archive is not None:
            self._archive.open(self.view, self._state)
        self._make_frame()
        self._reports = self._train()
        self.ready.set()

    def _train(self) -> Iterator[Report]:
        from transformer.training.loop import train

        return train(self._state)

    def _obey_and_step(self) -> None:
        """Obey what has been asked; then, where the run is training and its pace allows, take one step."""
        if self.view.state != TRAINING:
            self._commands.get()()  # nothing else to do
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
            self._take_step()

    def _take_step(self) -> None:
        began = time.perf_counter()
        report = next(self._reports, None)
        if report is None:
            self._end(FINISHED, self._how_it_ended())
            return
        if report.evaluation is not None:
            self._evaluation = report.evaluation
        seconds = self.view.seconds + time.perf_counter() - began
        self._count(report, seconds)
        ended = self._state.goal_reached or report.step == self._state.stretch.last
        self._publish(step=report.step, seconds=seconds, steps_per_second=self._speed())
        if ended or self._frame_is_due(report):
            self._make_frame()
        if self._archive is not None:
            self._archive.note_step(self.view, self._state)
        if self._budget is not None:
            self._budget -= 1
            if self._budget <= 0:
                self._budget = None
                self._publish(state=PAUSED)
        if ended:
            self._end(FINISHED, self._how_it_ended())

    def _count(self, report: Report, seconds: float) -> None:
        """Add the steps since the last reading to the table, the newest with its evaluation."""
        if report.evaluation is not None:
            self._publish(
                first_step_at=dict(self._state.first_step_at),
                goal_reached=self._state.goal_reached,
                by_length=report.evaluation.by_length,
                everyday=report.evaluation.everyday or self.view.everyday,
            )
        rows = zip(report.losses, report.token_accuracies, report.gradient_norms, strict=True)
        first = report.step - len(report.losses) + 1
        for step, (loss, accuracy, norm) in enumerate(rows, start=first):
            values: dict[str, Any] = {}
            if report.evaluation is not None and step == report.step:
                values = {
                    "held_out_loss": report.evaluation.loss,
                    "held_out_token_accuracy": report.evaluation.token_accuracy,
                    "exact": report.evaluation.exact,
                }
            self._metrics.append(
                step=step,
                loss=loss,
                token_accuracy=accuracy,
                learning_rate=report.learning_rate,
                gradient_norm=norm,
                tokens_per_second=report.tokens_per_second,
                seconds=seconds,
                **values,
            )

    def _speed(self) -> float:
        """Steps per second over about the last second, or what the pace allows."""
        seconds, steps = self._metrics.column("seconds"), self._metrics.column("step")
        if len(seconds) < 2:
            return 0.0
        first = max(0, min(len(seconds) - 2, int(seconds.searchsorted(seconds[-1] - 1.0))))
        speed = float((steps[-1] - steps[first]) / max(seconds[-1] - seconds[first], 1e-9))
        return speed if self.view.pace is None else min(speed, self.view.pace)

    def _frame_is_due(self, report: Report) -> bool:
        """Evaluations are frames; for someone who watches, so are early steps and about two a second."""
        if report.evaluation is not None:
            return True
        if not self._live:
            return False
        pace = self.view.pace
        if self._budget is not None or (pace is not None and pace <= EVERY_STEP_UP_TO):
            return True
        return report.step <= EARLY_STEPS or time.perf_counter() - self._last_frame_at >= LIVE_SECONDS

    def _make_frame(self) -> None:
        steps, losses = self._metrics.column("step"), self._metrics.column("loss")
        read = len(steps) > 0 and steps[-1] == self._state.step  # off the CPU the newest loss may be unread
        frame = self._recorder.frame(
            step=self._state.step,
            seconds=self.view.seconds,
            loss=float(losses[-1]) if read else None,
            exact=(self._evaluation.right, self._evaluation.total),
            exact_step=self._evaluation.step,
        )
        self._timeline.add(frame)
        turned = self.view.turned_at
        (site, head), score = frame.best
        if turned is None and score >= MIRROR_THRESHOLD:
            turned = (frame.step, site, head)
        self._publish(frames=self._timeline.frames, turned_at=turned)
        if self._archive is not None:
            self._archive.note_frame(frame)
        self._last_frame_at = time.perf_counter()

    def _how_it_ended(self) -> str:
        view, exact = self.view, self._evaluation
        if self._state.goal_reached:
            how = f"Goal reached at step {view.step:,}"
        else:
            how = f"All {view.planned:,} steps are done"
        return f"{how}: {exact.right:,} of {exact.total:,} held-out words right after {view.seconds:.1f} s."

    def _when(self, state: str, becomes: str) -> None:
        if self.view.state == state:
            self._next_step_at = time.perf_counter()
            self._publish(state=becomes)

    def _end(self, state: str, reason: str) -> None:
        if self.view.frame is None or self.view.frame.step != self._state.step:
            self._make_frame()
        self._publish(state=state, reason=reason)
        if self._archive is not None:
            self._archive.note_end(self.view, self._state)

    def _fail(self, reason: str) -> None:
        self._publish(state=FAILED, reason=reason)
        self.ready.set()

    def _publish(self, **changes: Any) -> None:
        with self._publishing:  # the thread and `start` both publish; readers take the reference unlocked
            self.view = replace(self.view, **changes)


def _check_steps(steps: int) -> None:
    if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= MAX_CONTINUE:
        raise InputError(f"{steps!r} steps cannot be taken; choose from 1 to {MAX_CONTINUE:,}.", "steps")


def _explained(error: Exception) -> str:
    """A failure in words that name what went wrong and what to do."""
    text = str(error)
    if type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in text:
        return f"There is not enough memory for this model; choose a smaller width or batch. ({text[:200]})"
    if type(error).__name__ == "NotFinite":
        return text
    return f"{type(error).__name__}: {text[:500]}"

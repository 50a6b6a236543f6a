"""One training in the background: its view, and the commands that change it while it goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.recording.view import (
    ENDED,
    IDLE,
    MAX_NAME,
    MAX_WORDS,
    PAUSED,
    QUEUED,
    Publisher,
    RunView,
    untrained,
)
from transformer.recording.weights import Weights
from transformer.runs import checks
from transformer.runs.machine import check_machine
from transformer.runs.queue import Lease
from transformer.runs.runner import Runner
from transformer.runs.thread import RunThread
from transformer.runs.untrained import Untrained, untrained_model
from transformer.shared.interventions import Interventions
from transformer.storage.own_data import own_data_of
from transformer.storage.tokens import new_token
from transformer.tasks import Question, task_of

if TYPE_CHECKING:  # two of these import torch, which is imported only when it is needed
    from transformer.runs.training_session import TrainingSession
    from transformer.storage.archive import Archive
    from transformer.storage.saved import Saved
    from transformer.training.distributed import Distributed


class Run:
    """The handle of one run. Only its own thread accesses the model, the optimiser and the random state.

    All other threads read `view` and send commands. A command is checked when it is given and carried out
    between two steps. Most commands return a future, which is done once the command has been carried out,
    holds the exception if it raised one, and is cancelled if the run failed or was put away first.

    Args:
        config: what to train.
        words: tracked words to begin with. If none of them is a question (see `Task.mean`), those of the task
            (`Corpus.tracked_words`) come first.
        archive: a file to keep the run in.
        every_step: whether steps between evaluations are recorded too, as far as the share of time for
            recording allows; the losses are the same.
        saved: a saved run to continue. Its words replace `words`; `config` must be that of its view.
        lease: its share of a shared server; by default, the run has a queue of its own and no limits.
        visitor: name of the visitor who owns the run, where visitors are counted.
        id_: its id; by default a new one. A saved run keeps its id.
        shown_first: whether it shows the untrained model of its settings and words, which runs with the same
            ones share, until its first command; only then it gets a thread and a model of its own.
        distributed: set where this run leads other processes that train with it. Commands that change what
            is learned must not be given then, because those processes would not receive them.

    Raises:
        InputError: this machine cannot train the configuration, a word or the user's own data cannot be used,
            or the configuration logs to TensorBoard and there is no `archive`.
    """

    def __init__(
        self,
        config: RunConfig,
        *,
        words: tuple[str, ...] | None = None,
        archive: Archive | None = None,
        every_step: bool = True,
        saved: Saved | None = None,
        lease: Lease | None = None,
        visitor: str = "",
        id_: str | None = None,
        shown_first: bool = False,
        distributed: Distributed | None = None,
    ) -> None:
        self.config = config
        """The configuration as requested; with the model, `view.config` also has what the task determines."""
        self.visitor = visitor
        check_machine(config)
        if config.train.tensorboard and archive is None:
            raise InputError(
                "Logging to TensorBoard needs a file beside which it writes: give --out FILE.", "tensorboard"
            )
        self.task = task_of(config)
        words = words if saved is None else saved.words
        self.questions = [self.task.tracked(word) for word in words or ()]
        """The tracked words; changed only by the run's thread."""
        if saved is None and len(self.questions) > MAX_WORDS:
            raise InputError(
                f"{len(self.questions)} words are too many; a run tracks at most {MAX_WORDS}.", "probe_words"
            )
        if all(question.words for question in self.questions):
            self.questions[:0] = map(self.task.question, self.task.corpus.tracked_words())
        self.own_data = own_data_of(config.train) if saved is None else saved.held
        """Uploads of the user, held as long as the run."""
        self.lease = lease or Lease()
        """Its share of the server, and when it was last viewed."""
        self._weights = Weights() if saved is None else saved.weights
        self._published = Publisher(untrained(config, id_ or new_token()) if saved is None else saved.view)
        self._beginning, self._begun = threading.Lock(), False
        # What the thread and the file call does not refer to this object: without a cycle, a run that leaves
        # memory is freed at once, and not by a collection of a server's many objects, which is rare.
        published, questions, weights = self._published, self.questions, self._weights

        def build(begun: Untrained | None) -> TrainingSession:
            from transformer.runs.training_session import TrainingSession

            return TrainingSession(
                published,
                questions,
                weights,
                every_step=every_step,
                saved=saved,
                begun=begun,
                distributed=distributed,
            )

        self._runner = Runner(self._published, self.lease, build)
        self.ready = self._runner.ready
        """Set once the first frame can be seen, or the run has failed or was put away without one."""
        if archive is not None:
            self._keep_in(archive, whole=saved is not None and saved.whole)
        self.thread = RunThread(f"run-{self.id[:6]}")
        """The thread that trains it from the next step on; the runs of a race share one."""
        self._model: Future[Untrained] | None = None
        if shown_first:
            self._model = untrained_model(config, self.questions, self.own_data)
            self._model.add_done_callback(self._show_untrained)
        else:
            self._begin()

    def _begin(self) -> None:
        """Give the run to its thread: with the untrained model, if that is built or being built."""
        with self._beginning:
            if self._begun:
                return
            self._begun, model = True, self._model
        if model is None or model.cancel():
            self.thread.take(self._runner)

    def _show_untrained(self, model: Future[Untrained]) -> None:
        """Show the untrained model of the settings, unless the run has ended or builds its own."""
        with self._beginning:
            awaited, self._model = self._model, None
            if awaited is None or model.cancelled():
                return
            try:
                self._runner.untrained = state = model.result()
            except Exception as error:
                self._runner.fail(error)
            else:
                for snapshot in state.weights.snapshots:
                    body = state.weights.body(snapshot.step)
                    self._weights.append({snapshot.step: body}, snapshot.interventions, state.weights.tensors)
                self._published.publish(
                    config=state.view.config,
                    device=state.view.device,
                    threads=state.view.threads,
                    parameters=state.view.parameters,
                    frames=state.view.frames.extended((), self.view.metrics.at),
                    snapshots=self._weights.snapshots,
                )
            self.ready.set()
            if self._begun:
                self.thread.take(self._runner)

    def _ask(self, command: Callable[[], None]) -> Future[None]:
        """Have the run's thread carry out a command between two steps: see `Runner.ask`."""
        self._begin()
        return self._runner.ask(command)

    # State.

    @property
    def view(self) -> RunView:
        return self._published.view

    @property
    def id(self) -> str:
        """The unguessable name by which the run is addressed."""
        return self.view.id

    @property
    def words(self) -> tuple[str, ...]:
        """The texts of the tracked words."""
        return words_of(self.questions)

    @property
    def place(self) -> tuple[int, int] | None:
        """(place, of how many) in the line of runs and races that wait to train; None if it does not wait."""
        return self.lease.place if self.view.state == QUEUED else None  # `lease.place` lags behind the state

    @property
    def kept(self) -> bool:
        """Whether its file holds the run as it is now."""
        return self._runner.kept

    @property
    def can_leave_memory(self) -> bool:
        """Whether it may leave memory: paused or ended, not viewed for long, and complete in its file."""
        return self.view.state in (PAUSED, *ENDED) and self.lease.forgotten and self.kept

    def look(self) -> RunView:
        """The view, for a viewer. A server pauses runs that nobody has viewed for some minutes."""
        self.lease.look()
        return self.view

    # Commands: when it trains.

    def start(self, *, after: str | None = None) -> Future[None]:
        """Begin training as soon as there is a slot; `after` is the id of the run that it came from."""
        self._published.publish(only_if=IDLE, state=QUEUED, after=after)
        return self._ask(self._runner.called)

    def pause(self) -> Future[None]:
        """Pause after the current step, or leave the queue; another run may train meanwhile."""
        return self._ask(self._runner.pause)

    def resume(self) -> Future[None]:
        """Go on after a pause, as soon as there is a slot. The pause at the end of `advance` is dropped."""
        return self._ask(self._runner.resume)

    def advance(self, steps: int = 1) -> Future[None]:
        """Take this many steps as soon as there is a slot, then pause; also before the start and in training.

        Raises InputError if `steps` is not a valid number of steps.
        """
        checks.check_steps(steps)
        return self._ask(lambda: self._runner.advance(steps))

    def stop(self) -> Future[None]:
        """End the run after the present step; it can be continued."""
        return self._ask(self._runner.stop)

    def set_pace(self, pace: float | None) -> Future[None]:
        """Limit the steps per second to one of `PACES`, or raise InputError. The losses stay the same."""
        checks.check_pace(pace)
        return self._ask(lambda: self._runner.set_pace(pace))

    def continue_for(self, steps: int, rate: float) -> Future[None]:
        """Train an ended run for more steps; the learning rate warms up to `rate`, then follows the schedule.

        Raises:
            InputError: as `check_continuing` does.
        """
        self.check_continuing(steps, rate)
        return self._ask(lambda: self._runner.continue_for(steps, rate))

    def check_continuing(self, steps: int, rate: float) -> None:
        """Refuse to train an ended run for more steps.

        Raises:
            InputError: the number of steps is invalid or more than the server allows, the rate is invalid, or
                the run has failed.
        """
        checks.check_steps(steps)
        if self.lease.limits is not None:
            self.lease.limits.check_steps(self.view.step + steps)
        checks.check_rate(rate)
        checks.check_alive(self.view, "go on", "run_continue")

    def train_in(self, thread: RunThread) -> None:
        """Train in this thread after the present step, in turn with its other runs; no loss changes."""
        with self._beginning:
            self.thread = thread
            if self._begun and self._model is None:  # a thread has it already
                self._runner.move_to(thread.take)

    # Commands: what changes.

    def set_learning_rate(self, rate: float) -> Future[None]:
        """Change the peak rate of the plan from the next step on; an invalid rate raises InputError."""
        checks.check_rate(rate)
        return self._ask(lambda: self._runner.training.set_learning_rate(rate))

    def intervene(self, interventions: Interventions) -> Future[None]:
        """Apply these interventions from the next step on; they replace the earlier ones.

        Raises:
            InputError: a site, head or mask does not exist, a row would have nothing to attend to in a word
                of the task (see `Corpus.hardest`), or the run has no model yet or has failed.
        """
        checks.check_change(self.view, self.task, interventions)
        return self._ask(lambda: self._runner.training.intervene(interventions))

    def switch_mask(self, mask: str, on: bool) -> Future[None]:
        """Switch the causal or the padding mask from the next step on; other interventions stay.

        Raises:
            InputError: there is no such mask, blocked cells would then leave a row nothing to attend to, or
                the run has no model yet or has failed.
        """

        def switched() -> Interventions:
            return self.view.interventions.with_mask(mask, on, self.config.model.masks)

        checks.check_change(self.view, self.task, switched())
        return self._ask(lambda: self._runner.training.intervene(switched()))  # computed again then

    def add_word(self, text: str) -> str:
        """Track a word or a mean map (see `Task.mean`): its newest map comes at once, its past soon after.

        Returns:
            The word as it will be shown.

        Raises:
            InputError: the word is invalid for the task, or the run has failed.
        """
        question = self.task.tracked(text)
        checks.check_alive(self.view, "be asked", "probe_words")
        self._ask(lambda: self._runner.training.recording.add_word(question))
        return question.text

    def drop_word(self, text: str) -> Future[None]:
        """Stop tracking a word and delete its maps; does nothing if the word is not tracked.

        Raises:
            InputError: it is the last one besides mean maps, or the run has failed.
        """
        checks.check_alive(self.view, "be asked", "drop_word")
        if [question.text for question in self.questions if not question.words] == [text]:
            raise InputError(f"“{text}” is the only word; add another one before you remove it.", "drop_word")

        def obey() -> None:
            tracked = [question for question in self.questions if question.text == text]
            words = [
                question for question in self.questions if not question.words
            ]  # may have changed meanwhile
            if tracked and words != tracked:
                self._runner.training.recording.drop_word(tracked[0])

        return self._ask(obey)

    def rename(self, name: str) -> Future[None]:
        """Name the run; an empty name removes the name, and its settings distinguish it again.

        Raises:
            InputError: the name is too long, or the run has failed.
        """
        checks.check_alive(self.view, "be named", "name")
        name = " ".join(name.split())
        if len(name) > MAX_NAME:
            raise InputError(f"The name has {len(name)} letters; use at most {MAX_NAME}.", "name")
        return self._ask(lambda: self._published.publish(name=name))

    # Saving, and the end.

    def keep_in(self, archive: Archive) -> Future[None]:
        """Keep the run in a file from now on."""
        return self._ask(lambda: self._keep_in(archive))

    def _keep_in(self, archive: Archive, *, whole: bool = False) -> None:
        """As `keep_in`; `whole` says that the file holds the current view already."""
        published, questions, weights = self._published, self.questions, self._weights
        archive.on_problem = lambda problem: published.note(unsaved=problem)
        archive.thinned = lambda: published.note(snapshots=weights.snapshots)
        archive.begin(self.view, self.task, weights, lambda: words_of(questions), whole=whole)
        if whole:
            archive.version = published.version
        self._runner.archive = archive

    def live_in_memory(self, why: str) -> None:
        """Note why the run is not kept in a file."""
        self._published.note(unsaved=why)

    def thin_weights(self, few: int) -> bool:
        """Make room on the disk: keep the weights of the moments and those that `Weights.keep_few` keeps.

        Returns whether there were more. Raises as `Store.transaction`.
        """
        thinner = self._weights.keep_few(few, {moment.step for moment in self.view.moments})
        self._published.note(snapshots=self._weights.snapshots)
        if thinner and self._runner.archive is not None:
            self._runner.archive.thin()
        return thinner

    def put_away(self) -> Future[None]:
        """Let go of the model and leave the run as it is; if it has a file, it can be loaded from there."""
        if not self._begun:
            self.halt()
        return self._runner.ask(self._runner.halt)

    def halt(self) -> None:
        """As `put_away`, without a future to wait for: for a draft, or because the process ends."""
        with self._beginning:
            begun, self._begun, model = self._begun, True, self._model
            if not begun:
                self._model = None
        if begun:
            self._runner.halt()
        else:
            if model is not None:
                model.cancel()
            self._runner.end()

    def close(self) -> Future[None]:
        """End the run and let go of its model; the view stays readable."""
        if self._begun:
            self.stop()
        return self.put_away()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the run is not active any more (see `RunView.active`).

        Returns whether that is so: False after `timeout` seconds, or if the run was put away before.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while self.view.active:
            if self._runner.ended.is_set() or (end is not None and time.monotonic() > end):
                return False
            time.sleep(0.01)
        return True

    @property
    def ended(self) -> threading.Event:
        """Set once a run that was put away or has failed needs its thread and its file no more."""
        return self._runner.ended

    def join(self, timeout: float | None = 30.0) -> bool:
        """Wait until `ended` is set, for `timeout` seconds at most; return whether it is set."""
        return self.ended.wait(timeout)


def words_of(questions: Sequence[Question]) -> tuple[str, ...]:
    """The texts of tracked words."""
    return tuple(question.text for question in questions)

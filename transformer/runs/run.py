"""One training in the background: what may be known of it, and what may be changed while it goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from transformer.config import RunConfig, TrainConfig
from transformer.errors import InputError
from transformer.interventions import Interventions, check_interventions
from transformer.recording.view import (
    ENDED,
    FAILED,
    FINISHED,
    IDLE,
    MAX_NAME,
    MAX_WORDS,
    PACES,
    PAUSED,
    QUEUED,
    STOPPED,
    TRAINING,
    RunView,
    untrained,
)
from transformer.runs.machine import check_machine
from transformer.runs.published import Published
from transformer.runs.queue import Lease
from transformer.runs.recorded_training import RecordedTraining
from transformer.runs.runner import Runner
from transformer.storage.brought import brought_to
from transformer.storage.tokens import new_token
from transformer.tasks import Question, task_of

if TYPE_CHECKING:
    from transformer.storage.archive import Archive
    from transformer.storage.saved import Saved
    from transformer.training.distributed import Distributed

MAX_CONTINUE = 100_000


class Run:
    """The handle of one training: its thread alone touches model, optimiser and random state.

    Everyone else reads `view` and sends commands. These are checked where they are given and obeyed between
    two steps; each returns an event that is set when it has been, for who wants to show the effect at once.

    Args:
        config: what to train.
        words: tracked words to begin with; by default a few that fit the trained length.
        archive: a folder to keep the run in.
        every_step: whether every step is recorded; otherwise evaluations alone are looked at. The losses are
            the same either way.
        saved: a run that goes on where it stood; its configuration and words are the saved ones.
        lease: what it may take of a server that others share; by default everything.
        visitor: whose run it is, where visitors are counted.
        distributed: where other processes train along, which this run leads; it then takes no command that
            changes what is learned, because they would not hear of it.
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
        distributed: Distributed | None = None,
    ) -> None:
        self.config = config
        """As asked for; the view's is completed with what the task needs."""
        self.visitor = visitor
        check_machine(config)
        if config.train.tensorboard and archive is None:
            raise InputError("Logging to TensorBoard needs a folder: give --out DIR.", "tensorboard")
        self.task = task_of(config)
        self._first = tuple(self.task.probes())
        words = words if saved is None else saved.words
        self.questions = [self.task.question(word) for word in words or self._first]
        """The tracked words; changed by the thread alone."""
        self.brought = brought_to(config.train) if saved is None else saved.held
        """What a person brought to it, held as long as the run is."""
        self._lease = lease or Lease()
        self._published = Published(untrained(config, new_token()) if saved is None else saved.view)
        self._training = RecordedTraining(
            self._published, archive, every_step=every_step, saved=saved, distributed=distributed
        )
        self._runner = Runner(self._published, self._training, self._lease, self.questions)
        self.ready = self._runner.ready
        """Set once there is something to see: the frame of step 0, or the reason why there is none."""
        if archive is not None:
            self._begin(archive, 0 if saved is None else saved.kept)
        self._runner.start()

    def _begin(self, archive: Archive, kept: int) -> None:
        words = lambda: tuple(one.text for one in self.questions)  # noqa: E731
        archive.begin(self.view, self.task, self._training.weights, words, kept)

    # What may be known of it.

    @property
    def view(self) -> RunView:
        """What may be known of the run now."""
        return self._published.view

    @property
    def id(self) -> str:
        """The unguessable name by which the run is addressed."""
        return self.view.id

    @property
    def place(self) -> tuple[int, int] | None:
        """(place, of how many) in the line of runs that wait to train; None where it does not wait."""
        return self._lease.place if self.view.state == QUEUED else None  # it leaves a moment after its state

    @property
    def unseen(self) -> bool:
        """Whether nobody has looked at it for as long as the server waits for somebody to."""
        return self._lease.unseen

    @property
    def seen_at(self) -> float:
        """When somebody last looked at it, or asked something of it, on the clock `time.monotonic`."""
        return self._lease.seen_at

    @property
    def left(self) -> bool:
        """Whether memory need not hold it: it stands still, unseen for long, and its folder has all of it."""
        return self.view.state in (PAUSED, *ENDED) and self._lease.forgotten and self.kept

    @property
    def kept(self) -> bool:
        """Whether its folder has all of it."""
        return self._training.kept

    def look(self) -> RunView:
        """The view, for a person: a run goes on as long as somebody looks."""
        self._lease.look()
        return self.view

    # When it trains.

    def start(self, *, after: str | None = None) -> threading.Event:
        """Begin training as soon as there is a slot; `after` names the run that this one grew out of."""
        self._published.publish(only_if=IDLE, state=QUEUED, after=after)
        return self._runner.ask(self._runner.called)

    def pause(self) -> threading.Event:
        """Stand still after the present step, or wait no longer; another run may train meanwhile."""

        def obey() -> None:
            if self.view.state in (QUEUED, TRAINING):
                self._training.develop()
                self._published.publish(state=PAUSED)

        return self._runner.ask(obey)

    def resume(self) -> threading.Event:
        """Go on after a pause, as soon as there is a slot."""

        def obey() -> None:
            self._runner.budget = None
            if self.view.state == PAUSED:
                self._runner.train()

        return self._runner.ask(obey)

    def advance(self, steps: int = 1) -> threading.Event:
        """Take this many steps, then stand still; also before the start and in mid-training.

        Raises:
            InputError: not a number of steps.
        """
        _check_steps(steps)

        def obey() -> None:
            if self.view.state in (IDLE, QUEUED, PAUSED, TRAINING):
                self._runner.budget = steps
                self._runner.train()

        return self._runner.ask(obey)

    def stop(self) -> threading.Event:
        """End the run after the present step; it can be continued."""
        return self._runner.ask(self._stop)

    def _stop(self) -> None:
        if self.view.state in (QUEUED, TRAINING, PAUSED):
            self._training.end(STOPPED, f"Stopped at step {self.view.step:,}.")

    def set_pace(self, pace: float | None) -> threading.Event:
        """Let the run take at most this many steps a second; None is full speed. Changes no loss.

        Raises:
            InputError: not one of `PACES`.
        """
        if pace not in PACES:
            known = ", ".join("full" if p is None else f"{p:g}" for p in PACES)
            raise InputError(f"A pace of {pace!r} does not exist; choose from {known}.", "pace")
        return self._runner.ask(lambda: self._runner.set_pace(pace))

    def continue_for(self, steps: int, rate: float) -> threading.Event:
        """Let a run that ended go on for more steps, freshly warmed up to this rate and decayed again.

        Raises:
            InputError: not a number of steps, more than the server allows, not a rate, or a run that has
                failed.
        """
        _check_steps(steps)
        if self._lease.limits is not None:
            self._lease.limits.check_steps(self.view.step + steps)
        TrainConfig(learning_rate=rate)
        self._check_alive("go on", "run_continue")

        def obey() -> None:
            if self.view.state in (FINISHED, STOPPED):
                self._training.continue_for(steps, rate)
                self._runner.budget = None
                self._runner.train()

        return self._runner.ask(obey)

    # What is changed in it.

    def set_learning_rate(self, rate: float) -> threading.Event:
        """Change the highest rate of the plan from the next step on.

        Raises:
            InputError: not a positive number.
        """
        TrainConfig(learning_rate=rate)  # the same check as at the start
        return self._runner.ask(lambda: self._training.set_learning_rate(rate))

    def intervene(self, interventions: Interventions) -> threading.Event:
        """Go on without these heads and cells from the next step on, in any state; `NOTHING` gives all back.

        Raises:
            InputError: something that is not in the model, or that would leave a row nothing to look at in
                some word that this run trains on.
        """
        self._check(interventions)

        def obey() -> None:
            if self.view.interventions != interventions:
                self._training.intervene(interventions)

        return self._runner.ask(obey)

    def switch_mask(self, mask: str, on: bool) -> threading.Event:
        """Switch the causal or the padding mask from the next step on; whatever else is taken away stays so.

        Raises:
            InputError: there is no such mask, or something that was blocked by hand would then leave a row
                nothing to look at.
        """
        configured = self.config.model.masks
        self._check(switched(self.view.interventions, configured, mask, on))

        def obey() -> None:
            wanted = switched(self.view.interventions, configured, mask, on)  # as it is by then
            if self.view.interventions != wanted:
                self._training.intervene(wanted)

        return self._runner.ask(obey)

    def _check(self, interventions: Interventions) -> None:
        """Refuse what cannot be taken away from the run now. Raises InputError."""
        view = self.view
        if view.frame is None or view.state == FAILED:
            advice = "start a new one" if view.state == FAILED else "wait until its untrained model is built"
            raise InputError(f"This run cannot be changed ({view.state}); {advice}.", "intervene")
        for word in self.task.hardest([block.token for block in interventions.blocked if block.token]):
            batch = self.task.encode([word])
            check_interventions(
                interventions,
                view.frame.axes,
                self.config.model.n_heads,
                self.task.src_tokenizer.tokens(batch.src[0].tolist()),
                self.task.tgt_tokenizer.tokens(batch.tgt_in[0].tolist()),
                masks=self.config.model.masks,
            )

    def add_word(self, text: str) -> str:
        """Track a person's word, in any state: its newest map is there at once, and its past soon after.

        Returns:
            The word as it will be shown.

        Raises:
            InputError: a word that cannot be asked, or a run that has failed.
        """
        question = self.task.question(text)
        self._check_alive("be asked", "probe_words")
        self._runner.ask(lambda: self._add(question))
        return question.text

    def _add(self, question: Question) -> None:
        if question in self.questions:
            return
        dropped = None
        if len(self.questions) >= MAX_WORDS:
            own = [q for q in self.questions if q.text not in self._first]
            dropped = (own or self.questions)[0]
            self.questions.remove(dropped)
        self.questions.append(question)
        self._training.ask(question, instead_of=dropped)

    def drop_word(self, text: str) -> threading.Event:
        """Track a word no more; its frames go with it. Nothing happens where it is not tracked.

        Raises:
            InputError: it is the last one, or the run has failed.
        """
        self._check_alive("be asked", "drop_word")
        if [one.text for one in self.questions] == [text]:
            raise InputError(f"“{text}” is the only word; add another one before you remove it.", "drop_word")

        def obey() -> None:
            question = next((one for one in self.questions if one.text == text), None)
            if question is not None and len(self.questions) > 1:  # by now
                self.questions.remove(question)
                self._training.forget(question)

        return self._runner.ask(obey)

    def rename(self, name: str) -> threading.Event:
        """Call the run so; with an empty name it is told from others by its settings again.

        Raises:
            InputError: a name that is too long, or a run that has failed.
        """
        self._check_alive("be named", "name")
        name = " ".join(name.split())
        if len(name) > MAX_NAME:
            raise InputError(f"A name of {len(name)} letters is too long; take at most {MAX_NAME}.", "name")
        return self._runner.ask(lambda: self._published.publish(name=name))

    def _check_alive(self, asked: str, field: str) -> None:
        """Refuse what the thread of a failed run is not there to do. Raises InputError."""
        if self.view.state == FAILED:
            raise InputError(f"A failed run cannot {asked}; start a new one.", field)

    # Where it is kept, and how it ends.

    def keep_in(self, archive: Archive) -> threading.Event:
        """Keep the run in a folder from now on."""

        def obey() -> None:
            self._begin(archive, 0)
            self._training.keep_in(archive)

        return self._runner.ask(obey)

    def live_in_memory(self, why: str) -> None:
        """Say why the run cannot be kept in a folder."""
        self._published.note(unsaved=why)

    def thin_weights(self, few: int) -> bool:
        """Keep the weights of so few steps, to make room on the disk.

        Returns:
            Whether there were more.

        Raises:
            OSError: the disk is full, or the file cannot be written.
        """
        protected = {moment.step for moment in self.view.moments}
        thinner = self._training.weights.keep_few(few, protected)
        self._published.note(snapshots=self._training.weights.snapshots)
        return thinner

    def put_away(self) -> threading.Event:
        """End the thread as the run stands: from its folder it can come back."""
        return self._runner.ask(self._runner.halt)

    def halt(self) -> None:
        """The same at once, whatever else has been asked: the process ends."""
        self._runner.halt()

    def close(self) -> threading.Event:
        """End the thread, and with it the training; the view stays readable."""

        def obey() -> None:
            self._stop()
            self._runner.closing = True

        return self._runner.ask(obey)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the run has ended or stands still; for the command line and tests, not for pages."""
        end = None if timeout is None else time.monotonic() + timeout
        while self.view.active:
            if not self._runner.is_alive() or (end is not None and time.monotonic() > end):
                return False
            time.sleep(0.01)
        return True

    def join(self, timeout: float | None = 30.0) -> None:
        """Wait for a closed run's thread."""
        self._runner.join(timeout)


def switched(now: Interventions, configured: Mapping[str, bool], mask: str, on: bool) -> Interventions:
    """What is taken away once a mask is switched; whatever else is taken away stays so."""
    masks = {**configured, **dict(now.masks), mask: on}
    differing = tuple((name, state) for name, state in masks.items() if state != configured.get(name))
    return replace(now, masks=differing)


def _check_steps(steps: int) -> None:
    if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= MAX_CONTINUE:
        raise InputError(f"{steps!r} steps cannot be taken; choose from 1 to {MAX_CONTINUE:,}.", "steps")

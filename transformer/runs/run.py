"""One training in the background: what may be known of it, and what may be changed while it goes on."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from transformer.config import RunConfig, TrainConfig
from transformer.errors import InputError
from transformer.interventions import Interventions
from transformer.runs.brought import brought_to
from transformer.runs.changes import check_change, switched
from transformer.runs.machine import check_machine
from transformer.runs.steering import Steering
from transformer.runs.thread import RunThread
from transformer.runs.turn import Turn
from transformer.runs.view import ENDED, FAILED, MAX_WORDS, PAUSED, QUEUED, STOPPED, TRAINING, RunView
from transformer.runs.worker import Worker
from transformer.tasks import task_of

if TYPE_CHECKING:  # it imports torch, which a run loads in its own thread
    from transformer.runs.archive import Archive
    from transformer.runs.saved import Saved
    from transformer.training.spread import Spread


class Run(Steering):
    """The background thread of one training, and the commands it takes.

    The thread alone touches model, optimiser and random state. Everyone else reads `view` and sends commands.

    Args:
        config: what to train.
        words: probes to begin with; by default a few that fit the trained length.
        archive: a folder to keep the run in, written by the thread.
        live: whether to make frames for someone who watches; the losses are the same either way.
        saved: a run that goes on where it stood; its configuration and words are the saved ones.
        turn: what it may take of a server that others share; by default everything.
        visitor: whose run it is, where visitors are counted.
        spread: where other processes train along, which this run leads; it then takes no command that changes
            what is learned, because they would not hear of it.
    """

    def __init__(
        self,
        config: RunConfig,
        *,
        words: tuple[str, ...] | None = None,
        archive: Archive | None = None,
        live: bool = True,
        saved: Saved | None = None,
        turn: Turn | None = None,
        visitor: str = "",
        spread: Spread | None = None,
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
        """The probes; changed by the thread alone."""
        self.brought = brought_to(config.train) if saved is None else saved.held
        """What a person brought to it, held as long as the run is."""
        self._kept = 0 if saved is None else saved.kept
        turn, worker = turn or Turn(), Worker(config, archive, live, saved, spread)
        super().__init__(worker, RunThread(worker, turn, self.questions, live=live), turn)
        self.ready = self._thread.ready
        """Set once there is something to see: the frame of step 0, or the reason why there is none."""
        if archive is not None:
            self._begin_keeping(archive)
        self._thread.start()

    # What may be known of it.

    @property
    def view(self) -> RunView:
        """What may be known of the run now."""
        return self._worker.view

    @property
    def id(self) -> str:
        """The unguessable name by which the run is addressed."""
        return self.view.id

    @property
    def place(self) -> tuple[int, int] | None:
        """(place, of how many) in the line of runs that wait to train; None where it does not wait."""
        return self._turn.place if self.view.state == QUEUED else None  # it leaves a moment after its state

    @property
    def unseen(self) -> bool:
        """Whether nobody has looked at it for as long as the server waits for somebody to."""
        return self._turn.unseen

    @property
    def seen_at(self) -> float:
        """When somebody last looked at it, or asked something of it, on the clock `time.monotonic`."""
        return self._turn.seen_at

    @property
    def left(self) -> bool:
        """Whether memory need not hold it: it stands still, unseen for long, and its folder has all of it."""
        return self.view.state in (PAUSED, *ENDED) and self._turn.forgotten and self.kept

    @property
    def kept(self) -> bool:
        """Whether its folder has all of it."""
        return self._worker.kept

    def look(self) -> RunView:
        """The view, for a person: a run goes on as long as somebody looks."""
        self._turn.look()
        return self.view

    def build(self) -> None:
        """Build the untrained model now: the page is painted. Any command does the same."""
        self._thread.hurry()

    # What may be changed in it: checked and obeyed as the commands of `Steering` are.

    def set_learning_rate(self, rate: float) -> threading.Event:
        """Change the highest rate of the plan from the next step on.

        Raises:
            InputError: not a positive number.
        """
        TrainConfig(learning_rate=rate)  # the same check as at the start

        def obey() -> None:
            self._worker.set_learning_rate(rate)

        return self._thread.ask(obey)

    def intervene(self, interventions: Interventions) -> threading.Event:
        """Go on without these heads and looks from the next step on, in any state; `NOTHING` gives all back.

        Raises:
            InputError: something that is not in the model, or that would leave a row nothing to look at in
                some word that this run trains on.
        """
        check_change(interventions, self.view, self.config, self.task)

        def obey() -> None:
            if self.view.interventions != interventions:
                self._worker.intervene(interventions)

        return self._thread.ask(obey)

    def switch_mask(self, mask: str, on: bool) -> threading.Event:
        """Switch the causal or the padding mask from the next step on; whatever else is taken away stays so.

        Raises:
            InputError: there is no such mask, or something that was blocked by hand would then leave a row
                nothing to look at.
        """

        configured = self.config.model.masks
        wanted = switched(self.view.interventions, configured, mask, on)
        check_change(wanted, self.view, self.config, self.task)

        def obey() -> None:
            wanted = switched(self.view.interventions, configured, mask, on)  # as it is by then
            if self.view.interventions != wanted:
                self._worker.intervene(wanted)

        return self._thread.ask(obey)

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
            dropped = None
            if len(self.questions) >= MAX_WORDS:
                own = [q for q in self.questions if q.text not in self._first]
                dropped = (own or self.questions)[0]
                self.questions.remove(dropped)
            self.questions.append(question)
            self._worker.ask(question, instead_of=dropped)

        self._thread.ask(obey)
        return question.text

    # Where it is kept, and how it ends.

    def keep_in(self, archive: Archive) -> threading.Event:
        """Keep the run in a folder from now on."""

        def obey() -> None:
            self._begin_keeping(archive)
            self._worker.keep_in(archive)

        return self._thread.ask(obey)

    def put_away(self) -> threading.Event:
        """End the thread as the run stands: from its folder it can come back."""

        def obey() -> None:
            self._thread.closing = True

        return self._thread.ask(obey)

    def halt(self) -> None:
        """The same at once, whatever else has been asked: the process ends."""
        self._thread.halt()

    def live_in_memory(self, why: str) -> None:
        """Say why the run cannot be kept in a folder."""
        self._worker.publish(unsaved=why)

    def close(self) -> threading.Event:
        """End the thread, and with it the training; the view stays readable."""

        def obey() -> None:
            if self.view.state in (QUEUED, TRAINING, PAUSED):
                self._worker.end(STOPPED, f"Stopped at step {self.view.step:,}.")
            self._thread.closing = True

        return self._thread.ask(obey)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the run has ended or stands still; for the command line and tests, not for pages."""
        end = None if timeout is None else time.monotonic() + timeout
        while self.view.active:
            if not self._thread.is_alive() or (end is not None and time.monotonic() > end):
                return False
            time.sleep(0.01)
        return True

    def join(self, timeout: float | None = 30.0) -> None:
        """Wait for a closed run's thread."""
        self._thread.join(timeout)

    def _begin_keeping(self, archive: Archive) -> None:
        archive.begin(self.view, self.task, lambda: tuple(one.text for one in self.questions), self._kept)

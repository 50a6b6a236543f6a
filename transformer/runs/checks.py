"""Checks of commands before they are sent to a run's thread, and of an uploaded run."""

from __future__ import annotations

from transformer.config import TrainConfig
from transformer.errors import InputError
from transformer.recording.view import FAILED, PACES, RunView
from transformer.runs.limits import Limits
from transformer.shared.interventions import Interventions, check_interventions
from transformer.storage.saved import Saved
from transformer.tasks import Task, resolved, task_of

MAX_CONTINUE = 100_000


def check_steps(steps: int) -> None:
    """Refuse an invalid number of steps. Raises InputError."""
    if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= MAX_CONTINUE:
        raise InputError(f"{steps!r} steps are not possible; choose from 1 to {MAX_CONTINUE:,}.", "steps")


def check_rate(rate: float) -> None:
    """Refuse an invalid peak learning rate. Raises InputError."""
    TrainConfig(learning_rate=rate)  # the same check as at the start


def check_pace(pace: float | None) -> None:
    """Refuse a pace that is not in `PACES`. Raises InputError."""
    if pace not in PACES:
        choices = ", ".join("full" if one is None else f"{one:g}" for one in PACES)
        raise InputError(f"A pace of {pace!r} does not exist; choose from {choices}.", "pace")


def check_alive(view: RunView, asked: str, field: str) -> None:
    """Refuse a command to a failed run. Raises InputError."""
    if view.state == FAILED:
        raise InputError(f"A failed run cannot {asked}; start a new one.", field)


def check_change(view: RunView, task: Task, interventions: Interventions) -> None:
    """Refuse interventions that cannot be applied to a run now.

    Raises:
        InputError: the run has no model yet or has failed, a site, head or mask does not exist, or a row
            would have no column left to attend to in a word of the task (see `Corpus.hardest`).
    """
    if view.frame is None or view.state == FAILED:
        advice = "start a new one" if view.state == FAILED else "wait until its untrained model is built"
        raise InputError(f"This run cannot be changed ({view.state}); {advice}.", "intervene")
    model = view.config.model
    for word in task.corpus.hardest([block.token for block in interventions.blocked if block.token]):
        batch = task.encode([word])
        check_interventions(
            interventions,
            view.frame.axes,
            model.n_heads,
            task.src_tokenizer.tokens(batch.src[0].tolist()),
            task.tgt_tokenizer.tokens(batch.tgt_in[0].tolist()),
            masks=model.masks,
        )


def check_saved(saved: Saved, limits: Limits) -> None:
    """Refuse a run that could not have been trained on this server; accept any run of an own model.

    Raises:
        InputError: the run exceeds a limit, or its settings or a tracked word cannot be used.
    """
    view = saved.view
    if view.own is None:
        limits.check(resolved(view.config))
        limits.check_steps(view.planned)
        task = task_of(view.config)
        for word in saved.words:
            task.tracked(word)

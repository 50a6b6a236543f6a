"""The training loop: a generator that takes one step at a time, reports, and does nothing else."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from transformer.config import RunConfig
from transformer.evaluation import Evaluation
from transformer.training.evaluation import evaluate
from transformer.training.state import TrainState
from transformer.training.step import take_step

if TYPE_CHECKING:  # torch.distributed comes with it
    from transformer.training.distributed import Distributed

MARKS = (0.5, 0.9, 0.99)
"""Shares of held-out words answered exactly; the first step at which each is reached is noted."""
READ_EVERY = 10
"""On a device other than the CPU, numbers are read after this many steps: each reading makes it wait."""


class NotFinite(ArithmeticError):
    """The loss is no longer a number, so nothing more can be learned."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """The report of one step."""

    step: int
    learning_rate: float
    losses: tuple[float, ...]
    """Loss per target token of each step since the last reading; empty where numbers stay on the device."""
    token_accuracies: tuple[float, ...]
    """Share of right tokens of the same steps, teacher-forced, padding left out."""
    gradient_norms: tuple[float, ...]
    """Euclidean norm before clipping, of the same steps."""
    learning_rates: tuple[float, ...]
    """Of the same steps."""
    tokens_per_second: float
    """Target tokens of this step over the time that it took."""
    words: tuple[str, ...] = ()
    """The questions of this step's batch."""
    evaluation: Evaluation | None = None


def train(state: TrainState) -> Iterator[Report]:
    """Train to the end of the planned steps or to the goal, one step for each `next`.

    Where the generator is not advanced nothing happens, so pausing needs no code. After the last report
    the plan may be extended (`state.continue_for`) and `train` called again.

    Raises:
        NotFinite: a loss is infinite or not a number.
    """
    held_out, everyday = state.task.held_out(), state.task.corpus.everyday()
    goal = state.config.train.goal if state.stretch.first == 0 else None
    while state.step < state.stretch.last:
        began = time.perf_counter()
        if state.distributed is not None:
            state.distributed.announce_step()
        batch = state.task.batch(state.config.seed, state.step)
        n_tokens = take_step(state, batch)
        last = state.step == state.stretch.last
        evaluation = None
        if last or state.step % state.config.train.evaluate_every == 0:
            evaluation = evaluate(state, state.task.live_words())
            if last or _new_mark(state, evaluation, goal):
                evaluation = evaluate(state, held_out, everyday)
            whole = evaluation.total == len(held_out)
            if whole:
                _note_marks(state, evaluation)
            state.goal_reached = goal is not None and whole and evaluation.exact >= goal
        read = state.device.type == "cpu" or evaluation is not None or len(state.unread) >= READ_EVERY
        losses, hits, norms, rates = read_numbers(state) if read else ((), (), (), ())
        yield Report(
            step=state.step,
            learning_rate=state.stretch.rate(state.step),
            losses=losses,
            token_accuracies=hits,
            gradient_norms=norms,
            learning_rates=rates,
            tokens_per_second=n_tokens / (time.perf_counter() - began),
            words=batch.words,
            evaluation=evaluation,
        )
        if state.goal_reached:
            return


def read_numbers(state: TrainState) -> tuple[tuple[float, ...], ...]:
    """Bring over what is unread: losses, token accuracies, gradient norms and learning rates, a value a step.

    Raises:
        NotFinite: a loss or a gradient is infinite or not a number.
    """
    if not state.unread:
        return (), (), (), ()
    rates = tuple(rate for _, rate in state.unread)
    rows = torch.stack([numbers for numbers, _ in state.unread]).tolist()
    state.unread.clear()
    first = state.step - len(rows) + 1
    for i, (loss, _, norm) in enumerate(rows):
        if not (abs(loss) < float("inf") and abs(norm) < float("inf")):  # false for NaN too
            raise NotFinite(
                f"At step {first + i} the loss is {loss:g} and the gradient {norm:g}: they are no longer "
                "finite, so training cannot continue. Start again with a lower learning rate."
            )
    return (*zip(*rows, strict=True), rates)


def _new_mark(state: TrainState, evaluation: Evaluation, goal: float | None) -> bool:
    """Whether the live words reach the goal or a new mark; if so, all held-out words are evaluated."""
    if goal is not None and evaluation.exact >= goal:
        return True
    return any(str(mark) not in state.first_step_at and evaluation.exact >= mark for mark in MARKS)


def _note_marks(state: TrainState, evaluation: Evaluation) -> None:
    for mark in MARKS:
        if evaluation.exact >= mark:
            state.first_step_at.setdefault(str(mark), evaluation.step)


def follow(config: RunConfig, distributed: Distributed) -> None:
    """Take part in a training that another process leads, until that one says that it has ended."""
    for request in (signal.SIGINT, signal.SIGTERM):
        signal.signal(request, signal.SIG_IGN)  # the leader has it too, and decides for all
    if config.threads is not None:
        torch.set_num_threads(config.threads)
    state = TrainState.begin(config, distributed)
    while distributed.hear():
        take_step(state, state.task.batch(config.seed, state.step))
        state.unread.clear()  # the leader has the same numbers, and reads them

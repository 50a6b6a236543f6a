"""The training loop: a generator that takes one step at a time, evaluates where that is due, and reports.

On a GPU, a step queues its work and does not wait for it; only `read_numbers` and evaluations wait.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from transformer.config import RunConfig
from transformer.shared.evaluation import MARKS, Evaluation
from transformer.tasks import Batch
from transformer.training.evaluation import evaluate, sum_of_losses
from transformer.training.state import TrainState

if TYPE_CHECKING:  # imports torch.distributed
    from transformer.training.distributed import Distributed

READ_EVERY = 10
"""On a device other than the CPU, numbers are read after this many steps at most: reading waits for it."""


class NotFinite(ArithmeticError):
    """The loss, the gradient or an attention weight is infinite or NaN, so training cannot continue."""


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
    """Learning rates of the same steps."""
    tokens_per_second: float
    """Target tokens of this step per second that it took, evaluation included; where its numbers stay on a
    GPU, per second in which it was queued."""
    words: tuple[str, ...] = ()
    """The questions of this step's batch."""
    evaluation: Evaluation | None = None


def train(state: TrainState) -> Iterator[Report]:
    """Train to the end of the planned steps or to the goal, one step for each `next`.

    Only the first phase of a run ends at the goal; the steps of a continuation are all taken.

    Nothing happens until the generator is advanced, so pausing needs no code. After the last report
    the plan may be extended (`state.continue_for`) and `train` called again.

    Raises:
        NotFinite: a loss or a gradient is infinite or not a number.
    """
    held_out, everyday = state.task.held_out(), state.task.corpus.everyday()
    goal = state.config.train.goal if state.phase.first == 0 else None
    while state.step < state.phase.last:
        began = time.perf_counter()
        if state.distributed is not None:
            state.distributed.announce_step()
        batch = state.task.batch(state.config.seed, state.step)
        n_tokens = take_step(state, batch)
        last = state.step == state.phase.last
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
            learning_rate=state.phase.rate(state.step),
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


def take_step(state: TrainState, batch: Batch) -> int:
    """Take one step; its loss, token accuracy and gradient norm stay on the device until `read_numbers`.

    Returns:
        The number of target tokens.
    """
    rate = state.phase.rate(state.step + 1)
    for group in state.optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)  # in place: a replayed graph reads this tensor
        else:
            group["lr"] = rate
    tensors = state.to_device(batch)
    if not state.model.training:  # scores and outputs of a recording leave it in eval mode
        state.model.train()
    if state.graphs is None:
        numbers = learn(state, *tensors)
    else:
        numbers = state.graphs.run(lambda *given: learn(state, *given), tensors)
    state.step += 1
    state.unread.append((numbers, rate))
    return int((batch.tgt_out != state.task.tgt_tokenizer.pad_id).sum())


def learn(state: TrainState, src: Tensor, tgt_in: Tensor, labels: Tensor) -> Tensor:
    """Forward, backward and update for the whole batch, even if this process computes only a share of it.

    Args:
        src: (B, S).
        tgt_in: (B, T).
        labels: (B, T).

    Returns:
        (3,): loss per target token, share of right tokens, gradient norm before clipping.
    """
    train, pad_id, distributed = state.config.train, state.task.tgt_tokenizer.pad_id, state.distributed
    real = labels != pad_id
    n_tokens = real.sum()
    if distributed is not None:  # a share of the rows; n_tokens stays that of the whole batch
        src, tgt_in, labels = distributed.share(src, tgt_in, labels, pad_id)
        real = labels != pad_id
    state.optimizer.zero_grad(set_to_none=True)
    # CUDA graphs do not work with the cache of autocast, which saves nothing within one step anyway.
    halved = train.precision == "bfloat16"
    with torch.autocast(state.device.type, torch.bfloat16, enabled=halved, cache_enabled=False):
        logits = state.learner(src, tgt_in).float()  # (B, T, V)
    loss = sum_of_losses(logits, labels, pad_id, train.label_smoothing) / n_tokens
    if distributed is None:
        loss.backward()
    else:
        distributed.backward(loss)
    limit = float("inf") if train.clip is None else train.clip
    gradient_norm = torch.nn.utils.clip_grad_norm_(state.model.parameters(), limit)
    state.optimizer.step()
    with torch.no_grad():
        hits = ((logits.argmax(-1) == labels) & real).sum() / n_tokens
        numbers = torch.stack([loss.detach(), hits, gradient_norm.detach()])
        if distributed is not None:
            distributed.add_up(numbers[:2])  # the norm is that of the whole batch already
        return numbers


def read_numbers(state: TrainState) -> tuple[tuple[float, ...], ...]:
    """Read the losses, token accuracies, gradient norms and learning rates of all unread steps.

    Returns:
        Four tuples in this order, each with one value per step; all are empty if no step is unread.

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


def follow_leader(config: RunConfig, distributed: Distributed) -> None:
    """Take the steps that the leading process announces, until it announces the end.

    Raises:
        InputError: see `TrainState.begin`.
    """
    for request in (signal.SIGINT, signal.SIGTERM):
        signal.signal(request, signal.SIG_IGN)  # the leader gets the signal too, and decides for all
    if config.threads is not None:
        torch.set_num_threads(config.threads)
    state = TrainState.begin(config, distributed)
    while distributed.wait_for_announcement():
        take_step(state, state.task.batch(config.seed, state.step))
        state.unread.clear()  # the leader has the same numbers, and reads them

"""One step of the optimiser: everything that the device does, and nothing that waits for it."""

from __future__ import annotations

import torch
from torch import Tensor

from transformer.tasks import Batch
from transformer.training.evaluation import sum_of_losses
from transformer.training.state import TrainState


def take_step(state: TrainState, batch: Batch) -> int:
    """One step; its loss, token accuracy and gradient norm stay on the device, unread.

    Returns:
        The number of target tokens.
    """
    rate = state.stretch.rate(state.step + 1)
    for group in state.optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)  # a replayed graph reads it where it is
        else:
            group["lr"] = rate
    tensors = state.to_device(batch)
    if not state.model.training:  # an evaluation or a recording has ended in eval mode
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

"""Greedy decoding: at each position the most probable token, and no second thoughts."""

from __future__ import annotations

import torch
from torch import Tensor

from transformer.decoding.reading import next_logits_of, room
from transformer.decoding.written import Written, cut
from transformer.model.transformer import PAD_ID, Transformer
from transformer.tasks import Batch


@torch.no_grad()
def greedy(
    model: Transformer, batch: Batch, eos_id: int, max_tokens: int, *, compare: bool = False
) -> Written:
    """At each position take the most probable token, until every sequence has ended or is too long.

    Args:
        model: in eval mode, or dropout would speak too.
        batch: of it `src` and `prompt` are read, and `answers` only where `compare`.
        max_tokens: most tokens to write, [EOS] included. An encoder alone writes as many as it has read.
        compare: whether to measure losses; then writing goes on, past an [EOS] of the model's own, for as
            long as the longest answer.
    """
    device = model.to_logits.weight.device
    src, prompt, answers = (torch.from_numpy(a).to(device) for a in (batch.src, batch.prompt, batch.answers))
    if model.writes_at_once:
        logits = model(src)[:, 1:]  # [SOS] writes nothing
        losses = _surprise(logits, answers) if compare else None
        return cut(logits.argmax(dim=-1), losses, eos_id, (src != PAD_ID).sum(dim=1) - 1)
    max_tokens = room(model, prompt, max_tokens)
    next_logits = next_logits_of(model, src, prompt, max_tokens)
    least = answers.size(1) if compare else 0
    chosen: list[Tensor] = []
    surprises: list[Tensor] = []
    newest = None
    ended = torch.zeros(src.size(0), dtype=torch.bool, device=device)
    while len(chosen) < max(max_tokens, least) and not (bool(ended.all()) and len(chosen) >= least):
        logits = next_logits(newest, None)
        if len(chosen) < least:
            surprises.append(_surprise(logits, answers[:, len(chosen)]))
        newest = logits.argmax(dim=-1)
        chosen.append(newest)
        ended |= newest == eos_id
    tokens = torch.stack(chosen, dim=1)
    limits = torch.full_like(tokens[:, 0], max_tokens)
    return cut(tokens, torch.stack(surprises, dim=1) if compare else None, eos_id, limits)


def _surprise(logits: Tensor, answers: Tensor) -> Tensor:
    """Negative log-probability of each right token: (..., V) and (...) to (...)."""
    return -logits.log_softmax(dim=-1).gather(-1, answers[..., None])[..., 0]

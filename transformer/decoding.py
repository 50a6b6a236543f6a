"""Writing an answer token by token: greedy search, and how right what is written is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.model.transformer import PAD_ID, LayerMemory, Transformer
from transformer.tasks import Batch, Task


@dataclass(frozen=True)
class Written:
    """What a model has written by itself. On the CPU."""

    tokens: Tensor
    """(B, W) token ids, up to the [EOS] of each; [PAD] behind it."""
    lengths: Tensor
    """(B,) tokens written, [EOS] included."""
    losses: Tensor | None = None
    """(B, A) how surprised the model was by each token of the right answer at its own place, in nats."""


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
        return _cut(logits.argmax(dim=-1), losses, eos_id, (src != PAD_ID).sum(dim=1) - 1)
    max_tokens = min(max_tokens, model.config.max_len + 1 - prompt.size(1))  # the last one is not read
    next_logits = (_keeping if model.can_keep else _reading_anew)(model, src, prompt, max_tokens)
    least = answers.size(1) if compare else 0
    chosen: list[Tensor] = []
    surprises: list[Tensor] = []
    newest = None
    ended = torch.zeros(src.size(0), dtype=torch.bool, device=device)
    while len(chosen) < max(max_tokens, least) and not (bool(ended.all()) and len(chosen) >= least):
        logits = next_logits(newest)
        if len(chosen) < least:
            surprises.append(_surprise(logits, answers[:, len(chosen)]))
        newest = logits.argmax(dim=-1)
        chosen.append(newest)
        ended |= newest == eos_id
    tokens = torch.stack(chosen, dim=1)
    limits = torch.full_like(tokens[:, 0], max_tokens)
    return _cut(tokens, torch.stack(surprises, dim=1) if compare else None, eos_id, limits)


def _keeping(
    model: Transformer, src: Tensor, prompt: Tensor, max_tokens: int
) -> Callable[[Tensor | None], Tensor]:
    """The next logits (B, V) after each newest token (B,), from kept keys and values."""
    memory, kept, tgt = model.encode(src), [LayerMemory() for _ in model.decoder], prompt

    def next_logits(newest: Tensor | None) -> Tensor:
        nonlocal tgt
        if newest is not None:
            tgt = torch.cat([tgt, newest[:, None]], dim=1)
        return model.decode_next(memory, src, tgt, kept)

    return next_logits


def _reading_anew(
    model: Transformer, src: Tensor, prompt: Tensor, max_tokens: int
) -> Callable[[Tensor | None], Tensor]:
    """The same, everything read again at each token: prompts may differ in length, rows may look ahead."""
    memory = model.encode(src) if len(model.encoder) else None
    every, lengths = torch.arange(prompt.size(0), device=prompt.device), (prompt != PAD_ID).sum(dim=1)
    tgt = F.pad(prompt, (0, max_tokens), value=PAD_ID)

    def next_logits(newest: Tensor | None) -> Tensor:
        nonlocal lengths
        if newest is not None:
            tgt[every, lengths] = newest
            lengths = lengths + 1
        logits = model.decode(memory, src, tgt[:, : int(lengths.max())])
        return logits[every, lengths - 1]

    return next_logits


def _surprise(logits: Tensor, answers: Tensor) -> Tensor:
    """Negative log-probability of each right token: (..., V) and (...) to (...)."""
    return -logits.log_softmax(dim=-1).gather(-1, answers[..., None])[..., 0]


def _cut(tokens: Tensor, losses: Tensor | None, eos_id: int, limits: Tensor) -> Written:
    """End each sequence with its first [EOS], or at its limit (B,)."""
    ends = tokens == eos_id
    first = torch.where(ends.any(dim=1), ends.long().argmax(dim=1) + 1, tokens.size(1))
    lengths = torch.minimum(first, limits)
    behind = torch.arange(tokens.size(1), device=tokens.device) >= lengths[:, None]
    tokens = tokens.masked_fill(behind, PAD_ID)
    return Written(tokens.cpu(), lengths.cpu(), None if losses is None else losses.cpu())


@dataclass(frozen=True)
class Spelling:
    """How right a model writes by itself, token by token. On the CPU."""

    right: Tensor
    """(B, A) bool, whether each token of the answer, its [EOS] included, is written in its place."""
    real: Tensor
    """(B, A) bool, whether there is such a token: answers have different lengths."""
    loss: float | None
    """Per token of the right answers, the model reading what it has written itself (free-running); None where
    it was not asked for."""

    @property
    def exact(self) -> list[bool]:
        """Whether each word is right to the last letter and stops."""
        return (self.right | ~self.real).all(dim=1).tolist()


def spell(model: Transformer, task: Task, words: Sequence[str], *, losses: bool = False) -> Spelling:
    """Ask a model these words, free-running, and compare position by position. Draws nothing.

    Args:
        losses: whether to measure the loss too, for which writing goes on to the end of every answer.
    """
    batch = task.encode(words, filled=not model.masked("padding"))
    answers = torch.from_numpy(batch.answers)
    was_training = model.training
    model.eval()
    written = greedy(model, batch, task.tgt_tokenizer.eos_id, answers.size(1), compare=losses)
    model.train(was_training)
    real = answers != PAD_ID
    loss = None if written.losses is None else float(written.losses[real].mean())
    tokens = F.pad(written.tokens, (0, answers.size(1) - written.tokens.size(1)), value=PAD_ID)
    return Spelling((tokens == answers) & real, real, loss)

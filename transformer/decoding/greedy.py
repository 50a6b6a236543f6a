"""Greedy decoding, the likeliest token at each position, and the logits that every decoding chooses from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.model.attention import KVCache
from transformer.model.stack_layers import LayerKVCache
from transformer.model.transformer import PAD_ID, Transformer
from transformer.tasks import Batch

NextLogits = Callable[[Tensor | None, Tensor | None], Tensor]
"""Returns the logits of the next token of each row, (B, V).

Takes the newest token of each row, (B,), and, also (B,), the index of the row of the previous call that each
row continues; a row that no row continues is dropped. Both are None at the first call. Later the second may
be None: then each row continues itself."""


@dataclass(frozen=True)
class Written:
    """Free-running outputs of a model. On the CPU."""

    tokens: Tensor
    """(B, W) token ids: those written, with [EOS] where a sequence ended by itself; then [PAD]."""
    lengths: Tensor
    """(B,) number of tokens written, [EOS] included."""
    losses: Tensor | None = None
    """(B, A) negative log-probability, in nats, of each token of the right answer at its position; None if
    not measured. Values at [PAD] have no meaning."""


@torch.no_grad()
def greedy(
    model: Transformer, batch: Batch, eos_id: int, max_tokens: int, *, compare: bool = False
) -> Written:
    """At each position take the most probable token, until every sequence has ended or reached the limit.

    Args:
        model: must be in eval mode, so that dropout is off.
        batch: its `src` and `prompt` are read; its `answers` are used only if `compare` is True.
        max_tokens: most tokens to write, [EOS] included; fewer if the model has no positions for so many. An
            encoder alone writes one token for each that it reads after [SOS].
        compare: whether to measure losses; if True, decoding goes on past the model's own [EOS], up to the
            length of the longest answer.
    """
    device = model.to_logits.weight.device
    src, prompt, answers = (torch.from_numpy(a).to(device) for a in (batch.src, batch.prompt, batch.answers))
    if model.writes_at_once:
        logits = model(src)[:, 1:]  # [SOS] writes nothing
        losses = _surprise(logits, answers) if compare else None
        return _cut(logits.argmax(dim=-1), losses, eos_id, (src != PAD_ID).sum(dim=1) - 1)
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
    return _cut(tokens, torch.stack(surprises, dim=1) if compare else None, eos_id, limits)


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


def next_logits_of(model: Transformer, src: Tensor, prompt: Tensor, max_tokens: int) -> NextLogits:
    """Return a function for the next logits after the prompts, with a KV cache if the model supports it.

    Args:
        src: (B, S).
        prompt: (B, P).
        max_tokens: most tokens that will be written.
    """
    return (_with_cache if model.supports_kv_cache else _reading_anew)(model, src, prompt, max_tokens)


def room(model: Transformer, prompt: Tensor, max_tokens: int) -> int:
    """`max_tokens`, or fewer if the model has no positions for so many after a prompt (B, P)."""
    return min(max_tokens, model.config.max_len + 1 - prompt.size(1))  # the last written token is not read


def _with_cache(model: Transformer, src: Tensor, prompt: Tensor, max_tokens: int) -> NextLogits:
    """The next logits, with cached keys and values."""
    memory, cache, tgt = model.encode(src), [LayerKVCache() for _ in model.decoder], prompt

    def next_logits(newest: Tensor | None, rows: Tensor | None = None) -> Tensor:
        nonlocal memory, src, tgt
        if rows is not None:
            memory, src, tgt = memory[rows], src[rows], tgt[rows]
            for layer in cache:
                _take(layer.own, rows)
                _take(layer.cross, rows)
        if newest is not None:
            tgt = torch.cat([tgt, newest[:, None]], dim=1)
        return model.decode(memory, src, tgt, cache=cache)[:, -1]

    return next_logits


def _take(cache: KVCache, rows: Tensor) -> None:
    """Keep only these rows, in this order."""
    if cache.key is not None and cache.value is not None:
        cache.key, cache.value = cache.key[rows], cache.value[rows]


def _reading_anew(model: Transformer, src: Tensor, prompt: Tensor, max_tokens: int) -> NextLogits:
    """The next logits without a cache: prompts may differ in length, and rows may attend to later tokens."""
    memory = model.encode(src) if len(model.encoder) else None
    lengths = (prompt != PAD_ID).sum(dim=1)
    tgt = F.pad(prompt, (0, max_tokens), value=PAD_ID)

    def next_logits(newest: Tensor | None, rows: Tensor | None = None) -> Tensor:
        nonlocal memory, src, tgt, lengths
        if rows is not None:
            memory = None if memory is None else memory[rows]
            src, tgt, lengths = src[rows], tgt[rows], lengths[rows]
        every = torch.arange(tgt.size(0), device=tgt.device)
        if newest is not None:
            tgt[every, lengths] = newest
            lengths = lengths + 1
        logits = model.decode(memory, src, tgt[:, : int(lengths.max())])
        return logits[every, lengths - 1]

    return next_logits

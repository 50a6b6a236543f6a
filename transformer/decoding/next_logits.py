"""The logits of the next token: the model reads on, row by row, what has been written so far."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.model.attention import KVCache
from transformer.model.stack_layers import LayerKVCache
from transformer.model.transformer import PAD_ID, Transformer

NextLogits = Callable[[Tensor | None, Tensor | None], Tensor]
"""From the newest token (B,) of each row, and the row (B,) of the previous call that each row continues, to
the logits (B, V) of its next token. Both are None at the first call; without rows, each row continues itself.
A row that is not continued is dropped."""


def next_logits_of(model: Transformer, src: Tensor, prompt: Tensor, max_tokens: int) -> NextLogits:
    """Start after the prompts, with cached keys and values where the model supports them.

    Args:
        src: (B, S).
        prompt: (B, P).
        max_tokens: most that will be written.
    """
    return (_with_cache if model.supports_kv_cache else _reading_anew)(model, src, prompt, max_tokens)


def room(model: Transformer, prompt: Tensor, max_tokens: int) -> int:
    """Tokens that may be written behind a prompt (B, P): no more than the model has positions."""
    return min(max_tokens, model.config.max_len + 1 - prompt.size(1))  # the last one is not read


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
    """The same, everything read again at each token: prompts may differ in length, rows may look ahead."""
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

"""Multi-head attention and its masks: a fused path for training, an explicit path to record the weights.

Shape letters, used in all of `transformer/model`:

    B  sequences in the batch      D  d_model, width of the residual stream
    S  source or key length        H  attention heads
    T  target length               K  d_head = D // H
    Q  query length                V  vocabulary size
    N  real tokens of a batch, without padding
"""

from __future__ import annotations

import math
from collections.abc import Set
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.config import ModelConfig
from transformer.model.layers import Dropout, linear
from transformer.model.packing import REGISTER, Packed, Packing


def causal_mask(length: int, device: torch.device | None = None) -> Tensor:
    """Let row i attend to columns 0..i, so that no position reads the token that it should write.

    "Attention Is All You Need" (Vaswani et al., 2017), section 3.2.3.

    Returns:
        (T, T), True on and below the diagonal.
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


def padding_mask(tokens: Tensor, pad_id: int) -> Tensor:
    """Block [PAD]: let every row attend to all real tokens, and only to these.

    Args:
        tokens: (B, S) token ids.

    Returns:
        (B, 1, 1, S), True at real tokens; it broadcasts over heads and rows, and with a causal mask (T, T).
    """
    return (tokens != pad_id)[:, None, None, :]


def scaled_scores(query: Tensor, key: Tensor, scale: float) -> Tensor:
    """The scores of queries and keys: (B, H, Q, K) and (B, H, S, K) to (B, H, Q, S)."""
    return (query @ key.transpose(-2, -1)) * scale


def masked_softmax(scores: Tensor, mask: Tensor | None, fill: str = "-inf") -> Tensor:
    """Softmax of each row over its allowed cells, (B, H, Q, S) like the scores; blocked cells are exactly 0.

    Args:
        scores: overwritten if gradients are disabled and there is a mask.
        mask: broadcastable to the scores, True where attention is allowed; None allows everything.
        fill: the value of blocked scores, "-inf" or "-1e9". They differ only in a row without an allowed
            cell: its weights are all zeros with "-inf", and equal, not zero, with "-1e9".
    """
    if mask is None:
        return softmax(scores)
    # With -inf itself, a row without an allowed cell would be 0/0, in the gradient too. So the lowest finite
    # number takes the place of -inf, and the weights of blocked cells are then set to zero.
    lowest = -1e9 if fill == "-1e9" else torch.finfo(scores.dtype).min
    if torch.is_grad_enabled():
        weights = softmax(scores.masked_fill(~mask, lowest))
        return weights if fill == "-1e9" else weights.masked_fill(~mask, 0.0)
    # The same result in place: multiplying and adding is twice as fast as filling.
    open_ = mask.to(scores.dtype)
    weights = softmax(scores.mul_(open_).add_((1.0 - open_) * lowest))
    return weights if fill == "-1e9" else weights.mul_(open_)


def softmax(scores: Tensor) -> Tensor:
    """Softmax over the last axis. On a CPU, rows are padded to whole registers, which is much faster."""
    n = scores.size(-1)
    if scores.device.type != "cpu" or n % REGISTER == 0:
        return scores.softmax(dim=-1)
    return F.pad(scores, (0, -n % REGISTER), value=float("-inf")).softmax(dim=-1)[..., :n]


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scale: float,
    dropout: Dropout | None = None,
    fill: str = "-inf",
) -> tuple[Tensor, Tensor]:
    """Scaled dot-product attention in separate operations, which returns the weights too.

    Equation 1 of "Attention Is All You Need" (Vaswani et al., 2017).

    Args:
        query: (B, H, Q, K).
        key: (B, H, S, K).
        value: (B, H, S, K).
        mask: broadcastable to (B, H, Q, S), True where attention is allowed; None allows everything.
        scale: factor of the scores.
        dropout: applied to the weights before they mix the values; the weights returned are without it.
        fill: as in `masked_softmax`.

    Returns:
        The mixed values, (B, H, Q, K), and the weights, (B, H, Q, S). Each row of weights sums to 1 over
        the allowed cells and is exactly 0 elsewhere; a row without an allowed cell is all zeros, or uniform
        with the fill "-1e9".
    """
    weights = masked_softmax(scaled_scores(query, key, scale), mask, fill)
    used = weights if dropout is None else dropout(weights)
    return used @ value, weights


def fused_attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float, *, causal: bool = False
) -> Tensor:
    """The mixed values of `attend` in one fused call, which does not return the weights.

    They equal those of `attend`, up to rounding, without dropout and with the fill "-inf": a row without an
    allowed cell gives zeros. Shapes as in `attend`.

    Args:
        causal: use the causal mask instead of `mask`; the fused call builds it, which is faster.
    """
    if causal:
        return F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale)


@dataclass
class KVCache:
    """The cache of one attention in decoding: keys and values, (B, H, positions, K).

    Both are None before the first call. The positions are those read so far in
    self-attention, and those of the source in cross-attention.
    """

    key: Tensor | None = None
    value: Tensor | None = None


class MultiHeadAttention(nn.Module):
    """Several attentions side by side, each on its own slice of the width, and their projection back to D.

    "Attention Is All You Need", section 3.2.2.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.n_heads = config.n_heads
        self.scale = 1.0 / math.sqrt(config.score_width)
        self.to_query = linear(config.d_model, config.d_model, config.qkv_bias)
        self.to_key = linear(config.d_model, config.d_model, config.qkv_bias)
        self.to_value = linear(config.d_model, config.d_model, config.qkv_bias)
        self.to_output = linear(config.d_model, config.d_model, config.output_bias)
        self.dropout = Dropout(config, "attention_weights")
        self.mask_fill = config.mask_fill
        self.recording: Set[str] = frozenset()
        """Names of the tensors that the next forward pass stores; set by `record` and by `MapComputer`."""
        self.recorded: dict[str, Tensor] = {}
        """Tensors of the last recorded forward pass by name; empty outside a recording."""
        self.head_gain: Tensor | None = None
        """(H, 1, 1), 0 for a head that is switched off and 1 for the others; None if all are on."""

    def _split(self, x: Tensor, packing: Packing | None = None) -> Tensor:
        if packing is not None:
            x = packing.pad(x)
        heads: Tensor = x.unflatten(-1, (self.n_heads, -1))  # (B, Q, D) -> (B, Q, H, K)
        return heads.transpose(1, 2)  # (B, H, Q, K)

    def keys_and_values(self, memory: Tensor, packing: Packing | None = None) -> tuple[Tensor, Tensor]:
        """Keys and values of (B, S, D), or of its real tokens (N, D): each (B, H, S, K)."""
        return self._split(self.to_key(memory), packing), self._split(self.to_value(memory), packing)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        mask: Tensor | None = None,
        cache: KVCache | None = None,
        packed: Packed | None = None,
    ) -> Tensor:
        """Let each position of `x` attend to `memory` (cross-attention) or to `x` itself.

        Args:
            x: (B, Q, D), where the queries come from.
            memory: (B, S, D), where keys and values come from; None means `x`.
            mask: broadcastable to (B, H, Q, S), True where attention is allowed; None allows everything.
            cache: in decoding, the keys and values of earlier calls. Self-attention adds those of `x`;
                cross-attention computes those of `memory` at the first call and reuses them from then on.
            packed: in training, the places of the real tokens; `x` and `memory` then hold only these, (N, D).

        Returns:
            A tensor with the shape of `x`.
        """
        query = self._split(self.to_query(x), packed.queries if packed else None)  # (B, H, Q, K)
        if cache is None:
            places = packed.keys if packed else None
            key, value = self.keys_and_values(x if memory is None else memory, places)
        else:
            key, value = self._with_cache(x, memory, cache)
        # In a row without an allowed cell, the fused call gives zeros, as only the fill -inf does.
        if self.recording or self.dropout.active or self.mask_fill != "-inf":
            mixed, weights = attend(query, key, value, mask, self.scale, self.dropout, self.mask_fill)
            if self.recording:
                self._store(query, key, value, mask, weights, mixed)
        else:
            causal = packed is not None and packed.causal
            mixed = fused_attend(query, key, value, mask, self.scale, causal=causal)
        if self.head_gain is not None:
            mixed = mixed * self.head_gain
        mixed = mixed.transpose(1, 2).flatten(2)  # (B, H, Q, K) -> (B, Q, D)
        if packed is not None:
            mixed = packed.queries.pack(mixed)
        return self.to_output(mixed)  # type: ignore[no-any-return]

    def _store(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, weights: Tensor, mixed: Tensor
    ) -> None:
        """Store the tensors of one forward pass that the recording requests."""
        self.recorded = {"query": query, "key": key, "value": value, "weights": weights, "mixed": mixed}
        if "scores" in self.recording:
            self.recorded["scores"] = scaled_scores(query, key, self.scale)  # before the mask
        if "mask" in self.recording:
            everything = torch.ones((), dtype=torch.bool, device=weights.device)
            self.recorded["mask"] = (everything if mask is None else mask).expand_as(weights)
        self.recorded = {name: self.recorded[name] for name in self.recording}

    def _with_cache(self, x: Tensor, memory: Tensor | None, cache: KVCache) -> tuple[Tensor, Tensor]:
        if cache.key is None or cache.value is None:
            cache.key, cache.value = self.keys_and_values(x if memory is None else memory)
        elif memory is None:
            key, value = self.keys_and_values(x)
            cache.key = torch.cat([cache.key, key], dim=2)
            cache.value = torch.cat([cache.value, value], dim=2)
        return cache.key, cache.value

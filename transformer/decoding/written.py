"""What a model has written by itself, each output up to its end."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.model.transformer import PAD_ID


@dataclass(frozen=True)
class Written:
    """What a model has written by itself. On the CPU."""

    tokens: Tensor
    """(B, W) token ids, up to the [EOS] of each; [PAD] behind it."""
    lengths: Tensor
    """(B,) tokens written, [EOS] included."""
    losses: Tensor | None = None
    """(B, A) how surprised the model was by each token of the right answer at its own place, in nats."""


def cut(tokens: Tensor, losses: Tensor | None, eos_id: int, limits: Tensor) -> Written:
    """End each sequence with its first [EOS], or at its limit (B,)."""
    ends = tokens == eos_id
    first = torch.where(ends.any(dim=1), ends.long().argmax(dim=1) + 1, tokens.size(1))
    lengths = torch.minimum(first, limits)
    behind = torch.arange(tokens.size(1), device=tokens.device) >= lengths[:, None]
    tokens = tokens.masked_fill(behind, PAD_ID)
    return Written(tokens.cpu(), lengths.cpu(), None if losses is None else losses.cpu())

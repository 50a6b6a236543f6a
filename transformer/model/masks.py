"""Boolean masks of attention, True where a query may look at a key."""

from __future__ import annotations

import torch
from torch import Tensor


def causal_mask(length: int, device: torch.device | None = None) -> Tensor:
    """Row i may look at columns 0..i, so that no position reads what it is to write.

    "Attention Is All You Need" (Vaswani et al., 2017), section 3.2.3.

    Returns:
        (T, T), True on and below the diagonal.
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


def padding_mask(tokens: Tensor, pad_id: int) -> Tensor:
    """Every row may look at every column that is a real token.

    Args:
        tokens: (B, S) token ids.

    Returns:
        (B, 1, 1, S), ready to be combined with (T, T) or broadcast over heads and rows.
    """
    return (tokens != pad_id)[:, None, None, :]

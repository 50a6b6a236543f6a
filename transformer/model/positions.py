"""The sinusoidal encoding of positions."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def sinusoid(length: int, d_model: int) -> Tensor:
    """Sines and cosines of the position, with a lower frequency for each further pair of features.

    "Attention Is All You Need" (Vaswani et al., 2017), section 3.5:
    PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos(pos / 10000^(2i/D)).

    Returns:
        (length, D) float32. An odd D ends with a sine.
    """
    position = torch.arange(length, dtype=torch.float64)[:, None]  # (length, 1)
    pair = torch.arange(0, d_model, 2, dtype=torch.float64)  # 2i
    angle = position * torch.exp(-math.log(10_000.0) * pair / d_model)  # (length, ceil(D/2))
    table = torch.empty(length, d_model, dtype=torch.float64)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle.cos()[:, : d_model // 2]
    return table.float()

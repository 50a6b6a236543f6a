"""Training without padding: linear layers and norms process real tokens only, attention the padded batch.

Random words of 1 to L letters fill little more than half of a batch; processing the rest would waste time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

REGISTER = 16
"""Number of float32 values in the widest vector register of a CPU; attention maps are computed faster if the
length of their rows is a multiple of it."""
MAX_EXTRA_PADDING = 4
"""Rows are lengthened to a multiple of `REGISTER` if at most this many tokens are missing."""


class Packing:
    """The places of the N real tokens of a padded batch.

    Args:
        tokens: (B, S) token ids.
        pad_id: the id that fills up the shorter rows.
    """

    def __init__(self, tokens: Tensor, pad_id: int) -> None:
        lacking = -tokens.size(1) % REGISTER
        self.wide = F.pad(tokens, (0, lacking), value=pad_id) if lacking <= MAX_EXTRA_PADDING else tokens
        """(B, S'), the batch as attention receives it; S' is S or the next multiple of `REGISTER`."""
        self.shape = (self.wide.size(0), self.wide.size(1))
        self.places = (self.wide != pad_id).flatten().nonzero().squeeze(1)
        self.tokens = self.wide.flatten()[self.places]
        """(N,), the ids of the real tokens."""
        self.positions = self.places % self.shape[1]
        """(N,), the position of each of them in its sequence."""
        self._whole = len(self.places) == self.wide.numel()

    def pack(self, x: Tensor) -> Tensor:
        """The real tokens of (B, S', D), one after another: (N, D)."""
        if self._whole:
            return x.flatten(0, 1)
        return _Pack.apply(x, self.places)  # type: ignore[no-any-return, no-untyped-call]

    def pad(self, x: Tensor) -> Tensor:
        """Put real tokens, (N, D), back into their places, with zeros for the padding: (B, S', D)."""
        if self._whole:
            return x.view(*self.shape, -1)
        return _Pad.apply(x, self.places, self.shape)  # type: ignore[no-any-return, no-untyped-call]


@dataclass(frozen=True)
class Packed:
    """The packing of the queries and keys of one attention."""

    queries: Packing
    keys: Packing
    causal: bool = False
    """Whether the causal mask is enough: the row of a real token reads only columns before the padding."""


class _Pack(torch.autograd.Function):
    """Gather the real tokens.

    The gradient is a plain copy; that of indexing would accumulate, since indices might be repeated.
    """

    @staticmethod
    def forward(context: Any, x: Tensor, places: Tensor) -> Tensor:
        context.save_for_backward(places)
        context.shape = x.shape[:2]
        return _taken(x, places)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (places,) = context.saved_tensors
        return _put(gradients[0], places, context.shape), None


class _Pad(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor, places: Tensor, shape: tuple[int, int]) -> Tensor:
        context.save_for_backward(places)
        return _put(x, places, shape)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (places,) = context.saved_tensors
        return _taken(gradients[0], places), None, None


def _taken(x: Tensor, places: Tensor) -> Tensor:
    return x.flatten(0, 1).index_select(0, places)


def _put(x: Tensor, places: Tensor, shape: tuple[int, int]) -> Tensor:
    return x.new_zeros(shape[0] * shape[1], x.size(-1)).index_copy_(0, places, x).view(*shape, -1)

"""Which axes of the weights are examples, windows and heads, told by the inputs of the model."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from transformer import attention_of


class Grid(nn.Module):
    """Attention of two heads within the groups that `arrange` makes of tokens of width 6."""

    def __init__(self, arrange):
        super().__init__()
        self.arrange = arrange

    def forward(self, x):
        q = self.arrange(x).unflatten(-1, (2, 3)).transpose(2, 3)  # (B, groups, H, tokens, 3)
        self.kept = (q @ q.mT).softmax(-1)
        return self.kept @ q


def tiled(n):
    """Return a function from images (B, H, W, 6) to their windows of n × n tokens: (B, windows, n * n, 6)."""
    return lambda x: x.unflatten(2, (-1, n)).unflatten(1, (-1, n)).transpose(2, 3).flatten(3, 4).flatten(1, 2)


@pytest.mark.parametrize(
    ("arrange", "shape"),
    [
        (lambda x: x, (3, 5, 8, 6)),  # within frames
        (lambda x: x.transpose(1, 2), (3, 5, 8, 6)),  # along the time
        (lambda x: x.transpose(1, 2), (1, 2, 7, 6)),
        (tiled(2), (3, 6, 6, 6)),
        (tiled(4), (2, 8, 8, 6)),
        (tiled(4), (1, 8, 12, 6)),
    ],
    ids=["frames", "time", "two frames", "nine windows", "four windows", "six windows"],
)
def test_frames_and_windows_of_an_image_are_told_from_heads_by_the_shape_of_the_inputs(arrange, shape):
    model, x = Grid(arrange), torch.randn(shape, generator=torch.Generator().manual_seed(4))
    found = attention_of(model, x)
    kept = model.kept.numpy()
    assert list(found) == [f"Grid window {i}" for i in range(1, min(4, kept.shape[1]) + 1)]
    for i, weights in enumerate(found.values()):
        np.testing.assert_allclose(weights, kept[:, i], atol=1e-6)


@dataclass
class Given:
    x: torch.Tensor


class Unpacked(nn.Module):
    """Attention over the rows of what it is given."""

    def forward(self, given):
        x = given.x if hasattr(given, "x") else torch.stack([*map(torch.as_tensor, given)])
        self.kept = (x @ x.mT).softmax(-1)
        return self.kept @ x


@pytest.mark.parametrize(
    "pack",
    [Given, lambda x: SimpleNamespace(x=x), namedtuple("Named", "x"), list],
    ids=["dataclass", "namespace", "named tuple", "list"],
)
def test_examples_in_an_object_or_a_list_are_told_from_heads(pack):
    x = torch.randn(3, 7, 4, generator=torch.Generator().manual_seed(4))
    model = Unpacked()
    (weights,) = attention_of(model, (pack(x),)).values()
    np.testing.assert_allclose(weights, model.kept[:, None], atol=1e-6)

"""Own models that are watched while they train."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

from transformer import Watch
from transformer.storage.saved import read_run


class Toy(nn.Module):
    """An encoder with three heads per layer over a five-dimensional input, with dropout."""

    def __init__(self, layers=2, width=12, heads=3, dropout=0.3):
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, heads, 16, dropout, batch_first=True)
        self.enter, self.body = (
            nn.Linear(5, width),
            nn.TransformerEncoder(layer, layers, enable_nested_tensor=False),
        )
        self.out = nn.Linear(width, 5)

    def forward(self, x):
        return self.out(self.body(self.enter(x)))


def training(model, steps, watch=None, fails_at=None):
    """Train a model to reverse its input; return the loss of each step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(3)
    losses = []
    for step in range(1, steps + 1):
        x = torch.randn(4, 6, 5, generator=generator)
        loss = ((model(x) - x.flip(1)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if watch is not None:
            watch.step(step, loss=losses[-1])
        if step == fails_at:
            raise ArithmeticError("no more")
    return losses


def kept(watch):
    """Return the view of the run in the file of a watch."""
    return read_run(watch.path).view


def recorded(watch, steps=(1,), **numbers):
    """Return the view in the file of a watch after these steps, each with these numbers."""
    for step in steps:
        watch.step(step, **numbers)
    watch.close()
    return kept(watch)


@pytest.fixture
def toy():
    torch.manual_seed(5)
    return Toy()


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """Watch a model in a folder of its own; warnings are collected in `said` and fail no test.

    Every step is recorded, on a busy machine too, unless the test gives a share.
    """

    def begin(model, inputs, **how):
        if "share" not in how:
            how["share"] = 1.0
            monkeypatch.setattr("transformer.watching.watch.CREDIT_SECONDS", 600.0)
        watch = Watch(model, inputs, how.pop("out", tmp_path / "mine"), **how)
        begun.append(watch)
        return watch

    begun = []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        begin.said = said
        yield begin
        for watch in begun:
            watch.close()

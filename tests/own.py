"""An own model recorded by `Watch`: its attention is prescribed, so that every number is known."""

from __future__ import annotations

import torch
from torch import nn

from transformer import Patches, Watch

LAYERS, HEADS = 2, 3


def even_then_sharp(step):
    """Return the weights of each site: random where 4 tokens are read, even where 3 tokens are written.

    Cross-attention is even before step 4, then 85% on the diagonal.
    """
    drawn = torch.Generator().manual_seed(step)
    share = 0.8 if step >= 4 else 0.0

    def towards(target):
        n, m = target.shape
        return share * target + (1 - share) / m * torch.ones(n, m)

    found = {}
    for layer in range(LAYERS):
        found[f"net.read.{layer}.attn"] = torch.randn(1, HEADS, 4, 4, generator=drawn).softmax(dim=-1)
        back = torch.tril(torch.ones(3, 3))
        found[f"net.write.{layer}.attn"] = torch.stack([back / back.sum(1, keepdim=True)] * HEADS)[None]
        found[f"net.write.{layer}.cross"] = torch.stack([towards(torch.eye(3, 4))] * HEADS)[None]
    return found


def own_run(folder, steps=8, name="Translator"):
    """Record a training of `steps` steps with `Watch`; return the file of the recording."""
    now = [0]
    model = type(name, (nn.Linear,), {})(2, 2)
    tokens = {
        "*read*": list("word"),
        "*.attn": ["[S]", "d", "r"],
        "*cross": (["[S]", "d", "r"], list("word")),
    }
    watch = Watch(
        model,
        {"one": None, "two": None},
        folder,
        tokens={"one": tokens},
        attention=lambda model, inputs: even_then_sharp(now[0]),
        share=1.0,
    )
    watch._began -= 1e6  # as if begun long ago: no step is too costly to record
    for step in range(1, steps + 1):
        now[0] = step
        watch.step(step, loss=4.0 / step, accuracy=step / 10)
    watch.close()
    assert watch.problem == ""
    return watch.path


GRID = 2, 3
CLEAR = 0.64
"""The weight of a patch in the mirror, as `mirrored_run` prescribes it."""


def mirrored_run(folder):
    """Record a model whose patches look at those in the mirror, from step 2 on; [CLS] looks everywhere."""
    now = [0]

    def mirrored(model, inputs):
        weights = torch.full((1, 2, 7, 7), 1 / 7)
        if now[0] >= 2:
            for patch in range(6):
                row, column = divmod(patch, 3)
                weights[0, 1, 1 + patch] = (1 - CLEAR) / 6
                weights[0, 1, 1 + patch, 1 + 3 * row + 2 - column] = CLEAR
        return {"net.attn": weights}

    colors = torch.linspace(0.4, 1, 18).reshape(3, *GRID)
    picture = colors.repeat_interleave(8, 1).repeat_interleave(8, 2)
    tokens = {"one": Patches(picture, GRID, before=["[CLS]"])}
    watch = Watch(nn.Linear(2, 2), {"one": None}, folder, tokens=tokens, attention=mirrored, share=1.0)
    watch._began -= 1e6  # as if begun long ago: no step is too costly to record
    for step in range(1, 4):
        now[0] = step
        watch.step(step, loss=4.0 / step)
    watch.close()
    assert watch.problem == ""
    return watch.path

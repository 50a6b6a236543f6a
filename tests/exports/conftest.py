"""A run whose every axis has another length, with a head taken away and a word asked in the middle of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from transformer.config import ModelConfig, RunConfig, TrainConfig
from transformer.insight.moments import Moment
from transformer.interventions import Block, Interventions
from transformer.runs.run import Run
from transformer.runs.view import Frame, RunView

CONFIG = RunConfig(
    model=ModelConfig(n_encoder_layers=1, n_decoder_layers=2, n_heads=3, d_model=12, d_ff=10),
    train=TrainConfig(max_letters=6, batch_size=6, steps=8, warmup_steps=3, evaluate_every=4),
    seed=5,
    device="cpu",
)
TAKEN = Interventions(
    ablated=(("decoder.1.cross", 2),),
    blocked=(
        Block(site="decoder.0.self", head=1, row=4, column=2),
        Block(site="decoder.0.cross", head=0, row=1, column=3),
    ),
)
"""Taken away at step 4; the word ox is asked there too."""


def sharpened(frame: Frame) -> Frame:
    """The same frame with maps as sharp as those of a trained model: random rows that add up to 1."""
    rng = np.random.default_rng(frame.step)
    maps = {}
    for site, weights in frame.maps.items():
        made = np.zeros(weights.shape, dtype=np.float16)
        for row in range(len(frame.probes)):
            may = ~np.isnan(frame.map(row, site))
            scores = np.exp(4 * rng.normal(size=may.shape)) * may
            made[row, :, : may.shape[1], : may.shape[2]] = scores / scores.sum(axis=-1, keepdims=True)
        maps[site] = made
    return replace(frame, maps=maps)


@pytest.fixture(scope="session")
def recorded(changed_midway: Callable[..., RunView]) -> RunView:
    return changed_midway(Run(CONFIG, words=("banana", "cat")), 4, TAKEN, "ox")


@pytest.fixture
def view(recorded: RunView) -> RunView:
    """Frames of steps 0 to 5 and 8, two of them moments; "ox" is in the last ones only."""
    return replace(
        recorded,
        frames=tuple(sharpened(frame) for frame in recorded.frames),
        moments=(
            Moment(2, "drop", "the loss <fell>"),
            Moment(4, "intervention", "ablated decoder layer 2, head 3"),
        ),
    )

"""A run for the tests of the player, with interventions and a word added midway; and pairs with markup."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from transformer.config import ModelConfig, RunConfig, TrainConfig
from transformer.insight.moments import Moment
from transformer.recording.frame import Frame
from transformer.recording.view import RunView
from transformer.runs.run import Run
from transformer.shared.interventions import Block, Interventions

CONFIG = RunConfig(
    model=ModelConfig(n_encoder_layers=1, n_decoder_layers=2, n_heads=3, d_model=12, d_ff=10),
    train=TrainConfig(max_letters=6, batch_size=6, steps=40, warmup_steps=3, evaluate_every=10),
    seed=5,
    device="cpu",
)
TAKEN = Interventions(
    ablated=(("decoder.1.cross", 2),), blocked=(Block(site="decoder.0.cross", head=0, row=1, column=3),)
)
"""Interventions made at step 14; the word ox is added then too."""
SIGNS = "<zqx> &zqx;"
PAIRS = tuple(
    (f"The {color} {SIGNS} sees {n} {thing}s.", f"Le {SIGNS} {color} voit {n} {thing}s.")
    for n in range(4)
    for color in ("red", "blue", "green", "black")
    for thing in ("cat", "dog", "book", "tree")
)


@pytest.fixture(scope="session")
def recorded(changed_midway: Callable[..., RunView]) -> RunView:
    """A run with every step recorded; from step 14 on, a head is off, a cell is blocked, a word is added."""
    view = changed_midway(Run(CONFIG, words=("banana", "cat")), 14, TAKEN, "ox")
    moments = (Moment(7, "drop", "the loss <fell>"), *view.moments)
    return replace(view, moments=tuple(sorted(moments, key=lambda one: one.step)))


@pytest.fixture
def untrained(recorded: RunView) -> Frame:
    """The first frame of the run."""
    return recorded.frames[0]


def said(document: Any) -> Iterator[str]:
    """Yield every text in plain data, including those in the specification of a figure, but no keys."""
    if isinstance(document, str):
        if document.startswith('{"data"'):
            yield from said(json.loads(document))
        else:
            yield document
    elif isinstance(document, dict):
        for name, inner in document.items():
            if name != "uirevision":  # a name under which a zoom is kept
                yield from said(inner)
    elif isinstance(document, list | tuple):
        for inner in document:
            yield from said(inner)


@pytest.fixture(name="said", scope="session")
def said_fixture() -> Callable[[Any], Iterator[str]]:
    return said

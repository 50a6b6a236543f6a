"""Models to ask, snapshots of them, and single reference passes."""

from __future__ import annotations

import pytest
import torch

from transformer.asking.model import SnapshotModel
from transformer.recording.activations import record
from transformer.recording.weights import Snapshot
from transformer.shared.interventions import NO_INTERVENTIONS, Interventions

WORDS = ("frog", "q", "ox", "kayak")  # kayak is longer than the training words of the half-trained model


def snapshot_of(state, step=None, interventions=NO_INTERVENTIONS):
    weights = {name: w.numpy().copy() for name, w in state.model.state_dict().items()}
    return Snapshot(step=state.step if step is None else step, source=weights, interventions=interventions)


def one_pass(state, src, tgt):
    """Return probabilities (T, V) and maps of a pass over one word, given as displayed tokens."""
    with record(state.model) as cache:
        logits = state.model(torch.tensor([ids_of(state, src)]), torch.tensor([ids_of(state, tgt)]))[0]
    return logits.softmax(-1).numpy(), {site: weights[0] for site, weights in cache.weights.items()}


def ids_of(state, tokens):
    return [state.task.src_tokenizer.id_of(token) for token in tokens]


@pytest.fixture(scope="module")
def half_asked(half_trained):
    return SnapshotModel(half_trained.config, snapshot_of(half_trained), NO_INTERVENTIONS)


@pytest.fixture
def ask_without(half_trained):
    def make(*blocked, ablated=()):
        taken = Interventions(ablated=ablated, blocked=blocked)
        return SnapshotModel(half_trained.config, snapshot_of(half_trained), taken)

    return make

"""Snapshots: the weights of one step, and when one is due."""

from __future__ import annotations

import numpy as np

from transformer.interventions import NOTHING, Interventions
from transformer.recording.shelf import Shelf
from transformer.recording.snapshot import Snapshot, snapshot_is_due

WEIGHTS = {"a.weight": np.ones((3, 5), np.float32), "a.bias": np.zeros(3, np.float32)}


def test_snapshots_are_dense_while_most_changes_and_sparser_later():
    due = [step for step in range(201) if snapshot_is_due(step)]
    assert due == [0, 1, 2, 3, 4, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 75, 100, 125, 150, 175, 200]
    assert not snapshot_is_due(1010)
    assert snapshot_is_due(20_000)


def test_on_the_shelf_it_is_the_same_and_takes_no_memory():
    taken = Interventions(ablated=(("encoder.0", 1),))
    snapshot = Snapshot(step=7, weights=WEIGHTS, interventions=taken)
    assert snapshot.nbytes == (15 + 3) * 4
    away = snapshot.shelved(Shelf())
    assert (away.step, away.interventions, away.nbytes) == (7, taken, 0)
    assert snapshot.nbytes == 72
    for name, weights in WEIGHTS.items():
        assert np.array_equal(away.weights[name], weights)
    assert Snapshot(step=0, weights=WEIGHTS).interventions == NOTHING

"""Weights as a file that any program reads bit-equal, with their configuration."""

from __future__ import annotations

import json

import numpy as np
from safetensors.numpy import load

from transformer.config import RunConfig
from transformer.exports.weights import weights_file

WEIGHTS = {
    "encoder.0.weight": np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32),
    "bias": np.arange(7, dtype=np.float16),
    "transposed": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "scalar": np.float32(2.5).reshape(()),
}
CONFIG = RunConfig(seed=9).with_changes(n_heads=2, d_model=24, goal=0.5)


def test_the_weights_of_a_run_fit_its_file(view):
    snapshot = view.snapshots[-1]
    weights = load(weights_file(view.config, snapshot.step, snapshot.weights))
    assert snapshot.step == 8
    assert sum(array.size for array in weights.values()) == view.parameters
    for name, array in snapshot.weights.items():
        np.testing.assert_array_equal(weights[name], array)


def test_any_other_program_can_read_the_file_and_its_metadata():
    data = weights_file(CONFIG, 4, WEIGHTS)
    weights = load(data)
    assert set(weights) == set(WEIGHTS)
    for name, array in WEIGHTS.items():
        assert weights[name].dtype == array.dtype
        np.testing.assert_array_equal(weights[name], array)
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    assert header["__metadata__"]["step"] == "4"
    assert RunConfig.from_json(header["__metadata__"]["config"]) == CONFIG

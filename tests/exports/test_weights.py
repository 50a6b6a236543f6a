"""Weights as a file: they come back bit-equal with their configuration; anything else is refused in words."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from safetensors.numpy import load, save

from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.exports.weights import read_weights, weights_file

WEIGHTS = {
    "encoder.0.weight": np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32),
    "bias": np.arange(7, dtype=np.float16),
    "transposed": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "scalar": np.float32(2.5).reshape(()),
}
CONFIG = RunConfig(seed=9).with_changes(n_heads=2, d_model=24, goal=0.5)


def with_metadata(**changes):
    """A readable file whose metadata is not what we write."""
    metadata = {"format": "headlight-weights-1", "config": CONFIG.to_json(), "step": "3"} | changes
    return save({"bias": WEIGHTS["bias"]}, {k: v for k, v in metadata.items() if v is not None})


def test_what_is_written_comes_back_bit_equal():
    config, step, weights = read_weights(weights_file(CONFIG, 1_250, WEIGHTS))
    assert (config, step) == (CONFIG, 1250)
    assert set(weights) == set(WEIGHTS)
    for name, array in WEIGHTS.items():
        assert weights[name].dtype == array.dtype
        np.testing.assert_array_equal(weights[name], array)


def test_the_weights_of_a_run_fit_its_file(view):
    snapshot = view.snapshots[-1]
    config, step, weights = read_weights(weights_file(view.config, snapshot.step, snapshot.weights))
    assert (config, step) == (view.config, 8)
    assert sum(array.size for array in weights.values()) == view.parameters
    for name, array in snapshot.weights.items():
        np.testing.assert_array_equal(weights[name], array)


def test_any_other_program_can_read_the_file_and_its_metadata():
    data = weights_file(CONFIG, 4, WEIGHTS)
    np.testing.assert_array_equal(load(data)["bias"], WEIGHTS["bias"])
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    assert header["__metadata__"]["step"] == "4"
    assert json.loads(header["__metadata__"]["config"])["seed"] == 9


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        b"\xff" * 100,
        pickle.dumps(WEIGHTS),
        weights_file(CONFIG, 4, WEIGHTS)[:-1],
        weights_file(CONFIG, 4, WEIGHTS) + b"x",
        (2**62).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"[]",
        (40).to_bytes(8, "little") + b"[" * 40,
        (len(b'{"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}')).to_bytes(8, "little")
        + b'{"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}ab',
    ],
    ids=["empty", "text", "noise", "pickle", "cut", "longer", "huge", "list", "deep", "unknown type"],
)
def test_what_is_no_such_file_is_refused_with_its_size_and_the_next_step(data):
    with pytest.raises(InputError, match="^This file of ") as refused:
        read_weights(data)
    assert f"{len(data):,} bytes" in str(refused.value)
    assert str(refused.value).endswith(
        "Choose a .safetensors file that was saved with “Weights” in this app."
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": None}, "These weights have the format None; 'headlight-weights-1' is needed. Choose a "),
        ({"format": "pt"}, "These weights have the format 'pt'; 'headlight-weights-1' is needed. Choose a "),
        ({"step": None}, "The step of these weights is '', not a whole number. Choose a "),
        ({"step": "-1"}, "The step of these weights is '-1', not a whole number. "),
        ({"step": "1" * 50}, f"The step of these weights is '{'1' * 40}', not a whole number. "),
        ({"config": None}, "The configuration is not JSON "),
        ({"config": "{"}, "The configuration is not JSON "),
        ({"config": '{"format": 7}'}, "The configuration has format 7; this version reads format 1."),
    ],
)
def test_weights_of_another_program_or_version_are_refused_with_what_was_found(changes, message):
    with pytest.raises(InputError) as refused:
        read_weights(with_metadata(**changes))
    assert str(refused.value).startswith(message)


def test_a_file_without_any_metadata_is_refused():
    with pytest.raises(InputError, match="have the format None"):
        read_weights(save({"bias": WEIGHTS["bias"]}))

"""Invalid settings are refused by name, with the value, the limit and the next step."""

from __future__ import annotations

import pytest

from transformer.config import ModelConfig, RunConfig, TrainConfig
from transformer.errors import InputError

REFUSED = {
    ModelConfig: {
        "topology": ["encoder"],
        "src_vocab_size": [4, 100_001],
        "max_len": [3, 1025],
        "n_encoder_layers": [0, 13],
        "n_decoder_layers": [0, 13],
        "n_heads": [0, 65, 2.0, True],
        "d_model": [1, 10**6],
        "d_ff": [0, 4097],
        "dropout": [-0.1, 0.95],
        "dropout_on": [("everywhere",), "residual"],
        "qkv_bias": [1],
        "causal_mask": ["no"],
        "padding_mask": [None],
        "mask_fill": [-1e9],
        "norm_eps": [0, 0.2],
        "activation": ["swish"],
        "embedding_std": [0.0],
    },
    TrainConfig: {
        "task": ["fly"],
        "min_letters": [0, 13],
        "max_letters": [2, 41],
        "shift": [0, 26],
        "patterns": [(), "negation", (3,)],
        "adjectives": [-1, 5],
        "pairs": ["", 7],
        "examples": [0],
        "tokenizer": ["letters"],
        "tokenizer_file": [65 * "a"],
        "vocabulary": [9, 10.5],
        "min_frequency": [0, 1001],
        "batch_size": [0, 4097],
        "steps": [0, 1_000_001],
        "learning_rate": [0, -1.0, float("nan"), float("inf"), 10**400],
        "betas": [(0.9, 1.0), (0.9,)],
        "clip": [0.0],
        "label_smoothing": [0.95],
        "goal": [0.0, 1.5],
        "decoding": ["sampled"],
        "beam_width": [0, 17],
        "length_penalty": [-0.5, 2.1],
        "tensorboard": ["yes"],
    },
    RunConfig: {"seed": [-1, 2**32], "device": ["tpu"], "threads": [0, 257], "recipe": ["", 61 * "x"]},
}
"""Values just outside the limits of each setting, and values of another type."""


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [(kind, name, value) for kind in REFUSED for name, values in REFUSED[kind].items() for value in values],
    ids=lambda v: str(v)[:20],
)
def test_an_invalid_value_is_refused_by_the_name_of_its_setting(kind, name, value):
    with pytest.raises(InputError) as refused:
        kind(**{name: value})
    assert refused.value.field == name


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (ModelConfig, {"n_heads": 65}, "n_heads=65 is outside 1 to 64; choose a value in between."),
        (
            ModelConfig,
            {"d_model": 10**6},
            "d_model=1,000,000 is outside 2 to 1,024; choose a value in between. "
            "Widths of 32 to 128 learn live on a laptop.",
        ),
        (ModelConfig, {"n_heads": True}, "n_heads=True is not a whole number; choose one from 1 to 64."),
        (ModelConfig, {"dropout": 0.95}, "dropout=0.95 cannot be used; choose at least 0 and at most 0.9."),
        (ModelConfig, {"norm_eps": 0}, "norm_eps=0 cannot be used; choose more than 0 and at most 0.1."),
        (TrainConfig, {"clip": 0}, "clip=0 cannot be used; choose more than 0."),
        (TrainConfig, {"goal": "all"}, "goal='all' is not a finite number; choose one like 0.001."),
        (
            ModelConfig,
            {"activation": "swish"},
            "activation='swish' does not exist; choose relu, leaky_relu or gelu.",
        ),
        (ModelConfig, {"qkv_bias": 1}, "qkv_bias=1 is neither true nor false; choose one."),
        (
            ModelConfig,
            {"d_model": 30, "n_heads": 4},
            "d_model=30 cannot be split into 4 equal heads; "
            "choose 1, 2, 3, 5, 6, 10 or 15 heads, or another width.",
        ),
        (
            ModelConfig,
            {"embedding_tables": "one", "src_vocab_size": 7, "tgt_vocab_size": 8},
            "One table cannot serve 7 source and 8 target tokens; choose two tables.",
        ),
    ],
)
def test_a_refusal_states_the_value_the_limit_and_the_next_step(kind, values, message):
    with pytest.raises(InputError) as refused:
        kind(**values)
    assert str(refused.value) == message

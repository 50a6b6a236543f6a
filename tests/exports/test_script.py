"""The exported script has the same model and training as the app, and needs only PyTorch."""

from __future__ import annotations

import itertools
import re
from dataclasses import fields

import numpy as np
import pytest
import torch

from tests.exports.conftest import TOPOLOGIES, label, names_in, run_of, twin
from transformer.config import ModelConfig, RunConfig, TrainConfig
from transformer.config.recipes import RECIPES
from transformer.errors import InputError
from transformer.exports.script import EXPERIMENT, script, script_problem
from transformer.tasks import resolved
from transformer.training.loop import train

REFUSED = {
    "task": "copy",
    "tokenizer": "bpe",
    "precision": "bfloat16",
    "decoding": "beam",
    "tensorboard": True,
}


ELSEWHERE = {  # settings that affect only speed, or only what a script refuses
    *("src_vocab_size", "tgt_vocab_size", "cuda_graphs", "published", "model", "train"),
    *("shift", "patterns", "adjectives", "pairs"),
    *("tokenizer_file", "vocabulary", "min_frequency", "beam_width", "length_penalty"),
}


# Settings that change what the model computes or how it learns: one at a time, then several together.
FLIPS = {
    "mask_fill": ["-1e9"],
    "n_encoder_layers": [3],
    "n_heads": [2],
    "d_model": [15],
    "d_ff": [7],
    "qkv_bias": [False],
    "output_bias": [False],
    "score_scale": ["sqrt_d_model", "none"],
    "norm_placement": ["post", "branch"],
    "final_norm": [False],
    "norm": ["scalar"],
    "norm_eps": [0.1],
    "activation": ["leaky_relu", "gelu"],
    "embedding_scale": ["none", "encoder"],
    "positions": ["learned", "none"],
    "embedding_tables": ["one"],
    "padding_row": [True],
    "batch_size": [3],
    "optimizer": ["adam"],
    "learning_rate": [0.02],
    "betas": [(0.5, 0.6)],
    "adam_eps": [0.1],
    "weight_decay": [2.0],
    "schedule": ["cosine", "constant"],
    "clip": [None, 0.05],
    "label_smoothing": [0.3],
}


CASES = [
    *({name: value} for name, values in FLIPS.items() for value in values),
    *(
        {"topology": topology, "causal_mask": causal, "padding_mask": padding}
        for topology in TOPOLOGIES
        for causal in (True, False)
        for padding in (True, False)
    ),
    *(
        {
            "topology": topology,
            "n_decoder_layers": 3,
            "embedding_tables": "one",
            "padding_row": True,
            "embedding_scale": "encoder",
            "positions": "learned",
            "norm": "scalar",
            "norm_placement": "post",
            "final_norm": False,
            "optimizer": "adam",
            "weight_decay": 0.5,
            "warmup_steps": 0,
        }
        for topology in TOPOLOGIES
    ),
]


def table_of(model):
    """Return the embedding table of the stack that writes."""
    return model.tgt_embedding if hasattr(model, "tgt_embedding") else model.src_embedding


def test_a_script_is_experiment_py_with_the_settings_of_a_run_at_its_top():
    program = EXPERIMENT.read_text(encoding="utf-8")
    top, rest = program.split("# ---- Words ----")
    assert script(RunConfig()) == program
    there = set(re.findall(r"^([A-Z_]+) = ", top, re.MULTILINE))
    known = {f.name for group in (RunConfig, ModelConfig, TrainConfig) for f in fields(group)}
    assert {name.lower() for name in there} == known - set(REFUSED) - ELSEWHERE
    for recipe in RECIPES.values():
        for config in (recipe.small, recipe.published):
            config = resolved(config.with_changes(device="cpu", threads=2, betas=(np.float64(0.5), 0)))
            expected = {**vars(config), **vars(config.train), **vars(config.model)}
            expected["causal_mask"] = config.model.masks["causal"]
            text = script(config)
            names = names_in(text)
            assert text.endswith(rest)
            for name in there:
                value = expected[name.lower()]
                assert names[name] == (list(value) if isinstance(value, tuple) else value), name


def test_free_text_stays_in_its_quotes():
    text = script(RunConfig(recipe='"\nimport os  # ${seed} é\\'))
    assert names_in(text)["RECIPE"] == '"\nimport os  # ${seed} é\\'
    assert text.isascii()


@pytest.mark.parametrize(("name", "value"), REFUSED.items())
def test_settings_that_a_script_does_not_support_are_refused(name, value):
    config = RunConfig().with_changes(**{name: value})
    with pytest.raises(InputError, match="; choose ") as refused:
        script(config)
    assert script_problem(config) == str(refused.value)
    assert script_problem(RunConfig()) is None


@pytest.mark.parametrize("changes", CASES, ids=label)
def test_with_the_same_weights_and_words_a_script_computes_and_learns_as_the_app(changes, fill):
    names, state = run_of(**changes)
    n_steps = state.config.train.steps - 1  # the last step would evaluate
    words = [state.task.words(state.config.seed, k) for k in range(n_steps)]
    model = twin(names, state)
    steps, theirs = zip(*names["train"](model, words), strict=True)
    assert steps == tuple(range(1, n_steps + 1))
    ours = [loss for report in itertools.islice(train(state), n_steps) for loss in report.losses]
    assert theirs == pytest.approx(ours, rel=2e-4, abs=2e-5)
    if state.config.model.padding_row:
        assert not table_of(model).weight[0].any()

    batch = state.task.encode(["abcde", "a", "zz", "helo"])
    src, tgt, labels = state.to_device(batch)
    two = state.config.model.topology == "encoder-decoder"
    expected = (src, tgt, labels) if two else (src, labels)
    *given, made_labels = names["as_tensors"](["abcde", "a", "zz", "helo"])
    made = [one for one in (*given, made_labels) if one is not None]
    assert all(torch.equal(one, other) for one, other in zip(made, expected, strict=True))
    fill(state.model)  # logits that differ clearly
    model = twin(names, state)
    model.double(), state.model.double()  # so that rounding makes no difference
    ours = state.model.eval()(src, tgt)
    torch.testing.assert_close(model.eval()(*given), ours, rtol=0.0, atol=1e-5)
    assert ours.std() > 0.01

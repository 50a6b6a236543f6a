"""Configurations: frozen, checked with words that help, and the same after a trip through JSON."""

from __future__ import annotations

import ast
import json
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest

from transformer import config as config_module
from transformer.config import ModelConfig, RunConfig, TrainConfig
from transformer.errors import InputError

CHANGED = RunConfig(
    model=ModelConfig(
        src_vocab_size=31,
        tgt_vocab_size=31,
        max_len=27,
        n_encoder_layers=1,
        n_decoder_layers=3,
        n_heads=8,
        d_model=64,
        d_ff=96,
        dropout=0.25,
        dropout_on=("residual", "encoder_attention"),
        qkv_bias=False,
        output_bias=False,
        score_scale="sqrt_d_model",
        norm_placement="branch",
        final_norm=False,
        norm="scalar",
        norm_eps=1e-6,
        activation="gelu",
        embedding_scale="none",
        positions="learned",
        embedding_tables="one",
        padding_row=True,
        initialisation="xavier",
        embedding_std=None,
    ),
    train=TrainConfig(
        min_letters=2,
        max_letters=7,
        pad_to=16,
        batch_size=5,
        steps=17,
        optimizer="adam",
        learning_rate=3e-4,
        betas=(0.8, 0.9),
        adam_eps=1e-8,
        weight_decay=0.0,
        warmup_steps=4,
        schedule="cosine",
        clip=None,
        label_smoothing=0.1,
        evaluate_every=6,
        goal=0.75,
    ),
    recipe="of my own",
    seed=9,
    device="cpu",
    threads=2,
)
NOT_BUILT = [
    (
        ModelConfig,
        {"topology": "encoder-only"},
        "topology='encoder-only' is not built yet; choose encoder-dec",
    ),
    (
        ModelConfig,
        {"topology": "decoder-only"},
        "topology='decoder-only' is not built yet; choose encoder-dec",
    ),
    (ModelConfig, {"causal_mask": False}, "causal_mask=false is not built yet; choose true."),
    (ModelConfig, {"padding_mask": False}, "padding_mask=false is not built yet; choose true."),
    (ModelConfig, {"mask_fill": "-1e9"}, "mask_fill='-1e9' is not built yet; choose -inf."),
    (TrainConfig, {"task": "sort"}, "task='sort' is not built yet; choose reverse."),
    (TrainConfig, {"examples": 500}, "A finite training set is not built yet; leave examples empty."),
    (TrainConfig, {"tokenizer": "bpe"}, "tokenizer='bpe' is not built yet; choose characters."),
    (TrainConfig, {"decoding": "beam"}, "decoding='beam' is not built yet; choose greedy."),
    (TrainConfig, {"tensorboard": True}, "Logging to TensorBoard is not built yet; choose false."),
]
UNUSABLE = [
    (
        ModelConfig,
        {"d_model": 30, "n_heads": 4},
        "d_model=30 cannot be split into n_heads=4 equal heads; "
        "choose 1, 2, 3, 5, 6, 10 or 15 heads, or another width.",
    ),
    (
        ModelConfig,
        {"n_encoder_layers": 0},
        "n_encoder_layers=0 is outside 1 to 12; choose a value in between.",
    ),
    (
        ModelConfig,
        {"n_decoder_layers": 0},
        "n_decoder_layers=0 is outside 1 to 12; choose a value in between.",
    ),
    (
        ModelConfig,
        {"d_model": 10**6},
        "d_model=1,000,000 is outside 2 to 1,024; choose a value in between. "
        "Widths of 32 to 128 learn live on a laptop.",
    ),
    (ModelConfig, {"n_heads": 2.0}, "n_heads=2.0 is not a whole number; choose one from 1 to 64."),
    (ModelConfig, {"n_heads": True}, "n_heads=True is not a whole number; choose one from 1 to 64."),
    (ModelConfig, {"dropout": 0.95}, "dropout=0.95 cannot be used; choose at least 0 and at most 0.9."),
    (ModelConfig, {"norm_eps": 0}, "norm_eps=0 cannot be used; choose more than 0 and at most 0.1."),
    (
        ModelConfig,
        {"activation": "swish"},
        "activation='swish' does not exist; choose relu, leaky_relu or gelu.",
    ),
    (ModelConfig, {"qkv_bias": 1}, "qkv_bias=1 is neither true nor false; choose one."),
    (
        ModelConfig,
        {"dropout_on": ("everywhere",)},
        "dropout_on=('everywhere',) names a place that does not exist; choose from embedding, "
        "attention_weights, feed_forward, residual, encoder_attention.",
    ),
    (
        ModelConfig,
        {"embedding_tables": "one", "src_vocab_size": 7, "tgt_vocab_size": 8},
        "One table cannot serve 7 source and 8 target tokens; choose two tables.",
    ),
    (TrainConfig, {"task": "fly"}, "task='fly' does not exist; choose reverse."),
    (TrainConfig, {"min_letters": 13}, "min_letters=13 is outside 1 to 12; choose a value in between."),
    (
        TrainConfig,
        {"pad_to": 13},
        "pad_to=13 is outside 14 to 100; choose a value in between. "
        "It must hold the longest word, [SOS] and [EOS].",
    ),
    (TrainConfig, {"steps": 0}, "steps=0 is outside 1 to 1,000,000; choose a value in between."),
    (TrainConfig, {"learning_rate": 0}, "learning_rate=0 cannot be used; choose more than 0."),
    (
        TrainConfig,
        {"learning_rate": float("nan")},
        "learning_rate=nan is not a finite number; choose one like",
    ),
    (TrainConfig, {"learning_rate": 10**400}, "is not a finite number; choose one like"),
    (
        TrainConfig,
        {"betas": (0.9, 1.0)},
        "betas=(0.9, 1.0) cannot be used; choose two numbers from 0 to below 1.",
    ),
    (TrainConfig, {"goal": 1.5}, "goal=1.5 cannot be used; choose more than 0 and at most 1."),
    (RunConfig, {"seed": -1}, "seed=-1 is outside 0 to 4,294,967,295; choose a value in between."),
    (RunConfig, {"device": "tpu"}, "device='tpu' does not exist; choose auto, cpu, cuda or mps."),
    (RunConfig, {"recipe": ""}, "A recipe's name has 1 to 60 characters."),
]


@pytest.mark.parametrize(("kind", "values", "message"), NOT_BUILT + UNUSABLE, ids=lambda v: str(v)[:40])
def test_what_cannot_be_used_is_refused_with_the_value_the_limit_and_the_next_step(kind, values, message):
    with pytest.raises(InputError) as refused:
        kind(**values)
    assert message in str(refused.value)
    assert refused.value.field in values or refused.value.field == "n_heads"


@pytest.mark.parametrize("kind", [ModelConfig, TrainConfig, RunConfig])
def test_a_configuration_cannot_be_changed(kind):
    made = kind()
    for field in fields(kind):
        with pytest.raises(FrozenInstanceError):
            setattr(made, field.name, getattr(made, field.name))


def test_a_configuration_is_the_same_after_a_trip_through_json():
    alone = {"topology", "causal_mask", "padding_mask", "mask_fill"}  # only one value is built yet
    alone |= {"task", "examples", "tokenizer", "decoding", "tensorboard"}
    assert set(RunConfig().differences(CHANGED)) == (
        {field.name for kind in (ModelConfig, TrainConfig, RunConfig) for field in fields(kind)}
        - alone
        - {"model", "train"}
    ), "a new field needs another value in CHANGED"
    for config in (RunConfig(), CHANGED):
        assert RunConfig.from_json(config.to_json()) == config
        assert hash(RunConfig.from_json(config.to_json())) == hash(config)


def test_json_carries_its_format_and_absent_names_keep_their_defaults():
    assert json.loads(RunConfig().to_json())["format"] == 1
    assert RunConfig.from_json('{"model": {"d_model": 48}}') == RunConfig(model=ModelConfig(d_model=48))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"model": {"d_modle": 48}}', "ModelConfig has no setting 'd_modle'; did you mean 'd_model'?"),
        ('{"train": {"zzz": 1}}', "TrainConfig has no setting 'zzz'; it has adam_eps, batch_size,"),
        ('{"sead": 1}', "RunConfig has no setting 'sead'; did you mean 'seed'?"),
        ('{"model": 5}', "ModelConfig needs a JSON object, not int."),
        (
            '{"model": {"dropout_on": [["residual"]]}}',
            "names a place that does not exist; choose from embedding",
        ),
        ('{"format": 2}', "The configuration has format 2; this version reads format 1."),
        ("[1]", "The configuration is not a JSON object."),
        ("{", "The configuration is not JSON (Expecting property name"),
        ('{"seed": ' + 5000 * "9" + "}", "The configuration is not JSON (Exceeds the limit"),
    ],
)
def test_json_that_cannot_be_used_is_refused_with_a_reason(text, message):
    with pytest.raises(InputError) as refused:
        RunConfig.from_json(text)
    assert message in str(refused.value)


def test_settings_are_changed_by_their_plain_names_wherever_they_live():
    changed = RunConfig().with_changes(d_model=64, steps=7, seed=3)
    assert (changed.model.d_model, changed.train.steps, changed.seed) == (64, 7, 3)
    assert RunConfig().differences(changed) == {"d_model": (32, 64), "steps": (300, 7), "seed": (0, 3)}
    assert RunConfig().differences(RunConfig()) == {}


def test_a_head_has_its_share_of_the_width():
    assert ModelConfig(d_model=60, n_heads=5).d_head == 12


@pytest.mark.parametrize("kind", [ModelConfig, TrainConfig, RunConfig])
def test_every_field_has_a_sentence_under_it(kind):
    tree = ast.parse(Path(config_module.__file__).read_text(encoding="utf-8"))
    body = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == kind.__name__).body
    sentences = {
        field.target.id: below.value.value
        for field, below in zip(body, body[1:], strict=False)
        if isinstance(field, ast.AnnAssign)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
    }
    for field in fields(kind):
        assert field.name in sentences, f"{field.name} has no sentence"
        assert sentences[field.name].endswith("."), field.name
        assert len(sentences[field.name].split()) > 1, field.name

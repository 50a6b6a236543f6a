"""Configurations: frozen, checked with helpful messages, and unchanged by a JSON round trip."""

from __future__ import annotations

import ast
import inspect
import json
from dataclasses import FrozenInstanceError, fields

import pytest

from transformer.config import ModelConfig, RunConfig, TrainConfig
from transformer.errors import InputError

CHANGED = RunConfig(
    model=ModelConfig(
        topology="decoder-only",
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
        causal_mask=False,
        padding_mask=False,
        mask_fill="-1e9",
        initialisation="xavier",
        embedding_std=None,
    ),
    train=TrainConfig(
        task="en-it",
        min_letters=2,
        max_letters=7,
        shift=25,
        patterns=("negation", "to be"),
        adjectives=0,
        pairs="0a1b2c",
        examples=300,
        tokenizer="file",
        tokenizer_file="3d4e5f",
        vocabulary=500,
        min_frequency=2,
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
        cuda_graphs=True,
        precision="bfloat16",
        label_smoothing=0.1,
        evaluate_every=6,
        goal=0.75,
        decoding="beam",
        beam_width=16,
        length_penalty=0.0,
        tensorboard=True,
    ),
    recipe="of my own",
    published=True,
    seed=9,
    device="cpu",
    threads=2,
)


def test_the_limits_of_a_range_are_accepted_and_none_where_it_is_allowed():
    ModelConfig(n_encoder_layers=12, n_decoder_layers=1, n_heads=64, d_model=1024, dropout=0.9, norm_eps=0.1)
    TrainConfig(max_letters=40, min_letters=40, shift=25, adjectives=0, goal=1.0, length_penalty=2)
    TrainConfig(vocabulary=None, clip=None, goal=None, examples=None)
    RunConfig(seed=2**32 - 1, threads=None)


@pytest.mark.parametrize(
    ("name", "allowed"),
    [("n_heads", "1 to 64"), ("vocabulary", "10 to 50,000"), ("dropout", "0 to 0.9"), ("device", "auto, ")],
)
def test_the_limits_of_a_setting_are_found_by_its_name(name, allowed):
    assert str(RunConfig.limit_of(name)).startswith(allowed)


@pytest.mark.parametrize("kind", [ModelConfig, TrainConfig, RunConfig])
def test_a_configuration_cannot_be_changed(kind):
    made = kind()
    for field in fields(kind):
        with pytest.raises(FrozenInstanceError):
            setattr(made, field.name, getattr(made, field.name))


def test_a_configuration_survives_a_json_round_trip():
    assert set(RunConfig().differences(CHANGED)) == (
        {field.name for kind in (ModelConfig, TrainConfig, RunConfig) for field in fields(kind)}
        - {"model", "train"}
    ), "a new field needs another value in CHANGED"
    for config in (RunConfig(), CHANGED, RunConfig(model=ModelConfig(causal_mask=True))):
        assert RunConfig.from_json(config.to_json()) == config
        assert hash(RunConfig.from_json(config.to_json())) == hash(config)


def test_json_contains_its_format_and_missing_settings_keep_their_defaults():
    written = json.loads(RunConfig().to_json())
    assert (written["format"], written["model"]["causal_mask"]) == (1, None)
    assert RunConfig.from_json('{"model": {"d_model": 48}}') == RunConfig(model=ModelConfig(d_model=48))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"model": {"d_modle": 48}}', "ModelConfig has no setting 'd_modle'; did you mean 'd_model'?"),
        ('{"train": {"zzz": 1}}', "TrainConfig has no setting 'zzz'; it has adam_eps, adjectives, batch"),
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


def test_settings_in_any_part_of_a_configuration_are_changed_by_name():
    changed = RunConfig().with_changes(d_model=64, steps=7, seed=3)
    assert (changed.model.d_model, changed.train.steps, changed.seed) == (64, 7, 3)
    assert RunConfig().differences(changed) == {"d_model": (32, 64), "steps": (300, 7), "seed": (0, 3)}
    assert RunConfig().differences(RunConfig()) == {}


@pytest.mark.parametrize(
    ("topology", "kinds", "causal", "layers"),
    [
        ("encoder-decoder", ("cross", "encoder", "decoder"), True, {"cross": 3, "encoder": 2, "decoder": 3}),
        ("encoder-only", ("encoder",), False, {"encoder": 2}),
        ("decoder-only", ("sequence",), True, {"sequence": 3}),
    ],
)
def test_a_topology_determines_kinds_of_attention_their_layers_and_the_masks(topology, kinds, causal, layers):
    def made(**settings):
        return ModelConfig(topology=topology, n_encoder_layers=2, n_decoder_layers=3, **settings)

    assert made(d_model=60, n_heads=5).d_head == 12
    assert made().kinds == kinds
    assert {kind: made().n_layers(kind) for kind in kinds} == layers
    assert made().masks == {"causal": causal, "padding": True}
    assert made(causal_mask=True).masks == {"causal": True, "padding": True}
    assert made(causal_mask=False, padding_mask=False).masks == {"causal": False, "padding": False}


def test_one_stack_accepts_one_table_with_different_vocabulary_sizes():
    for topology in ("encoder-only", "decoder-only"):
        ModelConfig(topology=topology, embedding_tables="one", src_vocab_size=7, tgt_vocab_size=8)


@pytest.mark.parametrize(
    ("examples", "batch_size", "steps", "steps_per_epoch", "epochs"),
    [
        (None, 64, 300, None, None),
        (100, 8, 39, 13, 3.0),
        (8, 8, 3, 1, 3.0),
        (5, 64, 7, 1, 7.0),
        (9, 8, 1, 2, 0.5),
    ],
)
def test_the_number_of_epochs_follows_from_examples_batch_size_and_steps(
    examples, batch_size, steps, steps_per_epoch, epochs
):
    train = TrainConfig(examples=examples, batch_size=batch_size, steps=steps)
    assert (train.steps_per_epoch, train.epochs) == (steps_per_epoch, epochs)


@pytest.mark.parametrize("kind", [ModelConfig, TrainConfig, RunConfig])
def test_every_field_is_documented_by_a_sentence(kind):
    body = ast.parse(inspect.getsource(kind)).body[0].body
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

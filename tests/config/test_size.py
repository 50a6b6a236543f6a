"""Parameter counts, checked against built models; memory for training; and the message of a refusal."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from transformer.config import ModelConfig, RunConfig
from transformer.config.recipes import DECODER_ONLY, ENCODER_ONLY, RECIPES
from transformer.config.size import check_memory, parameter_count, training_bytes
from transformer.errors import InputError
from transformer.model.transformer import Transformer
from transformer.tasks import resolved, task_of
from transformer.training.state import TrainState

TOPOLOGIES = ["encoder-decoder", "encoder-only", "decoder-only"]
BASE = ModelConfig(
    src_vocab_size=13,
    tgt_vocab_size=17,
    max_len=11,
    n_encoder_layers=1,
    n_decoder_layers=3,
    n_heads=2,
    d_model=6,
    d_ff=10,
)
FLAGS = list(product([True, False], [True, False], [True, False], ["layer", "scalar"]))


def built(model):
    return sum(parameter.numel() for parameter in Transformer(model).parameters())


@pytest.mark.parametrize(("qkv_bias", "output_bias", "final_norm", "norm"), FLAGS)
@pytest.mark.parametrize("positions", ["sinusoid", "learned", "none"])
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_the_parameter_count_equals_that_of_the_built_model(
    topology, positions, qkv_bias, output_bias, final_norm, norm
):
    model = replace(
        BASE,
        topology=topology,
        positions=positions,
        qkv_bias=qkv_bias,
        output_bias=output_bias,
        final_norm=final_norm,
        norm=norm,
    )
    assert parameter_count(model) == built(model)
    one_table = replace(model, tgt_vocab_size=13, embedding_tables="one", padding_row=True)
    assert parameter_count(one_table) == built(one_table)


@pytest.mark.parametrize(
    "config",
    [ENCODER_ONLY, DECODER_ONLY, *(recipe.small for recipe in RECIPES.values())],
    ids=lambda c: c.recipe,
)
def test_the_parameter_count_of_a_recipe_equals_that_of_its_run(config):
    state = TrainState.begin(config)
    assert parameter_count(state.config.model) == state.n_parameters


def test_training_needs_over_four_times_the_weights_and_more_for_larger_batches_words_and_models():
    config = RunConfig()
    needed = training_bytes(config)
    assert needed > 4 * 4 * parameter_count(config.model)
    for larger in (
        {"batch_size": 65},
        {"max_letters": 13},
        {"n_encoder_layers": 3},
        {"n_decoder_layers": 3},
        {"n_heads": 8},
        {"d_model": 36},
        {"d_ff": 129},
    ):
        assert training_bytes(config.with_changes(**larger)) > needed, larger


@pytest.mark.parametrize("topology", ["encoder-decoder", "decoder-only"])
def test_for_a_task_without_letters_memory_depends_on_its_sequence_lengths(topology):
    own = RunConfig().with_changes(topology=topology)
    dates, french = (resolved(own.with_changes(task=task)) for task in ("dates", "en-fr"))
    assert training_bytes(dates) == training_bytes(dates.with_changes(max_letters=40))
    of_a_batch = [training_bytes(c) - training_bytes(c.with_changes(batch_size=32)) for c in (dates, french)]
    letters = resolved(own.with_changes(max_letters=task_of(dates).longest))
    of_letters = training_bytes(letters) - training_bytes(letters.with_changes(batch_size=32))
    assert of_a_batch[0] > of_a_batch[1] > 0, "dates are spelled, sentences made of words"
    assert 0.5 * of_letters < of_a_batch[0] < 1.1 * of_letters


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_training_memory_grows_linearly_with_the_batch_size(topology):
    needed = [
        training_bytes(RunConfig().with_changes(topology=topology, batch_size=size)) for size in (1, 2, 3)
    ]
    assert needed[2] - needed[1] == needed[1] - needed[0] > 0


def test_training_beyond_the_free_memory_is_refused_with_both_sizes_and_advice():
    config = RunConfig(model=RECIPES["torres"].model)
    needed = training_bytes(config)
    with pytest.raises(InputError) as refused:
        check_memory(config, 500_000_000)
    assert str(refused.value) == (
        f"This model has 75,169,791 parameters and needs about {needed / 1e9:.1f} GB to train; 0.5 GB of "
        "memory are free. Choose a smaller width, fewer layers or a smaller batch."
    )
    assert refused.value.field == "d_model"
    with pytest.raises(InputError):
        check_memory(config, needed - 1)
    check_memory(config, needed)

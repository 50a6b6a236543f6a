"""Each recipe has the architecture and the training that were published.

The references are PyTorch's own layers where these have the architecture; for the others, arithmetic
written from the published description, head by head.
"""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import islice

import pytest
import torch

from tests.model.articles import LENGTHS_SRC, LENGTHS_TGT, REFERENCES, D, H
from transformer.config import ModelConfig, TrainConfig
from transformer.config.recipes import DECODER_ONLY, ENCODER_ONLY, RECIPES, with_topology
from transformer.config.size import parameter_count
from transformer.model.stack_layers import LayerKVCache
from transformer.model.transformer import Transformer
from transformer.training.loop import train
from transformer.training.state import TrainState

SIZES = {
    "src_vocab_size": 13,
    "tgt_vocab_size": 17,
    "max_len": 11,
    "n_encoder_layers": 2,
    "n_decoder_layers": 3,
    "n_heads": H,
    "d_model": D,
    "d_ff": 10,
}


def shrunk(name, **settings):
    """Return a recipe's architecture with small, distinct sizes; a shared table needs equal vocabularies."""
    if (RECIPES[name].model.topology, RECIPES[name].model.embedding_tables) == ("encoder-decoder", "one"):
        settings = {"tgt_vocab_size": 13, **settings}
    return replace(RECIPES[name].model, **{**SIZES, **settings})


@pytest.mark.parametrize(
    ("name", "topology"), [*((name, None) for name in REFERENCES), ("bloem", "decoder-only")]
)
def test_the_forward_pass_equals_the_reference(name, topology, sentences, fill):
    """Compare the outputs at [PAD] positions too: they are meaningless, but well defined."""
    config = shrunk(name)
    if topology is not None:
        config = replace(config, topology=topology, causal_mask=None)
    model = fill(Transformer(config)).eval()
    src, tgt = sentences(LENGTHS_SRC, 13, seed=1), sentences(LENGTHS_TGT, 13, seed=2)
    result = model(src, tgt)
    expected = REFERENCES[name](model, src, tgt)
    assert result.shape == (3, 5 if config.topology == "encoder-only" else 7, config.tgt_vocab_size)
    assert result.std() > 0.5
    torch.testing.assert_close(result, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["etienne", "torres"])
def test_a_source_of_padding_alone_is_attended_to_according_to_its_mask_fill(name, sentences, fill):
    """With -inf the article's model returns NaN, ours attends to nothing; with -1e9 both attend evenly."""
    model = fill(Transformer(shrunk(name))).eval()
    src, tgt = sentences([5, 0, 4], 13, seed=1), sentences(LENGTHS_TGT, 13, seed=2)
    torch.testing.assert_close(model(src, tgt), REFERENCES[name](model, src, tgt), atol=1e-5, rtol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize(
    ("name", "positions"),
    [
        ("default", "learned"),
        ("default", "none"),
        *((name, "sinusoid") for name in ("default", "etienne", "lin", "torres")),
    ],
)
def test_writing_token_by_token_equals_a_pass_over_the_whole_target(name, positions, sentences, fill):
    model = fill(Transformer(shrunk(name, positions=positions))).eval()
    src, tgt = sentences(LENGTHS_SRC, 13, seed=1), sentences([7, 7, 7], 13, seed=2)
    tgt[0, 3] = tgt[2, 5] = 0  # an untrained model may write [PAD]; no row attends to it
    assert model.supports_kv_cache
    memory, kept = model.encode(src), [LayerKVCache() for _ in model.decoder]
    steps = [model.decode(memory, src, tgt[:, : t + 1], cache=kept)[:, -1] for t in range(7)]
    torch.testing.assert_close(torch.stack(steps, dim=1), model(src, tgt), atol=1e-5, rtol=1e-5)


def test_every_recipe_has_a_reference():
    assert list(RECIPES) == list(REFERENCES)


def test_the_padding_row_stays_zero_while_the_other_rows_are_trained(tiny):
    """The masks are off: under a padding mask, no gradient would reach the row of [PAD] anyway."""
    config = tiny(**vars(shrunk("etienne", padding_mask=False, causal_mask=False)), weight_decay=0.1)
    state = TrainState.begin(config)
    table = state.model.tgt_embedding.weight
    before = table.detach().clone()
    assert torch.equal(before[0], torch.zeros(D))
    assert (state.model.src_embedding.weight[0] != 0).all()  # the [PAD] row of the encoder is an ordinary row
    list(islice(train(state), 5))
    assert torch.equal(table[0], torch.zeros(D))
    assert (table[1:] != before[1:]).any(dim=1).sum() > 20


def test_recipes_of_articles_that_give_no_training_have_the_training_of_the_app():
    own = {name for name, recipe in RECIPES.items() if replace(recipe.train, goal=None) == TrainConfig()}
    assert own == {"default", "sengupta", "lin"}


# Sizes and training in the articles, and what the small runs take from them.


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("etienne", {"learning_rate": 1e-3, "betas": (0.9, 0.98), "adam_eps": 1e-9, "batch_size": 256}),
        ("bloem", {"learning_rate": 1e-4, "warmup_steps": 10_000}),
        ("torres", {"learning_rate": 1e-4, "adam_eps": 1e-9, "batch_size": 8, "label_smoothing": 0.1}),
    ],
)
def test_the_published_training_is_that_of_the_article(name, expected):
    training = RECIPES[name].published.train
    assert {field: getattr(training, field) for field in expected} == expected
    assert (training.optimizer, training.schedule, training.clip) == ("adam", "constant", None)


def test_etienne_trains_three_epochs_of_50_000_strings_of_10_to_19_letters():
    training = RECIPES["etienne"].train
    assert (training.min_letters, training.max_letters, training.examples) == (10, 19, 50_000)
    assert training.steps == 588
    assert training.epochs == 3


def test_at_paper_size_the_models_have_the_published_number_of_parameters():
    etienne_s = RECIPES["etienne"].model
    assert parameter_count(etienne_s) == 313_216
    assert sum(p.numel() for p in Transformer(etienne_s).parameters()) == 313_216
    assert round(parameter_count(RECIPES["torres"].model) / 1e6, 2) == 75.17


@pytest.mark.parametrize("name", list(RECIPES))
def test_the_small_run_has_the_recipe_s_architecture_at_other_sizes(name):
    recipe = RECIPES[name]
    changed = {
        field.name
        for field in fields(ModelConfig)
        if getattr(recipe.small.model, field.name) != getattr(recipe.model, field.name)
    }
    assert changed <= set(SIZES)
    assert recipe.small.model.d_ff // recipe.small.model.d_model == recipe.model.d_ff // recipe.model.d_model
    assert recipe.small.recipe == recipe.published.recipe == recipe.name == name
    training = recipe.small.train
    assert (training.optimizer, training.schedule, training.clip) == ("adamw", "linear", 1.0)
    assert (training.max_letters, training.goal) == (12, 0.99)


def test_changing_the_topology_sets_the_causal_mask_that_it_needs():
    for recipe in RECIPES.values():
        for topology, causal in (("encoder-only", False), ("decoder-only", True), ("encoder-decoder", True)):
            config = with_topology(recipe.small, topology)
            assert config.model.topology == topology
            assert config.model.masks["causal"] == causal
    open_model = RECIPES["default"].small.with_changes(causal_mask=False)
    assert with_topology(open_model, "encoder-decoder") is open_model


@pytest.mark.parametrize(
    ("preset", "name", "topology"),
    [(ENCODER_ONLY, "Encoder only", "encoder-only"), (DECODER_ONLY, "Decoder only", "decoder-only")],
)
def test_presets_of_one_stack_have_the_default_architecture(preset, name, topology):
    assert preset.recipe == name
    assert preset.model.topology == topology
    own = RECIPES["default"].small.model
    changed = {f.name for f in fields(ModelConfig) if getattr(preset.model, f.name) != getattr(own, f.name)}
    assert changed <= {"topology", "n_encoder_layers", "n_decoder_layers"}

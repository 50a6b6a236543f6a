"""Recipes and topologies on the Watch page: chosen, sized, counted, refused, shared, and trained."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import psutil
import pytest

from pages.settings.beginnings import base_of, values_of
from pages.settings.presets import look_for
from transformer.config import KINDS_OF, RunConfig
from transformer.config.recipes import DECODER_ONLY, ENCODER_ONLY, RECIPES

OWN = {"encoder-only": ENCODER_ONLY, "decoder-only": DECODER_ONLY}


@pytest.mark.parametrize("name", ["etienne", "torres"])
def test_choosing_a_recipe_fills_in_its_sizes_and_builds_its_architecture(visit, name):
    recipe = RECIPES[name]
    visitor = visit().set("recipe", name)
    assert {key: visitor.value(key) for key in values_of(recipe.small)} == values_of(recipe.small)
    assert visitor.run.config == recipe.small
    assert visitor.says(recipe.source)
    visitor.wait_until(lambda: visitor.run.view.frame is not None)
    assert recipe.look_for.partition(". ")[0] in visitor.headline
    # With other sizes, the rest of the architecture is still that of the recipe.
    visitor.fill({"width": 16, "heads": 2})
    model = visitor.run.config.model
    assert (model.d_model, model.n_heads, model.d_ff) == (
        16,
        2,
        16 * recipe.model.d_ff // recipe.model.d_model,
    )
    kept = ("qkv_bias", "norm_placement", "norm", "positions", "mask_fill", "activation", "score_scale")
    for setting in kept:
        assert getattr(model, setting) == getattr(recipe.model, setting)


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("published", [False, True])
def test_every_recipe_starts_with_all_of_its_settings(name, published):
    config = RECIPES[name].published if published and name != "default" else RECIPES[name].small
    assert base_of(config) == config


@pytest.mark.parametrize("topology", ["encoder-only", "decoder-only"])
def test_choosing_a_topology_shows_its_one_kind_of_attention(visit, topology):
    visitor = visit().set("topology", topology)
    visitor.wait_until(lambda: visitor.run.view.frame is not None)
    assert visitor.run.config == OWN[topology]
    assert look_for(OWN[topology]) in visitor.headline
    assert (visitor.player["first"]["kind"],) == KINDS_OF[topology]
    absent = {"encoder-only": "layers_decoder", "decoder-only": "layers_encoder"}[topology]
    assert visitor.at.number_input(key=absent).disabled


@pytest.mark.parametrize(
    ("topology", "columns"),
    [
        ("encoder-only", ["[SOS]", *"cat", "[EOS]"]),
        ("decoder-only", ["[SOS]", *"cat", "[SEP]", *"tac"]),
    ],
)
def test_a_run_of_one_stack_trains_and_each_row_over_its_own_tokens_sums_to_one(visit, topology, columns):
    visitor = visit(topology=topology).press("run_start").until("finished")
    shown = visitor.go("ask").set("explore_text", "cat").drawn("explore_map_figure")
    assert shown.step == 3
    assert shown.columns == columns
    weights = shown.arrays["0.z"]
    np.testing.assert_allclose(np.nansum(weights, axis=1), 1.0, atol=1e-3)
    future = ~np.tri(len(columns), dtype=bool) & (topology == "decoder-only")
    np.testing.assert_array_equal(np.isnan(weights), future)
    writing = {"encoder-only": range(1, 5), "decoder-only": range(4, 8)}[topology]
    rows = shown.layout["yaxis"]["ticktext"]
    assert [i for i, row in enumerate(rows) if "→" in row] == list(writing)


def test_the_parameters_of_a_large_model_are_counted_but_it_is_not_built_before_start(visit):
    visitor = visit({}).set("recipe", "lin")
    draft = visitor.run
    visitor.set("as_published", True)
    assert visitor.value("width") == 512
    assert visitor.value("layers_decoder") == 6
    (size,) = [text for text in visitor.texts if "parameters, about" in text]
    count = r"44,169,246 parameters, about \S+ [MG]B to train; built when you press Start\."
    assert re.fullmatch(count, size)
    assert visitor.run is draft
    assert visitor.enabled("run_start")
    assert not visitor.enabled("run_step")  # it would be a step of the small model on the screen
    visitor.set("as_published", False)
    assert visitor.value("width") == RECIPES["lin"].small.model.d_model


def test_the_published_size_comes_with_the_published_training(visit):
    visitor = visit({}).set("recipe", "etienne").set("as_published", True)
    config, published = visitor.run.config, RECIPES["etienne"].published
    # Every published goal is a choice of the list, so the whole training can be compared.
    assert config.model == published.model.__class__(
        **{**published.model.to_dict(), "dropout_on": published.model.dropout_on, "src_vocab_size": 128}
    )
    assert config.train == published.train
    assert visitor.says("3 epochs of 50,000 words")


def test_a_model_that_does_not_fit_the_memory_is_refused_before_it_is_built(visit, monkeypatch):
    visitor = visit({}).set("recipe", "torres")
    free = psutil.virtual_memory()._replace(available=400_000_000)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free)
    visitor.set("as_published", True)
    (message,) = visitor.errors
    assert "and needs about" in message
    assert "0.4 GB of memory are free" in message
    assert "Choose a smaller width" in message
    assert not visitor.enabled("run_start")
    visitor.set("as_published", False)
    assert visitor.errors == []


@pytest.mark.parametrize(
    "chosen",
    [
        {"recipe": "torres", "width": 16},
        {"recipe": "sengupta", "topology": "decoder-only"},
        {"preset": "No causal mask", "steps": 40},
        {"recipe": "bloem", "width": 128},  # the paper's width, but not its training
        {"recipe": "etienne", "as_published": True, "width": 64},
        {"task": "caesar", "shift": 7, "letters": 5},
    ],
    ids=str,
)
def test_a_shared_link_of_the_settings_gives_the_same_model(visit, chosen):
    visitor = visit({})
    for key, value in chosen.items():
        visitor.set(key, value)
    link = next(block.value for block in visitor.at.code)
    again = visit(dict(parse_qsl(urlsplit(link).query)))
    assert again.run.config == visitor.run.config
    assert again.value("as_published") is chosen.get("as_published", False)


def test_a_run_recorded_with_a_removed_recipe_says_nothing_of_what_to_look_for():
    assert look_for(replace(RunConfig(), recipe="removed")) == ""

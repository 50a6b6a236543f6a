"""The Transformer: its maximum length and initial weights; test_recipes.py compares it with PyTorch's."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from transformer.model.transformer import Transformer


def test_more_tokens_than_positions_are_refused(model, tiny_model):
    assert tiny_model.max_len == 11
    with pytest.raises(ValueError, match=r"^12 tokens do not fit max_len=11\.$"):
        model(torch.ones(3, 12, dtype=torch.long), torch.ones(3, 7, dtype=torch.long))


def test_building_draws_from_the_given_generator_alone(tiny_model):
    torch.manual_seed(11)
    before = torch.get_rng_state()
    first = Transformer(tiny_model, torch.Generator().manual_seed(4)).state_dict()
    torch.manual_seed(12)
    again = Transformer(tiny_model, torch.Generator().manual_seed(4)).state_dict()
    other = Transformer(tiny_model, torch.Generator().manual_seed(5)).state_dict()
    torch.manual_seed(11)
    assert torch.equal(torch.get_rng_state(), before)
    for name, weight in first.items():
        assert torch.equal(weight, again[name]), name
        assert torch.equal(weight, other[name]) == ("norm" in name), name


@pytest.mark.parametrize(
    ("initialisation", "deviation", "bias"),
    [
        ("normal", lambda n_in, n_out: 0.01, 0.0),
        ("xavier", lambda n_in, n_out: math.sqrt(2 / (n_in + n_out)), 0.0),
        ("pytorch", lambda n_in, n_out: 1 / math.sqrt(3 * n_in), 1.0),
    ],
)
def test_initial_weights_have_the_standard_deviation_of_the_rule(tiny_model, initialisation, deviation, bias):
    config = replace(tiny_model, d_model=48, d_ff=80, initialisation=initialisation, embedding_std=0.3)
    model = Transformer(config)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            expected = deviation(module.in_features, module.out_features)
            assert module.weight.std().item() == pytest.approx(expected, rel=0.12)
            assert abs(module.weight.mean().item()) < 0.2 * expected
            assert module.bias.abs().max().item() <= bias / math.sqrt(module.in_features)
            assert (module.bias != 0).any() == bool(bias)
        elif isinstance(module, nn.LayerNorm):
            assert torch.equal(module.weight, torch.ones(48))
            assert torch.equal(module.bias, torch.zeros(48))
    for table in (model.src_embedding, model.tgt_embedding):
        assert table.weight.std().item() == pytest.approx(0.3, rel=0.12)

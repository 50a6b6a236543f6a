"""The whole Transformer: properties, and its first weights; test_recipes.py holds it against PyTorch's."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from transformer.model.transformer import Transformer

LENGTHS_SRC, LENGTHS_TGT = [6, 3, 5], [4, 7, 2]  # B = 3, S = 6, T = 7


@pytest.fixture
def src(sentences, tiny_model):
    return sentences(LENGTHS_SRC, tiny_model.src_vocab_size, seed=1)


@pytest.fixture
def tgt(sentences, tiny_model):
    return sentences(LENGTHS_TGT, tiny_model.tgt_vocab_size, seed=2)


def test_no_position_reads_ahead(model, src, tgt):
    before = model(src, tgt)
    for t in range(1, tgt.size(1)):
        changed = tgt.clone()
        changed[:, t:] = changed[:, t:] % (model.config.tgt_vocab_size - 1) + 1
        after = model(src, changed)
        assert torch.equal(after[:, :t], before[:, :t])
        assert (after[:, t] != before[:, t]).any(dim=-1).all()


def test_padding_changes_nothing_that_is_real(model, src, tgt):
    padded = model(nn.functional.pad(src, (0, 3)), nn.functional.pad(tgt, (0, 2)))
    for b, (n_src, n_tgt) in enumerate(zip(LENGTHS_SRC, LENGTHS_TGT, strict=True)):
        alone = model(src[b : b + 1, :n_src], tgt[b : b + 1, :n_tgt])[0]
        torch.testing.assert_close(padded[b, :n_tgt], alone, atol=1e-5, rtol=1e-5)


def test_more_tokens_than_positions_are_refused(model, tiny_model, src, tgt):
    assert tiny_model.max_len == 11
    with pytest.raises(ValueError, match=r"^12 tokens do not fit max_len=11\.$"):
        model(nn.functional.pad(src, (0, 6)), tgt)


def test_the_parameters_are_those_of_the_paper(tiny_model):
    D, F, S, T = 12, 10, 13, 17
    attention, feed_forward, norm = 4 * (D * D + D), 2 * D * F + F + D, 2 * D
    encoder = 1 * (attention + feed_forward + 2 * norm) + norm
    decoder = 2 * (2 * attention + feed_forward + 3 * norm) + norm
    by_hand = S * D + T * D + encoder + decoder + D * T + T
    assert sum(p.numel() for p in Transformer(tiny_model).parameters()) == by_hand


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
def test_first_weights_have_the_deviation_of_their_rule(tiny_model, initialisation, deviation, bias):
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

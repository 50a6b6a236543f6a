"""Parts of a layer, compared with values by hand; test_recipes.py compares whole layers with PyTorch's."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from transformer.model.layers import Dropout, FeedForward, Residual, ScalarNorm, sinusoid

B, S = 3, 5


@pytest.fixture
def width(tiny_model):
    return tiny_model.d_model


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_the_scalar_norm_equals_a_computation_by_hand():
    norm = ScalarNorm(0.5)
    with torch.no_grad():
        norm.weight.fill_(3.0)
        norm.bias.fill_(10.0)
    # Mean 3, differences -2, 0, 2: unbiased variance 8 / 2, standard deviation 2, with eps 2.5.
    expected = torch.tensor([[10.0 - 3 * 2 / 2.5, 10.0, 10.0 + 3 * 2 / 2.5]])
    torch.testing.assert_close(norm(torch.tensor([[1.0, 3.0, 5.0]])), expected)


@pytest.mark.parametrize(
    ("activation", "function"),
    [
        ("relu", torch.relu),
        ("leaky_relu", lambda x: torch.where(x > 0, x, 0.01 * x)),
        ("gelu", lambda x: x * 0.5 * (1 + torch.erf(x / 2**0.5))),
    ],
)
def test_the_feed_forward_part_equals_a_computation_by_hand(tiny_model, fill, width, activation, function):
    part = fill(FeedForward(replace(tiny_model, activation=activation)))
    x = random(B, S, width)
    hidden = function(x @ part.widen.weight.T + part.widen.bias)
    expected = hidden @ part.narrow.weight.T + part.narrow.bias
    torch.testing.assert_close(part(x), expected, atol=1e-5, rtol=0)


def test_dropout_zeroes_its_share_keeps_the_mean_and_uses_its_own_generator(tiny_model):
    dropout = Dropout(replace(tiny_model, dropout=0.25, dropout_on=("embedding",)), "embedding")
    dropout.generator = torch.Generator().manual_seed(5)
    torch.manual_seed(0)
    before = torch.get_rng_state()
    out = dropout(torch.full((200, 150), 3.0))
    assert torch.equal(torch.get_rng_state(), before)
    assert set(out.unique().tolist()) == {0.0, 4.0}
    assert (out == 0).float().mean() == pytest.approx(0.25, abs=0.01)
    assert out.mean() == pytest.approx(3.0, abs=0.05)
    dropout.generator.manual_seed(5)
    assert torch.equal(dropout(torch.full((200, 150), 3.0)), out)


def test_the_norm_of_a_branch_is_applied_before_its_dropout(tiny_model):
    """As in the article: the norm covers the whole branch, and then dropout zeroes some of its numbers."""
    config = replace(tiny_model, norm_placement="branch", dropout=0.5, dropout_on=("residual",))
    residual = Residual(config)
    residual.dropout.generator = torch.Generator().manual_seed(3)
    x, inside = torch.randn(3, 5, tiny_model.d_model), torch.randn(3, 5, tiny_model.d_model)
    added = residual(x, lambda _: inside) - x
    kept = added != 0
    assert 0.3 < kept.float().mean() < 0.7
    torch.testing.assert_close(added[kept], 2 * residual.norm(inside)[kept])


def test_dropout_is_inactive_in_eval_mode_and_at_places_that_are_not_configured(tiny_model):
    config = replace(tiny_model, dropout=0.5, dropout_on=("embedding",))
    x = random(B, S)
    assert torch.equal(Dropout(config, "embedding").eval()(x), x)
    assert torch.equal(Dropout(config, "residual").train()(x), x)


@pytest.mark.parametrize("width", [8, 7])
def test_each_sinusoid_equals_the_formula_of_the_paper(width):
    table = sinusoid(23, width)
    assert table.shape == (23, width)
    assert table.dtype == torch.float32
    for position in range(23):
        for feature in range(width):
            angle = position / 10_000 ** ((feature - feature % 2) / width)
            expected = math.cos(angle) if feature % 2 else math.sin(angle)
            assert table[position, feature].item() == pytest.approx(expected, abs=1e-6)

"""The chapter on positions: the table, how alike its rows are, and how far training has moved them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.anatomy.conftest import sinusoid
from tests.anatomy.formulas import assert_holds
from transformer.anatomy.panels import Focus
from transformer.anatomy.positions import position_table, positions


@pytest.mark.parametrize("width", [32, 7])
def test_the_position_table_is_the_models(width, made, near):
    heads = 4 if width == 32 else 1
    config, snapshot = made("default", d_model=width, n_heads=heads)
    near(position_table(config, snapshot.weights), sinusoid(config.model.max_len, width))
    learned, snapshot = made("bloem")
    found = position_table(learned, snapshot.weights)
    assert np.array_equal(found, snapshot.weights["learned_positions.weight"])


@pytest.mark.parametrize("name", ["default", "bloem"])
def test_likeness_is_the_dot_product_of_two_positions(name, made, near):
    config, snapshot = made(name)
    table = position_table(config, snapshot.weights)
    _, likeness = positions(config, snapshot.weights, Focus(3, 5, 4))
    near(likeness.panels[0].values, np.einsum("pf,qf->pq", table, table))
    assert likeness.cell.result == pytest.approx(float((table[3] * table[5]).sum()), rel=1e-5)
    left, right, product = (panel.values[0] for panel in likeness.cell.sources)
    assert product.sum() == pytest.approx((left * right).sum(), rel=1e-5)
    assert assert_holds(likeness.cell.numbers) == 1


def test_a_sinusoid_is_written_with_its_position_and_its_pair_of_features(made):
    config, snapshot = made("default")
    cell = positions(config, snapshot.weights, Focus(3, 0, 5))[0].cell
    assert cell.numbers.startswith(r"p_{4,6} = \cos\frac{3}{10000^{4/32}} = \cos(0.9487) \approx 0.583")
    assert cell.result == pytest.approx(math.cos(3 / 10_000 ** (4 / 32)), abs=1e-6)


def test_learned_positions_have_moved_by_the_length_of_the_difference(made):
    config, snapshot = made("bloem", d_model=32)
    now = position_table(config, snapshot.weights)
    first, middle = now.copy(), now.copy()
    first[2] -= 3.0  # of 32 features
    middle[2] += 1.0
    moved = positions(config, snapshot.weights, Focus(2), tables={50: middle, 0: first})[-1]
    assert moved.key == "moved"
    assert moved.panels[0].columns == ("0", "50", "now")
    expected = np.zeros((len(now), 3))
    expected[2] = 0, 4 * math.sqrt(32), 3 * math.sqrt(32)
    np.testing.assert_allclose(moved.panels[0].values, expected, atol=1e-5)
    assert moved.cell.result == pytest.approx(3 * math.sqrt(32), rel=1e-6)
    assert math.sqrt(moved.cell.sources[2].values.sum()) == pytest.approx(moved.cell.result, rel=1e-6)
    assert assert_holds(moved.cell.numbers) == 2


def test_without_positions_there_is_one_stage_that_says_so(made):
    config, snapshot = made("no positions")
    (stage,) = positions(config, snapshot.weights, Focus(99, 99, 99))
    assert position_table(config, snapshot.weights) is None
    assert "adds no position vectors" in stage.sentence
    assert not stage.panels[0].values.any()

"""Sinusoidal positions, against numbers computed by hand."""

from __future__ import annotations

import math

import pytest
import torch

from transformer.model.positions import sinusoid


@pytest.mark.parametrize("width", [8, 7])
def test_each_number_is_the_papers_formula(width):
    table = sinusoid(23, width)
    assert table.shape == (23, width)
    assert table.dtype == torch.float32
    for position in range(23):
        for feature in range(width):
            angle = position / 10_000 ** ((feature - feature % 2) / width)
            expected = math.cos(angle) if feature % 2 else math.sin(angle)
            assert table[position, feature].item() == pytest.approx(expected, abs=1e-6)


def test_a_few_numbers_of_a_table_of_width_four():
    expected = [
        [0.0, 1.0, 0.0, 1.0],
        [0.84147098, 0.54030231, 0.00999983, 0.99995000],  # sin 1, cos 1, sin 0.01, cos 0.01
        [0.90929743, -0.41614684, 0.01999867, 0.99980001],  # sin 2, cos 2, sin 0.02, cos 0.02
    ]
    torch.testing.assert_close(sinusoid(3, 4), torch.tensor(expected), atol=1e-7, rtol=0)


def test_the_same_distance_is_the_same_turn_wherever_it_begins():
    """Two positions k apart have the same inner product: what lets a head look k places back."""
    table = sinusoid(40, 16)
    for distance in (1, 5):
        products = (table[:-distance] * table[distance:]).sum(-1)
        torch.testing.assert_close(products, products[:1].expand_as(products), atol=1e-4, rtol=0)
    nearness = (table[:1] * table).sum(-1)
    assert nearness.argmax() == 0

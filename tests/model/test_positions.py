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

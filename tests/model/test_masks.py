"""Masks: True where a row may look."""

from __future__ import annotations

import pytest
import torch

from transformer.model.masks import causal_mask, padding_mask


@pytest.mark.parametrize("length", [1, 2, 7])
def test_a_row_may_look_at_itself_and_before_and_never_ahead(length):
    mask = causal_mask(length)
    assert mask.dtype == torch.bool
    assert mask.tolist() == [[column <= row for column in range(length)] for row in range(length)]


def test_padding_is_hidden_from_every_row_and_nothing_else_is():
    tokens = torch.tensor([[1, 7, 2, 9], [1, 2, 9, 9], [9, 1, 9, 2]])
    mask = padding_mask(tokens, 9)
    assert mask.shape == (3, 1, 1, 4)
    expected = [[True, True, True, False], [True, True, False, False], [False, True, False, True]]
    assert mask[:, 0, 0].tolist() == expected

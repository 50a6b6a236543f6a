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


def test_both_together_keep_each_sentence_to_its_own_past():
    both = causal_mask(3) & padding_mask(torch.tensor([[4, 5, 0], [4, 0, 0]]), 0)
    assert both.shape == (2, 1, 3, 3)
    assert both[0, 0].int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 0]]
    assert both[1, 0].int().tolist() == [[1, 0, 0], [1, 0, 0], [1, 0, 0]]

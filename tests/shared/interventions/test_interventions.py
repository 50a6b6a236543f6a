"""Interventions as plain values, in words, and as open cells."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from tests.shared.interventions.conftest import CROSS, MANY, SRC, TGT
from transformer.shared.interventions import NO_INTERVENTIONS, Block, Interventions, blocked_cells, open_cells


def cells(word):
    """Parse booleans (H, Q, K) from text: rows of 0 and 1, with an empty line between heads."""
    return [[[c == "1" for c in row] for row in head.split()] for head in word.split("\n\n")]


def test_interventions_are_written_as_plain_values():
    written = {
        "ablated": [["decoder.0.cross", 2], ["encoder.0", 0]],
        "blocked": [
            {"site": "encoder.0", "head": 1, "row": 2, "column": 3, "token": None},
            {"site": "decoder.0.cross", "head": None, "row": None, "column": None, "token": "[EOS]"},
            {"site": "encoder.0", "head": None, "row": 0, "column": None, "token": "o"},
        ],
        "masks": {"causal": False, "padding": True},
    }
    assert MANY.to_dict() == written
    assert NO_INTERVENTIONS.to_dict() == {"ablated": [], "blocked": [], "masks": {}}


def test_a_mask_is_stored_only_if_it_differs_from_the_configured_one_and_nothing_else_changes():
    configured = {"causal": True, "padding": True}
    off = MANY.with_mask("causal", False, configured)
    assert off == replace(MANY, masks=(("causal", False),))
    both = off.with_mask("padding", False, configured)
    assert dict(both.masks) == {"causal": False, "padding": False}
    assert both.with_mask("causal", True, configured).masks == (("padding", False),)
    assert NO_INTERVENTIONS.with_mask("causal", False, {"causal": False, "padding": True}) == NO_INTERVENTIONS


def test_a_union_has_each_intervention_once_and_the_mask_states_of_its_right_operand():
    other = Interventions(
        ablated=(("encoder.0", 0), ("encoder.0", 1)),
        blocked=(MANY.blocked[1],),
        masks=(("causal", True),),
    )
    both = MANY | other
    assert both.ablated == (("decoder.0.cross", 2), ("encoder.0", 0), ("encoder.0", 1))
    assert both.blocked == MANY.blocked
    assert dict(both.masks) == {"causal": True, "padding": True}
    assert MANY | NO_INTERVENTIONS == NO_INTERVENTIONS | MANY == MANY


def test_only_empty_interventions_are_false_and_all_are_immutable():
    assert not NO_INTERVENTIONS
    assert not Interventions()
    assert Interventions(ablated=(("encoder.0", 0),))
    assert Interventions(blocked=(Block(site="encoder.0"),))
    assert Interventions(masks=(("causal", False),))
    with pytest.raises(FrozenInstanceError):
        MANY.ablated = ()


def test_each_site_has_its_own_interventions():
    assert MANY.heads_off_at("encoder.0") == (0,)
    assert MANY.heads_off_at("decoder.0.cross") == (2,)
    assert MANY.heads_off_at("decoder.0.self") == ()
    assert MANY.blocks_at("encoder.0") == (MANY.blocked[0], MANY.blocked[2])
    assert MANY.blocks_at("decoder.0.self") == ()


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"site": CROSS, "row": 1, "column": 2}, "row 2, column 3 in cross-attention layer 1"),
        ({"site": "decoder.1.self", "token": "[SOS]"}, "“[SOS]” in decoder layer 2"),
        ({"site": "encoder.2", "head": 0, "column": 0}, "column 1 in encoder layer 3, head 1"),
        ({"site": "encoder.0"}, "everything in encoder layer 1"),
    ],
)
def test_a_block_is_described_in_words_with_numbers_from_1(block, text):
    assert Interventions(blocked=(Block(**block),)).text() == f"blocked {text}"


def test_all_interventions_are_described_in_one_line():
    assert MANY.text() == (
        "switched off cross-attention layer 1, head 3, encoder layer 1, head 1; "
        "blocked row 3, column 4 in encoder layer 1, head 2; "
        "blocked “[EOS]” in cross-attention layer 1; blocked row 1, “o” in encoder layer 1; "
        "causal mask off; padding mask on"
    )
    assert NO_INTERVENTIONS.text() == "no interventions"


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ((), (("causal", False),), "causal mask switched off"),
        ((("causal", False),), (), "causal mask switched on"),
        ((("causal", True),), (), "causal mask switched off"),  # an encoder alone has no causal mask
        ((), (("padding", False), ("causal", False)), "causal mask switched off; padding mask switched off"),
        ((("padding", False),), (("causal", False),), "causal mask switched off; padding mask switched on"),
        ((("causal", False),), (("causal", False),), "causal mask off"),
    ],
)
def test_a_change_of_masks_is_described_as_switching_them_on_or_off(before, after, text):
    assert Interventions(masks=after).change_text(Interventions(masks=before)) == text


def test_a_change_of_more_than_masks_is_described_by_all_interventions_now_in_effect():
    taken = Interventions(ablated=(("encoder.0", 0),), masks=(("causal", False),))
    assert taken.change_text(NO_INTERVENTIONS) == "switched off encoder layer 1, head 1; causal mask off"
    assert taken.change_text(replace(taken, ablated=())) == taken.text()
    assert NO_INTERVENTIONS.change_text(taken) == "no interventions"


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"row": 1, "column": 2}, "11111\n11011\n11111\n\n11111\n11011\n11111"),
        ({"head": 1, "column": 0}, "11111\n11111\n11111\n\n01111\n01111\n01111"),
        ({"token": "n"}, "10110\n10110\n10110\n\n10110\n10110\n10110"),
        ({"head": 0, "row": 2, "token": "o"}, "11111\n11111\n11001\n\n11111\n11111\n11111"),
        ({"column": 4, "token": "n"}, "11110\n11110\n11110\n\n11110\n11110\n11110"),
        ({"column": 3, "token": "n"}, "11111\n11111\n11111\n\n11111\n11111\n11111"),
        ({"row": 7}, "11111\n11111\n11111\n\n11111\n11111\n11111"),
        ({"token": "z"}, "11111\n11111\n11111\n\n11111\n11111\n11111"),
        ({"head": 0}, "00000\n00000\n00000\n\n11111\n11111\n11111"),
        ({}, "00000\n00000\n00000\n\n00000\n00000\n00000"),
    ],
    ids=str,
)
def test_a_block_closes_its_cells_and_no_others(block, expected):
    """There are three rows, five columns and two heads."""
    found = open_cells((Block(site="s", **block),), TGT[:3], TGT, causal=False, n_heads=2)
    assert found.tolist() == cells(expected)


def test_several_blocks_add_up_and_later_columns_stay_closed():
    blocks = Block(site="s", head=0, token="o"), Block(site="s", row=3, column=1)
    found = open_cells(blocks, TGT, TGT, causal=True, n_heads=2)
    expected = "10000\n11000\n11000\n10000\n11001\n\n10000\n11000\n11100\n10110\n11111"
    assert found.tolist() == cells(expected)


def test_without_blocks_the_open_cells_are_those_of_the_mask():
    assert open_cells((), SRC, SRC, causal=False, n_heads=2).tolist() == [[[True] * 6] * 6] * 2
    causal = open_cells((), TGT, TGT, causal=True, n_heads=3)
    assert causal.tolist() == [[[j <= i for j in range(5)] for i in range(5)]] * 3


def test_padding_is_closed_with_the_padding_mask_and_open_without_it():
    keys = (*TGT[:3], "[PAD]", "[PAD]")
    hidden = open_cells((), TGT[:2], keys, causal=False, n_heads=2)
    assert hidden.tolist() == [[[True] * 3 + [False] * 2] * 2] * 2
    seen = open_cells((), keys, keys, causal=True, n_heads=2, padding=False)
    assert seen.tolist() == 2 * cells("10000\n11000\n11100\n11110\n11111")
    taken = open_cells(
        (Block(site="s", token="[PAD]", head=1),), keys[:1], keys, causal=False, n_heads=2, padding=False
    )
    assert taken.tolist() == cells("11111\n\n11100")


def test_blocks_apply_to_the_ids_of_a_whole_batch_as_well():
    keys = np.array([[5, 6, 6, 5], [6, 7, 5, 0]])[:, None, None, :]  # (B, 1, 1, K)
    places = np.arange(3)[:, None, None], np.arange(2)[:, None], np.arange(4)
    blocks = [Block(site="s", head=2, token="n"), Block(site="s", row=1, column=0)]
    found = np.broadcast_to(blocked_cells(blocks, *places, keys, {"n": 5}.get), (2, 3, 2, 4))
    for b, h, q, k in np.ndindex(found.shape):
        by_hand = (h == 2 and [[5, 6, 6, 5], [6, 7, 5, 0]][b][k] == 5) or (q == 1 and k == 0)
        assert found[b, h, q, k] == by_hand

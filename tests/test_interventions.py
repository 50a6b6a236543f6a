"""What may be taken away from a model: as values, in words, and refused where it would leave nothing."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace
from types import SimpleNamespace

import numpy as np
import pytest

from transformer.errors import InputError
from transformer.interventions import (
    NOTHING,
    Block,
    Interventions,
    check_interventions,
    forbidden,
    open_cells,
)

AXES = {
    "encoder.0": SimpleNamespace(query="src", key="src", causal=False),
    "decoder.0.self": SimpleNamespace(query="tgt", key="tgt", causal=True),
    "decoder.0.cross": SimpleNamespace(query="tgt", key="src", causal=False),
}
SRC, TGT = ("[SOS]", *"noon", "[EOS]"), ("[SOS]", *"noon")  # 6 and 5 tokens, two letters twice
MANY = Interventions(
    ablated=(("decoder.0.cross", 2), ("encoder.0", 0)),
    blocked=(
        Block(site="encoder.0", head=1, row=2, column=3),
        Block(site="decoder.0.cross", token="[EOS]"),
        Block(site="encoder.0", token="o", row=0),
    ),
)


def refusal(interventions, src=SRC, tgt=TGT, n_heads=3):
    with pytest.raises(InputError) as refused:
        check_interventions(interventions, AXES, n_heads, src, tgt)
    return refused.value


def cells(word):
    """(H, Q, K) from one text: rows of 0 and 1, heads apart by an empty line."""
    return [[[c == "1" for c in row] for row in head.split()] for head in word.split("\n\n")]


@pytest.mark.parametrize("interventions", [NOTHING, MANY, replace(MANY, blocked=())], ids=str)
def test_they_come_back_from_json_as_they_were(interventions):
    again = Interventions.from_dict(json.loads(json.dumps(interventions.to_dict())))
    assert again == interventions
    assert hash(again) == hash(interventions)


def test_they_are_written_as_plain_values():
    assert MANY.to_dict() == {
        "ablated": [["decoder.0.cross", 2], ["encoder.0", 0]],
        "blocked": [
            {"site": "encoder.0", "head": 1, "row": 2, "column": 3, "token": None},
            {"site": "decoder.0.cross", "head": None, "row": None, "column": None, "token": "[EOS]"},
            {"site": "encoder.0", "head": None, "row": 0, "column": None, "token": "o"},
        ],
    }


def test_only_nothing_is_false_and_none_can_be_changed():
    assert not NOTHING
    assert not Interventions()
    assert Interventions(ablated=(("encoder.0", 0),))
    assert Interventions(blocked=(Block(site="encoder.0"),))
    with pytest.raises(FrozenInstanceError):
        MANY.ablated = ()


def test_each_site_has_its_own():
    assert MANY.heads_off_at("encoder.0") == (0,)
    assert MANY.heads_off_at("decoder.0.cross") == (2,)
    assert MANY.heads_off_at("decoder.0.self") == ()
    assert MANY.blocks_at("encoder.0") == (MANY.blocked[0], MANY.blocked[2])
    assert MANY.blocks_at("decoder.0.self") == ()


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (
            Block(site="decoder.0.cross", head=3, row=1, column=2),
            "row 2, column 3 in decoder layer 1 (cross), head 4",
        ),
        (Block(site="decoder.1.self", token="[SOS]"), "“[SOS]” in decoder layer 2 (self)"),
        (Block(site="encoder.2", head=0, column=0), "column 1 in encoder layer 3, head 1"),
        (Block(site="encoder.0"), "everything in encoder layer 1"),
    ],
)
def test_a_block_is_told_in_words_counted_from_1(block, text):
    assert block.text() == text
    assert Interventions(blocked=(block,)).text() == f"blocked {text}"


def test_all_that_is_taken_away_is_told_in_one_line():
    assert MANY.text() == (
        "ablated decoder layer 1 (cross), head 3, encoder layer 1, head 1; "
        "blocked row 3, column 4 in encoder layer 1, head 2; "
        "blocked “[EOS]” in decoder layer 1 (cross); blocked row 1, “o” in encoder layer 1"
    )
    assert NOTHING.text() == "all given back"


def test_two_different_heads_are_never_told_in_the_same_words():
    heads = [(site, head) for site in AXES for head in range(3)]
    assert len({Interventions(ablated=(head,)).text() for head in heads}) == len(heads)
    assert len({Block(site=site, head=head).text() for site, head in heads}) == len(heads)


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
def test_a_block_closes_these_cells_and_no_others(block, expected):
    """Three rows look at five columns, with two heads."""
    found = open_cells([Block(site="s", **block)], TGT[:3], TGT, causal=False, n_heads=2)
    assert found.tolist() == cells(expected)


def test_several_blocks_add_up_and_the_future_stays_closed():
    blocks = [Block(site="s", head=0, token="o"), Block(site="s", row=3, column=1)]
    found = open_cells(blocks, TGT, TGT, causal=True, n_heads=2)
    expected = "10000\n11000\n11000\n10000\n11001\n\n10000\n11000\n11100\n10110\n11111"
    assert found.tolist() == cells(expected)


def test_without_blocks_a_row_may_look_at_what_its_mask_allows():
    assert open_cells([], SRC, SRC, causal=False, n_heads=2).tolist() == [[[True] * 6] * 6] * 2
    causal = open_cells([], TGT, TGT, causal=True, n_heads=3)
    assert causal.tolist() == [[[j <= i for j in range(5)] for i in range(5)]] * 3


def test_the_same_comparisons_hold_for_ids_of_a_whole_batch():
    keys = np.array([[5, 6, 6, 5], [6, 7, 5, 0]])[:, None, None, :]  # (B, 1, 1, K)
    places = np.arange(3)[:, None, None], np.arange(2)[:, None], np.arange(4)
    blocks = [Block(site="s", head=2, token="n"), Block(site="s", row=1, column=0)]
    found = np.broadcast_to(forbidden(blocks, *places, keys, {"n": 5}.get), (2, 3, 2, 4))
    for b, h, q, k in np.ndindex(found.shape):
        by_hand = (h == 2 and [[5, 6, 6, 5], [6, 7, 5, 0]][b][k] == 5) or (q == 1 and k == 0)
        assert found[b, h, q, k] == by_hand


def test_what_leaves_every_row_something_is_accepted():
    check_interventions(NOTHING, AXES, 3, SRC, TGT)
    check_interventions(MANY, AXES, 3, SRC, TGT)
    every_head = tuple((site, head) for site in AXES for head in range(3))
    check_interventions(Interventions(ablated=every_head), AXES, 3, SRC, TGT)
    all_but_eos = tuple(Block(site="decoder.0.cross", token=t) for t in ("[SOS]", "n", "o"))
    check_interventions(Interventions(blocked=all_but_eos), AXES, 3, SRC, TGT)


@pytest.mark.parametrize(
    ("interventions", "message"),
    [
        (
            Interventions(ablated=(("decoder.1.cross", 0),)),
            "There is no attention 'decoder.1.cross'; choose one of encoder.0, decoder.0.self, "
            "decoder.0.cross.",
        ),
        (
            Interventions(blocked=(Block(site="encoder"),)),
            "There is no attention 'encoder'; choose one of encoder.0, decoder.0.self, decoder.0.cross.",
        ),
        (
            Interventions(ablated=(("encoder.0", 0), ("encoder.0", 3))),
            "encoder.0 has heads 1 to 3, not 4; choose one of them.",
        ),
        (
            Interventions(ablated=(("encoder.0", -1),)),
            "encoder.0 has heads 1 to 3, not 0; choose one of them.",
        ),
        (
            Interventions(blocked=(Block(site="decoder.0.self", head=5, row=0),)),
            "decoder.0.self has heads 1 to 3, not 6; choose one of them.",
        ),
    ],
)
def test_what_is_not_in_the_model_is_refused_with_what_is(interventions, message):
    error = refusal(interventions)
    assert str(error) == message
    assert error.field == "ablate_heads"


@pytest.mark.parametrize(
    ("blocks", "where", "counts"),
    [
        (
            [Block(site="decoder.0.self", token="[SOS]")],
            "decoder layer 1 (self), head 1, row 1 (“[SOS]”)",
            "1 of 5",
        ),
        (
            [Block(site="decoder.0.self", head=2, row=0, column=0)],
            "decoder layer 1 (self), head 3, row 1 (“[SOS]”)",
            "1 of 5",
        ),
        (
            [Block(site="decoder.0.self", head=1, row=3, token=t) for t in ("[SOS]", "n", "o")],
            "decoder layer 1 (self), head 2, row 4 (“o”)",
            "4 of 5",
        ),
        (
            [Block(site="decoder.0.cross", head=1, row=4, column=c) for c in range(6)],
            "decoder layer 1 (cross), head 2, row 5 (“n”)",
            "6 of 6",
        ),
        ([Block(site="encoder.0", row=5)], "encoder layer 1, head 1, row 6 (“[EOS]”)", "6 of 6"),
    ],
)
def test_what_would_leave_a_row_nothing_is_refused_with_the_row_and_the_next_step(blocks, where, counts):
    error = refusal(Interventions(blocked=tuple(blocks)))
    assert str(error) == (
        f"In {where} may look at {counts} columns, and this would block the last of them. "
        "Leave it at least one."
    )
    assert error.field == "block_cell"
    one_less = Interventions(blocked=tuple(blocks[1:]))
    check_interventions(one_less, AXES, 3, SRC, TGT)


def test_whether_a_row_keeps_something_depends_on_the_word():
    blocks = tuple(Block(site="encoder.0", head=0, token=t) for t in ("[SOS]", "[EOS]", "n"))
    check_interventions(Interventions(blocked=blocks), AXES, 3, SRC, TGT)
    assert "row 1 (“[SOS]”)" in str(
        refusal(Interventions(blocked=blocks), ("[SOS]", "n", "n", "[EOS]"), ("[SOS]", "n", "n"))
    )

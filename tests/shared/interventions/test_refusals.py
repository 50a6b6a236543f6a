"""Interventions that do not fit the model or would close a whole row are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.shared.interventions.conftest import CROSS, MANY, SELF, SRC, TGT
from transformer.errors import InputError
from transformer.shared.attention_info import AttentionInfo
from transformer.shared.interventions import NO_INTERVENTIONS, Block, Interventions, check_interventions

AXES = {
    "encoder.0": AttentionInfo(query="src", key="src", writes=False, causal=False, padding=True),
    "decoder.0.self": AttentionInfo(query="tgt", key="tgt", writes=True, causal=True, padding=True),
    "decoder.0.cross": AttentionInfo(query="tgt", key="src", writes=True, causal=False, padding=True),
}


SEQUENCE = {"decoder.0.self": AttentionInfo(query="seq", key="seq", writes=True, causal=True, padding=True)}
ALONE = {"encoder.0": AttentionInfo(query="src", key="src", writes=True, causal=False, padding=True)}


def refusal(interventions, src=SRC, tgt=TGT, n_heads=3, axes=AXES, **settings):
    with pytest.raises(InputError) as refused:
        check_interventions(interventions, axes, n_heads, src, tgt, **settings)
    return refused.value


def test_interventions_that_leave_every_row_an_open_cell_are_accepted():
    check_interventions(NO_INTERVENTIONS, AXES, 3, SRC, TGT)
    check_interventions(MANY, AXES, 3, SRC, TGT)
    every_head = tuple((site, head) for site in AXES for head in range(3))
    check_interventions(Interventions(ablated=every_head), AXES, 3, SRC, TGT)
    all_but_eos = tuple(Block(site="decoder.0.cross", token=t) for t in ("[SOS]", "n", "o"))
    check_interventions(Interventions(blocked=all_but_eos), AXES, 3, SRC, TGT)


@pytest.mark.parametrize(
    ("taken", "message"),
    [
        (
            {"ablated": (("decoder.1.cross", 0),)},
            "There is no attention 'decoder.1.cross'; choose one of encoder",
        ),
        ({"blocked": (Block(site="encoder"),)}, "There is no attention 'encoder'; choose one of encoder.0, "),
        ({"ablated": (("encoder.0", 0), ("encoder.0", 3))}, "encoder.0 has heads 1 to 3, not 4; "),
        ({"ablated": (("encoder.0", -1),)}, "encoder.0 has heads 1 to 3, not 0; "),
        ({"blocked": (Block(site=SELF, head=5),)}, "decoder.0.self has heads 1 to 3, not 6; "),
    ],
)
def test_unknown_sites_and_heads_are_refused_with_a_list_of_those_that_exist(taken, message):
    error = refusal(Interventions(**taken))
    assert str(error).startswith(message)
    assert error.field == "ablate_heads"


@pytest.mark.parametrize(
    ("site", "blocks", "where"),
    [
        (SELF, [{"token": "[SOS]"}], "head 1, row 1 (“[SOS]”) may look at 1 of 5"),
        (SELF, [{"head": 2, "row": 0, "column": 0}], "head 3, row 1 (“[SOS]”) may look at 1 of 5"),
        (
            SELF,
            [{"head": 1, "row": 3, "token": t} for t in TGT[:3]],
            "head 2, row 4 (“o”) may look at 4 of 5",
        ),
        (CROSS, [{"row": 4, "column": c} for c in range(6)], "head 1, row 5 (“n”) may look at 6 of 6"),
        ("encoder.0", [{"row": 5}], "head 1, row 6 (“[EOS]”) may look at 6 of 6"),
    ],
)
def test_blocks_that_would_close_a_whole_row_are_refused_with_the_row_and_a_remedy(site, blocks, where):
    taken = tuple(Block(site=site, **block) for block in blocks)
    error = refusal(Interventions(blocked=taken))
    assert where in str(error)
    assert str(error).endswith("Leave it at least one.")
    assert error.field == "block_cell"
    check_interventions(Interventions(blocked=taken[1:]), AXES, 3, SRC, TGT)


FIRST = Block(site="decoder.0.self", row=0, column=0)
"""The only cell of its row that the causal mask leaves open."""


@pytest.mark.parametrize("axes", [AXES, SEQUENCE])
def test_without_the_causal_mask_the_first_row_has_more_than_one_open_cell(axes):
    off, on = (Interventions(blocked=(FIRST,), masks=(("causal", state),)) for state in (False, True))
    check_interventions(off, axes, 3, SRC, TGT)
    configured_off = {site: replace(one, causal=False) for site, one in axes.items()}
    check_interventions(Interventions(blocked=(FIRST,)), configured_off, 3, SRC, TGT)
    for error in (refusal(on, axes=axes), refusal(on, axes=configured_off)):
        assert "row 1 (“[SOS]”) may look at 1 of 5 columns" in str(error)


def test_a_mask_that_is_switched_on_again_is_not_treated_as_still_off():
    """The axes are those of a step with the causal mask off; in the requested state it is on again."""
    now = {site: replace(one, causal=False) for site, one in AXES.items()}
    error = refusal(Interventions(blocked=(FIRST,)), axes=now, masks={"causal": True, "padding": True})
    assert "row 1 (“[SOS]”) may look at 1 of 5 columns" in str(error)


def test_a_causal_mask_acts_on_an_encoder_only_where_it_writes():
    first = Block(site="encoder.0", row=0, column=0)
    on = Interventions(blocked=(first,), masks=(("causal", True),))
    check_interventions(on, AXES, 3, SRC, TGT)
    check_interventions(replace(on, masks=()), ALONE, 3, SRC, SRC)
    assert "may look at 1 of 6 columns" in str(refusal(on, axes=ALONE))


def test_unmasked_padding_counts_as_an_open_cell():
    letters = tuple(Block(site="encoder.0", token=t) for t in ("[SOS]", "n", "o", "[EOS]"))
    padded = (*SRC, "[PAD]")
    assert "encoder layer 1" in str(refusal(Interventions(blocked=letters), padded))
    check_interventions(Interventions(blocked=letters, masks=(("padding", False),)), AXES, 3, padded, TGT)


def test_a_mask_that_does_not_exist_is_refused_with_a_list_of_the_masks():
    error = refusal(Interventions(masks=(("cross", False),)))
    assert str(error) == "There is no mask 'cross'; choose causal or padding."
    assert error.field == "masks"


def test_whether_a_row_keeps_an_open_cell_depends_on_the_word():
    blocks = tuple(Block(site="encoder.0", head=0, token=t) for t in ("[SOS]", "[EOS]", "n"))
    check_interventions(Interventions(blocked=blocks), AXES, 3, SRC, TGT)
    assert "row 1 (“[SOS]”)" in str(
        refusal(Interventions(blocked=blocks), ("[SOS]", "n", "n", "[EOS]"), ("[SOS]", "n", "n"))
    )

"""The formula below the picture of the model, for the cell kept by a click or a link."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.pages.visitor import formulas

CELL = {"box": "decoder.0.cross", "head": 1, "row": 2, "column": 4, "table": "weights"}
LINK = "decoder.0.cross~1~2~4~weights"


@pytest.fixture
def inside(revisit):
    """The Look inside page of a finished run of 25 steps."""
    return revisit(steps=25).go("inside")


def keep(visitor, how=None, **cell):
    """Click a cell of the picture."""
    return visitor.send("player", "cell", CELL | cell | {"how": how or {}})


def result(visitor):
    """Return the number at the end of the formula."""
    return float(re.findall(r"-?\d+\.?\d*", formulas(visitor)[1].replace("{,}", ""))[-1])


def test_a_kept_cell_is_explained_with_the_number_of_the_model_and_is_in_the_link(inside):
    assert formulas(inside) == []
    for step in (25, 4):
        keep(inside.go_to_step(step))
        frame = inside.run.view.frame_at(step)
        weight = frame.map(frame.row_of("banana"), "decoder.0.cross")[1][2, 4]
        assert formulas(inside)[1].startswith("w_{3,5} = ")
        assert result(inside) == pytest.approx(weight, abs=2e-3)
        assert inside.says(f"model of step {step}. The softmax makes each row of scores a row of weights")
    assert inside.link["box"] == LINK
    inside.send("player", "cell", {"how": {}})  # release the cell
    assert formulas(inside) == []
    assert "box" not in inside.link


def test_a_link_to_a_cell_opens_it_for_another_visitor_and_it_stays_open_across_pages(inside):
    keep(inside.go_to_step(25))
    guest = inside.__class__(inside.link, {}, "inside")
    assert formulas(guest) == formulas(inside)
    assert guest.player["opened"] == CELL
    guest.go("ask").go("inside")
    assert formulas(guest) == formulas(inside)


def test_another_arrangement_changes_the_formula_and_its_result_until_it_is_undone(inside):
    keep(inside, table="scale", box="encoder.0")
    trained = result(inside)
    keep(inside, {"score_scale": "sqrt_d_model"}, table="scale", box="encoder.0")
    assert "d_{model}" in formulas(inside)[0]
    assert result(inside) == pytest.approx(trained / np.sqrt(2), abs=2e-3)  # 8 features in 2 heads
    keep(inside, table="scale", box="encoder.0")
    assert result(inside) == trained


@pytest.mark.parametrize(
    ("how", "refused"),
    [
        ({"norm_placement": "sideways"}, "norm_placement is 'sideways'; choose one of pre, post, branch."),
        ({"device": "cuda", "d_model": "9", "__class__": "x"}, None),
        ({"score_scale": 7}, None),
    ],
)
def test_an_invalid_arrangement_is_refused_or_ignored(inside, how, refused):
    keep(inside)
    before = formulas(inside)
    keep(inside, how)
    assert inside.errors == ([refused] if refused else [])
    assert formulas(inside) == ([] if refused else before)


@pytest.mark.parametrize(
    "cell",
    [
        {"box": "decoder.7.cross"},
        {"table": "nonsense"},
        {"box": "<b>x</b>" * 9},
        {"box": "encoder.0.feed_forward"},
    ],
)
def test_a_cell_that_this_model_does_not_have_is_refused_with_a_message(inside, cell):
    keep(inside, **cell)
    assert inside.errors == ["This model does not have the chosen cell; choose a cell of its picture."]
    assert formulas(inside) == []


def test_rows_and_heads_beyond_the_last_are_read_as_the_last(inside):
    keep(inside, head=99, row=99_999, column=-3)
    assert formulas(inside)[1].startswith("w_{7,1} = ")  # six letters and [EOS]


@pytest.mark.parametrize(
    "forged",
    [
        "",
        "x",
        "~",
        "decoder.0.cross",
        "decoder.0.cross~-1",
        f"{LINK}~weights",
        "a" * 500,
        "<script>~0",
        "é~0",
    ],
)
def test_a_forged_link_opens_nothing(inside, forged):
    guest = inside.__class__({"run": inside.run.id, "box": forged}, {}, "inside")
    assert guest.errors == []
    assert guest.player["opened"] is None
    assert "box" not in guest.link


def test_a_click_on_a_map_on_watch_opens_its_cell_on_look_inside(inside):
    watch = inside.go("watch")
    at = {"at": {"kind": "cross"}, "head": ["decoder.0.cross", 1], "point": [2, 4]}
    assert formulas(watch.send("player", "cell", at).go("inside"))[1].startswith("w_{3,5} = ")

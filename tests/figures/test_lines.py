"""Attention as lines: a line for every cell, as opaque as its weight, from who looks to what is looked at."""

from __future__ import annotations

import json

import numpy as np
import pytest
from plotly.graph_objects import Figure

from transformer.figures import colors
from transformer.figures.lines import line_view
from transformer.figures.maps import MapAxes

AXES = MapAxes(
    rows=("[SOS] → a", "a → n", "n → a"),
    columns=("[SOS]", "a", "n", "a", "[EOS]"),
    row_title="after reading → writes",
    column_title="letters of the word",
)
WEIGHTS = np.random.default_rng(0).dirichlet(np.ones(5), size=3)


def view(weights=WEIGHTS, axes=AXES, title="a head", step=4, **more):
    return line_view(weights, axes, title=title, step=step, **more)


def drawn(picture):
    """The figure as Plotly understands it, which refuses what does not exist."""
    return Figure(picture.figure())


def test_the_opacity_of_each_line_is_the_weight_of_its_cell():
    shapes = drawn(view()).layout.shapes
    assert len(shapes) == 3 * 5
    found = np.full((3, 5), np.nan)
    for shape in shapes:
        found[int(shape.y0), int(shape.y1)] = shape.opacity
    np.testing.assert_array_equal(found, WEIGHTS)


@pytest.mark.parametrize("lit_row", [None, 1])
def test_the_live_figure_finds_the_line_of_a_cell_by_counting(lit_row):
    layout = drawn(view(lit_row=lit_row)).layout
    assert layout.meta == {"lines": {"rows": 3, "columns": 5}}
    for row in range(3):
        for column in range(5):
            shape = layout.shapes[row * layout.meta["lines"]["columns"] + column]
            assert (shape.type, shape.x0, shape.x1) == ("line", 0, 1)
            assert (shape.y0, shape.y1) == (row, column)


def test_each_line_runs_from_its_row_to_its_column_and_repeated_letters_keep_their_own_place():
    figure = drawn(view())
    rows, columns = figure.data
    assert list(rows.x) == [0, 0, 0]
    assert list(columns.x) == [1] * 5
    assert list(rows.y) == [0, 1, 2]
    assert list(columns.y) == [0, 1, 2, 3, 4]
    assert list(rows.text) == list(AXES.rows)
    assert list(columns.text) == list(AXES.columns)
    assert rows.mode == columns.mode == "markers+text"
    low, high = figure.layout.xaxis.range
    assert low < 0 < 1 < high  # labels stand beside the lines, inside of the picture
    bottom, top = figure.layout.yaxis.range
    assert top < 0 < 4 < bottom  # the first token stands at the top
    assert [(note.text, note.x) for note in figure.layout.annotations] == [
        ("after reading → writes", 0),
        ("letters of the word", 1),
    ]


def test_what_is_blocked_has_no_line_to_see_and_takes_its_place_all_the_same():
    weights = np.where(np.tri(3, 5, dtype=bool), 0.25, np.nan)
    opacities = [shape.opacity for shape in drawn(view(weights)).layout.shapes]
    assert opacities == [0.25, 0, 0, 0, 0, 0.25, 0.25, 0, 0, 0, 0.25, 0.25, 0.25, 0, 0]


def test_half_precision_weights_a_hair_above_one_are_accepted():
    weights = np.full((3, 5), 1.001, dtype=np.float16)
    assert {shape.opacity for shape in drawn(view(weights)).layout.shapes} == {1}
    json.dumps(view(weights).layout)  # what is sent are numbers that JSON knows


def test_the_token_that_matters_now_is_bold_with_wider_lines_of_another_colour():
    figure = drawn(view(lit_row=1))
    assert list(figure.data[0].text) == ["[SOS] → a", "<b>a → n</b>", "n → a"]
    assert list(figure.data[1].text) == list(AXES.columns)
    lit, others, alone = figure.layout.shapes[5:10], figure.layout.shapes[:5], drawn(view()).layout.shapes
    assert {shape.line.color for shape in lit} == {colors.LIT}
    assert {shape.line.color for shape in others + figure.layout.shapes[10:]} == {colors.GHOST}
    assert {shape.line.color for shape in alone} == {colors.LOOKS}
    assert len({colors.LIT, colors.GHOST, colors.LOOKS}) == 3
    assert others[0].line.width < alone[0].line.width == 3 < lit[0].line.width
    opacities = [shape.opacity for shape in figure.layout.shapes]
    assert opacities == WEIGHTS.ravel().tolist()  # the opacity is the weight all the same


def test_tokens_lie_upon_the_lines_and_none_is_drawn_in_full():
    figure = drawn(view())
    assert {shape.layer for shape in figure.layout.shapes} == {"below"}
    for tokens in figure.data:
        assert tokens.marker.size >= 12  # for the pointer
        assert tokens.marker.opacity < 0.5
        assert tokens.textfont.size == 16
        assert tokens.hoverinfo == "none"  # which tells the component of the pointer; "skip" would not


def test_long_labels_have_more_room_and_leave_some_to_the_lines():
    def room(rows):
        axes = MapAxes(rows=rows, columns=AXES.columns, row_title="", column_title="")
        low, high = drawn(view(axes=axes)).layout.xaxis.range
        return -low / (high - low)

    short, usual, endless = room(("a", "b", "c")), room(AXES.rows), room(("a" * 90,) * 3)
    assert 0 < short < usual < endless < 0.5


def test_many_tokens_are_written_smaller():
    axes = MapAxes(rows=("a",), columns=("b",) * 20, row_title="", column_title="")
    assert {tokens.textfont.size for tokens in drawn(view(np.zeros((1, 20)), axes)).data} == {12}


def test_what_stays_is_the_same_text_while_training_moves_the_lines():
    first, later = view(), view(WEIGHTS[::-1], title="later", step=9)
    assert later.spec == first.spec
    assert set(later.layout) == set(first.layout)
    assert (later.step, drawn(later).layout.title.text) == (9, "later")
    assert view(lit_row=0).spec != first.spec
    assert "shapes" not in json.loads(first.spec)["layout"]


@pytest.mark.parametrize("shape", [(5, 3), (3, 4), (15,), (3, 5, 1)])
def test_weights_that_do_not_fit_the_tokens_are_refused(shape):
    with pytest.raises(ValueError, match="^weights has shape .*, but the tokens need \\(3, 5\\)\\.$"):
        view(np.zeros(shape))


def test_a_title_of_two_lines_has_room_above_the_tokens():
    one, two = (drawn(view(title=title)).layout.margin.t for title in ("a head", "a head<br>a word"))
    assert two - one >= 16

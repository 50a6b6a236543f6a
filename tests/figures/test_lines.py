"""Attention as lines: a line for every cell, as opaque as its weight, from query token to key token."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.figures.conftest import drawn
from transformer.figures import colors
from transformer.figures.labels import MapAxes
from transformer.figures.lines import line_view

AXES = MapAxes(
    rows=("[SOS] → a", "a → n", "n → a"),
    columns=("[SOS]", "a", "n", "a", "[EOS]"),
    row_title="reads → should write",
    column_title="letters of the word",
)
WEIGHTS = np.random.default_rng(0).dirichlet(np.ones(5), size=3)


def view(weights=WEIGHTS, axes=AXES, title="a head", step=4, **more):
    return line_view(weights, axes, title=title, step=step, **more)


@pytest.mark.parametrize("lit_row", [None, 1])
def test_each_cell_has_a_line_at_its_index_in_the_live_figure_with_its_weight_as_opacity(lit_row):
    layout = drawn(view(lit_row=lit_row)).layout
    assert layout.meta == {"lines": {"rows": 3, "columns": 5}}
    assert len(layout.shapes) == 3 * 5
    for row, column in np.ndindex(3, 5):
        shape = layout.shapes[row * 5 + column]
        assert (shape.type, shape.x0, shape.x1, shape.y0, shape.y1) == ("line", 0, 1, row, column)
        assert shape.opacity == WEIGHTS[row, column]


def test_tokens_are_at_the_ends_of_their_lines_and_repeated_letters_keep_separate_places():
    figure = drawn(view())
    rows, columns = figure.data
    assert (list(rows.x), list(rows.y), list(rows.text)) == ([0] * 3, [0, 1, 2], list(AXES.rows))
    assert (list(columns.x), list(columns.y)) == ([1] * 5, [0, 1, 2, 3, 4])
    assert list(columns.text) == list(AXES.columns)
    low, high = figure.layout.xaxis.range
    assert low < 0 < 1 < high  # labels are beside the lines, inside the picture
    bottom, top = figure.layout.yaxis.range
    assert top < 0 < 4 < bottom  # the first token is at the top
    headings = [(note.text, note.x) for note in figure.layout.annotations]
    assert headings == [(AXES.row_title, 0), (AXES.column_title, 1)]
    for tokens in figure.data:
        assert tokens.marker.size >= 12  # large enough for the pointer
        assert tokens.hoverinfo == "none"  # unlike "skip", it still reports the pointer to the component


def test_a_blocked_cell_keeps_its_place_with_an_invisible_line():
    weights = np.where(np.tri(3, 5, dtype=bool), 0.25, np.nan)
    opacities = [shape.opacity for shape in drawn(view(weights)).layout.shapes]
    assert opacities == [0.25, 0, 0, 0, 0, 0.25, 0.25, 0, 0, 0, 0.25, 0.25, 0.25, 0, 0]


def test_half_precision_weights_slightly_above_one_are_accepted():
    weights = np.full((3, 5), 1.001, dtype=np.float16)
    assert {shape.opacity for shape in drawn(view(weights)).layout.shapes} == {1}
    json.dumps(view(weights).layout)  # the numbers sent are valid JSON


def test_the_lit_token_is_bold_with_wider_lines_of_another_colour():
    figure = drawn(view(lit_row=1))
    assert list(figure.data[0].text) == ["[SOS] → a", "<b>a → n</b>", "n → a"]
    assert list(figure.data[1].text) == list(AXES.columns)
    looks = [(shape.line.color, shape.line.width) for shape in figure.layout.shapes]
    (lit,), (faint,) = set(looks[5:10]), {*looks[:5], *looks[10:]}
    ((color, width),) = {(shape.line.color, shape.line.width) for shape in drawn(view()).layout.shapes}
    assert (lit[0], faint[0], color) == (colors.HIGHLIGHT, colors.GHOST, colors.ATTENTION_LINE)
    assert faint[1] < width < lit[1]


def test_long_labels_have_more_room_but_leave_some_to_the_lines_and_many_labels_are_smaller():
    def room(rows):
        axes = MapAxes(rows=rows, columns=AXES.columns, row_title="", column_title="")
        low, high = drawn(view(axes=axes)).layout.xaxis.range
        return -low / (high - low)

    short, usual, endless = room(("a", "b", "c")), room(AXES.rows), room(("a" * 90,) * 3)
    assert 0 < short < usual < endless < 0.5
    many = MapAxes(rows=("a",), columns=("b",) * 20, row_title="", column_title="")
    for smaller, usual in zip(drawn(view(np.zeros((1, 20)), many)).data, drawn(view()).data, strict=True):
        assert smaller.textfont.size < usual.textfont.size


def test_the_spec_stays_the_same_while_training_moves_the_lines():
    first, later = view(), view(WEIGHTS[::-1], title="later", step=9)
    assert later.spec == first.spec
    assert set(later.layout) == set(first.layout)
    assert (later.step, drawn(later).layout.title.text) == (9, "later")
    assert view(lit_row=0).spec != first.spec


def test_weights_that_do_not_fit_the_tokens_are_refused():
    with pytest.raises(ValueError, match=r"shape \(5, 3\), but the tokens need \(3, 5\)"):
        view(np.zeros((5, 3)))

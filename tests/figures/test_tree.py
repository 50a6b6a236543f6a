"""The tree of a beam search: a column per step, a row per rank; fates differ by more than colour."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

from tests.figures.conftest import drawn
from transformer.figures import colors
from transformer.figures.tree import LARGEST, ROWS_WITH_SHARES, START, beam_tree


@dataclass
class Grown:
    """Stand-in for a search node, with the attributes that `beam_tree` reads."""

    step: int
    rank: int
    parent: int | None
    fate: str
    ended: bool = False
    log_probability: float = math.log(0.25)
    total: float = math.log(0.0625)
    score: float = -1.5


NODES = [
    Grown(1, 1, None, "pruned", log_probability=math.log(0.6)),
    Grown(1, 2, None, "chosen", log_probability=math.log(0.4)),
    Grown(2, 1, 1, "chosen"),
    Grown(2, 2, 0, "pruned"),
    Grown(2, 3, 1, "kept"),
    Grown(3, 1, 2, "chosen", ended=True),
    Grown(3, 2, 4, "finished", ended=True),
    Grown(3, 3, 4, "kept"),
]
TOKENS = ["a", "b", "c", "d", "<e>", "end", "end", "f"]


def tree(nodes=NODES, tokens=TOKENS, title="a search", step=7):
    return beam_tree(nodes, tokens, title=title, step=step)


def labels(figure):
    """Map (column, row) of each node to its text, colour and hover text."""
    found = {}
    for trace in figure.data:
        if trace.mode == "markers+text":
            for x, y, text, hover in zip(trace.x, trace.y, trace.text, trace.hovertext, strict=True):
                assert (x, y) not in found
                found[x, y] = text, trace.textfont.color, hover
    return found


def edges(figure, color):
    """Return the lines of one colour as ((column, row), (column, row)), and their trace."""
    (trace,) = [trace for trace in figure.data if trace.mode == "lines" and trace.line.color == color]
    points = list(zip(trace.x, trace.y, strict=True))
    assert all(point == (None, None) for point in points[2::3])
    ends = zip(points[::3], points[1::3], strict=True)
    return {((round(x0), y0), (round(x1), y1)) for (x0, y0), (x1, y1) in ends}, trace


def box(figure, column, row):
    (found,) = [
        shape
        for shape in figure.layout.shapes
        if shape.x0 < column < shape.x1 and shape.y0 < row < shape.y1 and shape.type == "rect"
    ]
    return found


def test_each_hypothesis_is_in_the_column_of_its_step_and_the_row_of_its_rank():
    found = labels(drawn(tree()))
    assert {place: text.split("<br>")[0] for place, (text, *_) in found.items()} == {
        (1, 1): "a",
        (1, 2): "<b>b</b>",
        (2, 1): "<b>c</b>",
        (2, 2): "d",
        (2, 3): "&lt;e&gt;",
        (3, 1): "<b>end</b>",
        (3, 2): "end",
        (3, 3): "f",
    }
    layout = drawn(tree()).layout
    bottom, top = layout.yaxis.range
    assert top < 1 < 3 < bottom  # rank 1 is on top
    assert list(layout.xaxis.tickvals) == list(layout.yaxis.tickvals) == [1, 2, 3]
    assert layout.xaxis.range[0] < 0  # the start is at 0
    (start,) = [trace for trace in drawn(tree()).data if START in (trace.text or ())]
    assert (list(start.x), list(start.y)) == ([0], [1])


def test_each_hypothesis_is_joined_to_the_one_that_it_continues():
    figure = drawn(tree())
    answer, bold = edges(figure, colors.HIGHLIGHT)
    assert answer == {((0, 1), (1, 2)), ((1, 2), (2, 1)), ((2, 1), (3, 1))}
    went_on, plain = edges(figure, colors.ATTENTION_LINE)
    assert went_on == {((1, 2), (2, 3)), ((2, 3), (3, 2)), ((2, 3), (3, 3))}
    fell_out, faint = edges(figure, colors.GHOST)
    assert fell_out == {((0, 1), (1, 1)), ((1, 1), (2, 2))}
    assert bold.line.width > plain.line.width > faint.line.width
    assert (bold.line.dash, plain.line.dash, faint.line.dash) == ("solid", "solid", "dot")
    assert [trace.name for trace in (bold, plain, faint)] == ["the answer", "went on", "fell out of the beam"]


def test_lines_run_between_the_boxes_and_not_through_them():
    figure = drawn(tree())
    half = box(figure, 1, 1).x1 - 1
    assert 0.2 < half < 0.5
    for trace in figure.data:
        if trace.mode == "lines":
            xs = [x for x in trace.x if x is not None]
            assert xs[::2] == pytest.approx([round(x) + half for x in xs[::2]])
            assert xs[1::2] == pytest.approx([round(x) - half for x in xs[1::2]])


def test_finished_hypotheses_are_filled_and_pruned_ones_dotted_and_faint():
    figure, found = drawn(tree()), labels(drawn(tree()))
    assert box(figure, 3, 1).fillcolor == box(figure, 3, 1).line.color == colors.HIGHLIGHT
    assert box(figure, 3, 2).fillcolor == box(figure, 3, 2).line.color == colors.ATTENTION_LINE
    assert found[3, 1][1] == found[3, 2][1] == colors.MARK  # dark text on a filled box, in both themes
    for column, row in ((1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 3)):
        assert box(figure, column, row).fillcolor == "rgba(0,0,0,0)"
    assert box(figure, 1, 1).line.dash == box(figure, 2, 2).line.dash == "dot"
    assert found[1, 1][1] == found[2, 2][1] == colors.MARKER
    assert found[1, 2][1] is found[3, 3][1] is None  # the text colour of the theme
    assert len(figure.layout.shapes) == len(NODES) + 1  # plus the box of the start
    (sign,) = [trace for trace in figure.data if trace.mode == "markers"]
    assert (sign.name, sign.marker.color) == ("finished", colors.ATTENTION_LINE)


def test_the_pointer_shows_all_numbers_of_a_hypothesis():
    found = labels(drawn(tree()))
    assert found[1, 1][2] == (
        "<b>a</b><br>60% for a after what stands before it<br>6.25% for all of it, score -1.500"
        "<br>place 1 · fell out of the beam"
    )
    assert found[2, 3][2].startswith("<b>b &lt;e&gt;</b><br>25% for &lt;e&gt; after")
    assert found[3, 2][2].endswith("place 2 · finished")
    tiny = tree([Grown(1, 1, None, "chosen", log_probability=-20.0, total=-20.0)], ["a"])
    assert "2.06e-07% for all of it" in labels(drawn(tiny))[1, 1][2]


def test_probabilities_are_in_the_boxes_as_long_as_there_is_room():
    def rows(n):
        nodes = [Grown(1, 1 + i, None, "kept") for i in range(n)]
        return labels(drawn(tree(nodes, ["a"] * n))).values()

    assert all("25%" in text for text, *_ in rows(ROWS_WITH_SHARES))
    assert not any("25%" in text for text, *_ in rows(ROWS_WITH_SHARES + 1))


def size_of(picture):
    (size,) = {t.textfont.size for t in drawn(picture).data if t.mode == "markers+text"}
    return size


def grown(columns, rows, token="a"):
    nodes = [
        Grown(1 + c, 1 + r, (c - 1) * rows + r if c else None, "kept")
        for c in range(columns)
        for r in range(rows)
    ]
    return tree(nodes, [token] * len(nodes))


def test_text_is_as_large_as_the_boxes_allow():
    assert size_of(grown(4, 2)) == LARGEST
    assert size_of(grown(12, 4)) >= 16  # twelve letters, four beams: readable from the last row of a room
    for columns, rows, token in ((12, 4, "a"), (8, 4, "appartement"), (26, 16, "a"), (10, 3, "thousand")):
        picture = grown(columns, rows, token)
        wide = box(drawn(picture), 1, 1)
        assert wide.x1 - wide.x0 < 1
        pixels = (wide.x1 - wide.x0) * 840 / (columns + 1)
        assert size_of(picture) * 0.62 * len(token) <= pixels + 1 or size_of(picture) == 8
        assert size_of(picture) <= 240 / rows


def test_a_tree_has_its_title_and_step_and_no_changing_arrays():
    picture = tree(title="4 beams<br>of a word", step=12)
    assert drawn(picture).layout.title.text == "4 beams<br>of a word"
    assert (picture.step, picture.arrays) == (12, {})


def test_tokens_that_do_not_fit_the_nodes_are_refused():
    with pytest.raises(ValueError, match=r"^There are 2 tokens, but 8 nodes\.$"):
        tree(tokens=["a", "b"])

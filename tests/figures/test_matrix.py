"""The tables of a stage: every number is in its cell, every blocked cell says why, the focus is framed."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.figures.conftest import drawn, heatmaps
from transformer.figures import colors
from transformer.figures.arranging import HEIGHT, WIDTH, arranged
from transformer.figures.matrix import matrix_picture, panel_of
from transformer.insight.tables import Focus, Panel

ROWS = ("[SOS] → a", "a → a", "a → [EOS]", "[PAD]")
COLUMNS = ("[SOS]", "a", "b", "a", "[PAD]", "[PAD]")
CODES = np.array([[0, 1, 1, 1, 3, 3], [0, 0, 1, 1, 3, 3], [0, 0, 0, 1, 3, 3], [0, 4, 0, 0, 2, 3]])
LOOKS = {  # code to colour and mark
    1: (colors.CAUSAL, "╱"),
    2: (colors.PADDING, "•"),
    3: (colors.PADDING, "╱•"),
    4: (colors.TAKEN, "✕"),
}


def table(values, rows, columns, role="plain", name="numbers", **more):
    titles = {"row_title": "row title", "column_title": "column title"}
    return Panel(name=name, values=values, rows=rows, columns=columns, role=role, **titles, **more)


def numbers(n_rows, n_columns, role="plain", seed=0, **more):
    values = np.random.default_rng(seed).normal(size=(n_rows, n_columns)).astype(np.float32)
    return table(values, tuple(map(str, range(n_rows))), tuple(map(str, range(n_columns))), role, **more)


def weights(**more):
    raw = np.random.default_rng(1).random((4, 6)) * (CODES == 0)
    shares = np.where(CODES == 0, raw / raw.sum(axis=1, keepdims=True), np.nan)
    more = {"codes": CODES, "axes": ("row", "column")} | more
    return table(shares, ROWS, COLUMNS, "weights", "weights", **more)


def mask():
    return table(CODES.astype(np.float32), ROWS, COLUMNS, "mask", "mask")


def picture(*panels, focus=None, sources=(), title=""):
    return matrix_picture(panels, focus=focus or Focus(), title=title, step=7, sources=sources)


def scale_of(figure, trace):
    return figure.layout[trace.coloraxis]


def test_every_number_stands_in_its_cell_to_four_digits_and_a_repeated_letter_keeps_its_own_column():
    made = picture(weights(), title="cross-attention")
    assert not made.arrays  # numbers beyond one would lose digits there
    assert made.step == 7
    assert "NaN" not in made.spec  # which is no JSON
    layout = drawn(made).layout
    np.testing.assert_allclose(np.array(drawn(made).data[0].z, dtype=float), weights().values, rtol=5e-4)
    assert list(layout.xaxis.tickvals) == [0, 1, 2, 3, 4.5]
    assert list(layout.xaxis.range) == [-0.5, 5.5]
    assert list(layout.yaxis.range) == [3.5, -0.5]
    assert layout.title.text == "cross-attention"
    assert layout.margin.t > drawn(picture(weights())).layout.margin.t


@pytest.mark.parametrize("blocked", [weights(), mask()], ids=lambda table: table.name)
def test_each_blocked_cell_is_drawn_once_in_the_colour_and_with_the_mark_of_its_reason(blocked):
    main, *flat = heatmaps(drawn(picture(blocked)))
    found = {}
    for trace in flat:
        (color,) = {color for _, color in trace.colorscale}
        for row, column in np.ndindex(4, 6):
            if trace.z[row][column] is not None:
                assert (row, column) not in found
                found[row, column] = color, trace.text[row][column]
    places = np.argwhere(CODES != 0).tolist()
    assert found == {(row, column): LOOKS[CODES[row, column]] for row, column in places}
    for row, column in np.ndindex(4, 6):
        assert (main.z[row][column] is None) == (CODES[row, column] != 0)


def test_without_codes_a_number_that_is_not_there_was_blocked_by_hand():
    _, blocked = heatmaps(drawn(picture(weights(codes=None))))
    assert blocked.colorscale[0][1] == colors.TAKEN
    assert {(r, c) for r, c in np.ndindex(4, 6) if blocked.z[r][c]} == set(map(tuple, np.argwhere(CODES)))


def test_the_legend_names_the_reasons_that_occur_and_no_others():
    (legend,) = (a for a in drawn(picture(weights())).layout.annotations if "■" in a.text)
    for name in ("causal mask", "padding mask", "causal and padding mask", "blocked by hand"):
        assert name in legend.text
    only_future = picture(weights(codes=np.minimum(CODES, 1)))
    texts = [a.text for a in drawn(only_future).layout.annotations]
    assert any("causal mask" in text for text in texts)
    assert not any("padding" in text or "by hand" in text for text in texts)
    assert not any("■" in a.text for a in drawn(picture(numbers(3, 3))).layout.annotations)


def test_heads_that_are_off_lie_under_stripes_over_their_columns_and_all_rows():
    figure = drawn(picture(numbers(3, 6, off=((0, 2), (4, 6))), weights(), numbers(2, 5)))
    striped = [trace for trace in figure.data if trace.name == "switched off"]
    assert [(min(t.x), max(t.x), min(t.y), max(t.y), t.fillpattern.shape) for t in striped] == [
        (-0.5, 1.5, -0.5, 2.5, "/"),
        (3.5, 5.5, -0.5, 2.5, "/"),
    ]
    assert {trace.xaxis for trace in striped} == {figure.data[0].xaxis}
    assert "switched off" in figure.layout.annotations[0].text


def test_weights_go_from_zero_to_one_in_the_colours_of_all_weights():
    for scale in (1.0, 0.01):
        figure = drawn(picture(replace(weights(), values=weights().values * scale)))
        axis = scale_of(figure, figure.data[0])
        assert (axis.cmin, axis.cmax) == (0, 1)
        assert [list(stop) for stop in axis.colorscale] == colors.WEIGHTS
        assert axis.showscale is False
        assert figure.data[-1].marker.colorbar.title.text.startswith("weight")


def test_other_scales_are_even_about_zero_and_shared_by_tables_of_one_kind():
    small, large = numbers(3, 4, "scores"), numbers(3, 4, "scores", seed=1)
    large.values[1, 2] = -9.0
    figure = drawn(picture(small, large, numbers(3, 4, "query")))
    axes = [scale_of(figure, trace) for trace in figure.data]
    assert axes[0] == axes[1] != axes[2]
    assert (axes[0].cmin, axes[0].cmax) == (-9, 9)
    assert axes[2].cmax == -axes[2].cmin == pytest.approx(np.abs(small.values).max())
    assert list(axes[0].colorbar.ticktext) == ["−9", "0", "9"]


def test_a_few_very_large_numbers_do_not_make_the_others_pale_and_the_legend_says_so():
    panel = numbers(20, 40)
    panel.values[3, 3] = 1000.0
    figure = drawn(picture(panel))
    axis = scale_of(figure, figure.data[0])
    assert axis.cmax < 4
    assert axis.colorbar.ticktext[2].startswith("≥ ")
    assert axis.colorbar.ticktext[0].startswith("≤ −")


def test_nothing_but_zeros_can_be_drawn():
    figure = drawn(picture(replace(numbers(3, 4), values=np.zeros((3, 4)))))
    assert scale_of(figure, figure.data[0]).cmax == 1


@pytest.mark.parametrize(
    ("role", "color"), [("query", colors.QUERY), ("key", colors.KEY), ("value", colors.VALUE)]
)
def test_queries_keys_and_values_have_one_colour_each_and_another_below_zero(role, color):
    beside = drawn(picture(numbers(3, 4, role, name="a table"), numbers(3, 4)))
    strip = drawn(picture(numbers(3, 4), sources=(numbers(1, 4, role, name="a table"),)))
    for figure, place in ((beside, 0), (strip, 1)):
        scale = dict(scale_of(figure, figure.data[place]).colorscale)
        assert scale == {0: colors.NEGATIVE, 0.5: colors.NEUTRAL, 1: color}
        assert color in {shape.line.color for shape in figure.layout.shapes}
        names = [a.text for a in figure.layout.annotations] + list(figure.layout.yaxis2.ticktext or ())
        assert any(color in name and "a table" in name for name in names)


def rectangles(figure, color):
    shapes = [shape for shape in figure.layout.shapes if shape.line.color == color]
    return {(shape.xref, shape.x0, shape.x1, shape.y0, shape.y1) for shape in shapes}


def test_the_focused_row_and_column_are_framed_in_each_table_by_what_its_axes_stand_for():
    vectors = numbers(4, 5, axes=("row", "feature"))
    keys = numbers(6, 5, seed=2, axes=("column", "feature"))
    unmoved = numbers(3, 5, axes=("", ""))
    figure = drawn(picture(weights(), vectors, keys, unmoved, focus=Focus(row=2, column=3, feature=1)))
    assert rectangles(figure, colors.MIRROR) == {
        ("x", -0.5, 5.5, 1.5, 2.5),
        ("x", 2.5, 3.5, -0.5, 3.5),
        ("x2", -0.5, 4.5, 1.5, 2.5),
        ("x2", 0.5, 1.5, -0.5, 3.5),
        ("x3", -0.5, 4.5, 2.5, 3.5),
        ("x3", 0.5, 1.5, -0.5, 5.5),
    }


def test_a_focus_beyond_the_last_cell_frames_the_last():
    figure = drawn(picture(numbers(4, 5, axes=("row", "feature")), focus=Focus(99, 99, 99)))
    assert rectangles(figure, colors.MIRROR) == {("x", -0.5, 4.5, 2.5, 3.5), ("x", 3.5, 4.5, -0.5, 3.5)}


def test_cells_that_stand_out_are_framed_in_the_colour_of_what_is_right():
    figure = drawn(picture(weights(marked=((1, 0), (2, 5)))))
    assert rectangles(figure, colors.RIGHT) == {("x", -0.5, 0.5, 0.5, 1.5), ("x", 4.5, 5.5, 1.5, 2.5)}
    assert any("the right token" in a.text for a in figure.layout.annotations)


def test_numbers_are_written_where_there_is_room_and_left_to_the_pointer_where_not():
    few, many = numbers(8, 12), numbers(8, 128)
    assert drawn(picture(few)).data[0].texttemplate == "%{z:.2f}"
    assert drawn(picture(many)).data[0].texttemplate is None
    for largest, digits in ((9.99, 2), (10.0, 1), (99.9, 1), (-99.99, 0), (3000.0, 0)):
        values = np.where(np.indices((8, 12)).sum(0) == 5, largest, few.values)
        shown = drawn(picture(replace(few, values=values))).data[0].texttemplate
        assert shown == f"%{{z:.{digits}f}}", largest
    ids = replace(numbers(1, 12, "ids"), values=np.arange(12.0)[None])
    assert drawn(picture(ids)).data[0].texttemplate == "%{z:.0f}"
    shown = drawn(picture(many)).data[0].hovertext[3][100]
    assert shown == f"3 · 100<br><b>{many.values[3, 100]:.5g}</b>"


def test_the_pointer_says_the_labels_the_value_the_reason_and_the_rows_sentence():
    figure = drawn(picture(weights(hover_rows=("about [SOS]", "about a", "about b", "about [PAD]"))))
    main, *blocked = heatmaps(figure)
    share = weights().values[1, 1]
    assert main.hovertext[1][1] == f"a → a · a<br><b>{share:.1%}</b><br>about a"
    (by_hand,) = (trace for trace in blocked if trace.z[3][1] is not None)
    assert by_hand.hovertext[3][1] == "[PAD] · a<br><b>blocked by hand</b><br>about [PAD]"
    future = next(trace for trace in blocked if trace.z[0][1] is not None)
    assert "blocked: causal mask" in future.hovertext[0][1]


def test_very_large_tables_are_sent_without_a_text_for_each_cell():
    made = picture(numbers(40, 1024))
    assert drawn(made).data[0].hovertext is None
    assert "%{z}" in drawn(made).data[0].hovertemplate
    assert len(made.spec) < 500_000


def test_a_clicked_trace_leads_to_its_table_and_sources_count_on():
    made = picture(numbers(4, 6), weights(), sources=(numbers(1, 6), numbers(1, 6)))
    traces = made.figure()["data"]
    owners = [panel_of(made, i) for i in range(len(traces))]
    # The weights have four reasons for blocked cells, and their legend belongs to no table.
    assert owners == [0, 1, 1, 1, 1, 1, 2, 3, None]
    assert panel_of(made, len(traces)) is None
    assert panel_of(made, -1) is None


def test_tables_of_one_row_stand_below_each_other_with_their_names():
    q, k = numbers(1, 6, "query", name="query of n"), numbers(1, 6, "key", name="key of a")
    figure = drawn(picture(q, k))
    assert [list(trace.y) for trace in figure.data] == [[0], [1]]
    assert {trace.xaxis for trace in figure.data} == {"x"}
    assert ["query of n" in figure.layout.yaxis.ticktext[0], "key of a" in figure.layout.yaxis.ticktext[1]]
    apart = drawn(picture(q, replace(numbers(1, 4), name="other columns")))
    assert [trace.xaxis for trace in apart.data] == ["x", "x2"]


ARRANGEMENTS = {
    "one": ((weights(),), ()),
    "three": ((numbers(26, 64), numbers(26, 256), numbers(26, 64)), (numbers(1, 257),) * 3),
    "strips": ((numbers(1, 8), numbers(1, 8, "key")), (numbers(1, 33),) * 3),
    "row beside a table": ((numbers(1, 12), numbers(12, 8)), (numbers(1, 8),) * 3),
    "eight heads": ((numbers(4, 32), numbers(4, 32), *[weights()] * 8), (numbers(1, 33),) * 3),
    "sixteen heads": ((numbers(4, 32), numbers(4, 32), *[weights()] * 16), (numbers(1, 33),) * 3),
    "long names": ((numbers(4, 2, name="a long name for so few columns"), numbers(4, 64)), ()),
}


@pytest.mark.parametrize("case", ARRANGEMENTS)
def test_tables_stand_inside_the_picture_and_apart(case):
    panels, sources = ARRANGEMENTS[case]
    boxes = arranged(panels, sources, 16.0)
    assert sorted(i for box in boxes for i in box.tables) == list(range(len(panels) + len(sources)))
    for box in boxes:
        assert 0 <= box.left < box.right <= WIDTH + 1e-6
        assert 0 <= box.top < box.bottom <= HEIGHT
        assert box.bottom - box.top >= 12
    for n, one in enumerate(boxes):
        for other in boxes[n + 1 :]:
            beside = one.right <= other.left or other.right <= one.left
            assert beside or one.bottom <= other.top or other.bottom <= one.top
    layout = drawn(picture(*panels, sources=sources)).layout
    for axis in (layout.xaxis, layout.yaxis):
        assert 0 <= axis.domain[0] < axis.domain[1] <= 1


def test_a_heading_has_room_above_its_table():
    panels, _ = ARRANGEMENTS["long names"]
    first, second = arranged(panels, (), 0.0)
    assert second.left - first.left >= 6 * len(panels[0].name)


def test_no_text_has_a_colour_of_its_own_but_marks_upon_cells_and_names_of_roles():
    figure = picture(weights(), numbers(4, 6, "query"), sources=(numbers(1, 6),)).figure()
    assert "color" not in json.dumps([axis for name, axis in figure["layout"].items() if "axis" in name[:5]])
    assert all("color" not in a["font"] for a in figure["layout"]["annotations"])
    assert "bgcolor" not in json.dumps(figure)

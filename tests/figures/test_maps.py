"""Attention maps: each letter has its own column, each weight a fixed colour, each tile its place."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from plotly.colors import sample_colorscale, unlabel_rgb

from tests.figures.conftest import drawn, heatmaps, softmaxed
from transformer.figures import colors
from transformer.figures.labels import MapAxes
from transformer.figures.maps import large_map, map_strip, tile_at

WORD = "banana"
READ = ("[SOS]", *WORD[::-1])
CROSS = MapAxes(
    rows=tuple(f"{read} → {write}" for read, write in zip(READ, [*WORD[::-1], "[EOS]"], strict=True)),
    columns=("[SOS]", *WORD, "[EOS]"),
    row_title="reads → should write",
    column_title="letters of the word",
)
MARKING = replace(CROSS, marked=True)
CAUSAL = MapAxes(rows=CROSS.rows, columns=READ, row_title="rows", column_title="columns", causal=True)
SHAPE = (7, 8)  # rows and columns of a cross-attention map differ, so that swapped axes are detected


def causal_weights(*shape, seed=0):
    """Return random weights with future cells blocked."""
    return np.where(np.tri(*shape[-2:], dtype=bool), softmaxed(*shape, seed=seed), np.nan)


def large(weights, axes=CROSS, title="a head", step=3, **more):
    return large_map(weights, axes, title=title, step=step, **more)


def strip(n_layers, n_heads, axes=CROSS, weights=None, lit=None, chosen=None, **more):
    if weights is None:
        shape = (n_heads, len(axes.rows), len(axes.columns))
        weights = [softmaxed(*shape, seed=layer) for layer in range(n_layers)]
    lit = lit or [[False] * n_heads] * n_layers
    return map_strip(weights, axes, lit=lit, chosen=chosen, step=5, **more)


def cells(trace):
    """Return the numbers of a trace; NaN where it has none."""
    return np.array([[np.nan if z is None else z for z in row] for row in trace.z], dtype=float)


def outlines(figure, n_layers, n_heads):
    """Return the outline of each (layer, head)."""
    shapes = figure.layout.shapes
    return {
        (layer, head): shapes[head * n_layers + layer] for layer in range(n_layers) for head in range(n_heads)
    }


def test_axes_count_positions_so_that_a_repeated_letter_keeps_its_own_column():
    weights = softmaxed(*SHAPE)
    figure = drawn(large(weights, title="decoder 1 · head 2"))
    np.testing.assert_array_equal(np.array(figure.data[0].z, dtype=float), weights)
    assert figure.data[0].x is figure.data[0].y is None  # rows and columns have indices, not names
    x, y = figure.layout.xaxis, figure.layout.yaxis
    assert list(x.tickvals) == list(range(8))
    assert [re.sub("<[^>]*>|\u2002", "", text) for text in x.ticktext] == list(CROSS.columns)
    assert list(y.tickvals) == list(range(7))
    assert list(y.ticktext) == list(CROSS.rows)
    assert tuple(x.range) == (-0.5, 7.5)
    assert tuple(y.range) == (6.5, -0.5)  # the first row is at the top
    assert (y.title.text, x.title.text) == (CROSS.row_title, f"looks at: {CROSS.column_title}")
    assert figure.layout.title.text == "decoder 1 · head 2"


@pytest.mark.parametrize("weights", [softmaxed(*SHAPE), np.full(SHAPE, 0.125), np.zeros(SHAPE)])
def test_a_weight_has_the_same_colour_in_every_map_and_the_scale_is_shown(weights):
    trace, legend = drawn(large(weights)).data
    tiles = drawn(strip(2, 2)).data[0]
    bar = legend.marker.colorbar
    assert bar.ticktext == ("0", "5", "25", "50", "100%")  # 1% has no room beside 0
    for one in (trace, tiles):
        assert (one.zmin, one.zmax) == (0, 1)
        assert one.showscale is False
        # A weight has the colour that the legend shows for it: Viridis at its square root.
        for tick, percent in zip(bar.tickvals, (0, 5, 25, 50, 100), strict=True):
            assert tick == pytest.approx((percent / 100) ** 0.5)
            colors_there = [
                sample_colorscale([list(stop) for stop in scale], [share])[0]
                for scale, share in ((one.colorscale, percent / 100), (legend.marker.colorscale, tick))
            ]
            expected = unlabel_rgb(sample_colorscale("Viridis", [tick])[0])
            for found in map(unlabel_rgb, colors_there):
                np.testing.assert_allclose(found, expected, atol=2)


def test_future_cells_are_drawn_as_blocked_and_never_as_zero():
    weights = causal_weights(7, 7)
    weights[3, 0] = 0.0  # a weight of zero is not blocked
    allowed, blocked = heatmaps(drawn(large(weights, CAUSAL)))
    for row, column in np.ndindex(7, 7):
        if column > row:
            assert (allowed.z[row][column], blocked.z[row][column]) == (None, 1)
            assert blocked.text[row][column] == "╱"
        else:
            assert (allowed.z[row][column], blocked.z[row][column]) == (weights[row, column], None)
            assert blocked.text[row][column] == ""
    assert {color for _, color in blocked.colorscale} == {colors.CAUSAL}
    assert not blocked.showscale
    assert "causal mask" in blocked.hovertemplate


@pytest.mark.parametrize("axes", [CROSS, CAUSAL])
def test_cells_blocked_by_hand_differ_from_future_cells(axes):
    shape = len(axes.rows), len(axes.columns)
    weights = causal_weights(*shape) if axes.causal else softmaxed(*shape)
    weights[5, 2] = np.nan
    blocked = heatmaps(drawn(large(weights, axes)))[-1]
    assert np.argwhere(~np.isnan(cells(blocked))).tolist() == [[5, 2]]
    assert blocked.text[5][2] == "✕"
    assert "by hand" in blocked.hovertemplate
    assert [color for _, color in blocked.colorscale] == 2 * [colors.BLOCKED_BY_HAND]


def test_only_rows_that_predict_a_wrong_token_have_a_mark():
    figure = drawn(large(softmaxed(*SHAPE), wrong={2: "x", 4: "appartement", 6: "<s>"}))
    marks = {i: mark for i, mark in enumerate(figure.layout.yaxis2.ticktext) if mark}
    assert marks == {2: "<b>✗</b> x", 4: "<b>✗</b> appart…", 6: "<b>✗</b> &lt;s&gt;"}
    assert list(figure.layout.yaxis.ticktext) == list(CROSS.rows)
    assert figure.layout.yaxis2.side == "right"


def test_marks_of_wrong_predictions_do_not_move_a_map():
    """Only the axis of the marks changes, in space reserved for it; labels and margins stay."""
    right, wrong = (large(softmaxed(*SHAPE), MARKING, wrong=some) for some in ({}, {1: "[EOS]"}))
    assert right.spec == wrong.spec
    assert {*right.layout} == {*wrong.layout} == {"title.text", "yaxis2.ticktext"}
    assert drawn(right).layout.margin.r > 40  # space for the marks
    assert not drawn(right).layout.yaxis2.automargin


def test_labels_of_an_axis_are_on_one_line_and_rotated_where_they_are_crowded():
    upright, crowded = ("[SOS]", "a", "b", "[EOS]"), ("[SOS]", "a", "[EOS]", "[PAD]")
    for columns in (upright, crowded, ("[SOS]", "city", "[EOS]")):
        axes = MapAxes(rows=("a",), columns=columns, row_title="rows", column_title="columns")
        axis = drawn(large(np.full((1, len(columns)), 0.1), axes)).layout.xaxis
        assert [re.sub("<[^>]*>|\u2002", "", label) for label in axis.ticktext] == list(columns)
        assert not any("<br>" in label for label in axis.ticktext)
        assert (axis.tickangle == 0) == (columns == upright)
    first, *_, last = drawn(large(np.full((1, 4), 0.1), replace(axes, columns=upright))).layout.xaxis.ticktext
    assert ("[SOS]\u2002" in first, "\u2002[EOS]" in last) == (True, True)  # away from the letters


def test_the_lit_row_has_a_frame():
    (shape,) = drawn(large(softmaxed(*SHAPE), lit_row=2)).layout.shapes
    assert (shape.y0, shape.y1, shape.x0, shape.x1) == (1.5, 2.5, -0.5, 7.5)
    assert shape.line.color == colors.HIGHLIGHT


@pytest.mark.parametrize("shape", [(8, 7), (7, 7), (6, 8), (7, 8, 1), (56,)])
def test_weights_that_do_not_fit_the_tokens_are_refused(shape):
    for draw in (large, lambda weights: strip(1, 1, weights=[weights[None]])):
        with pytest.raises(ValueError, match="^weights has shape .* need \\(7, 8\\)\\.$") as refused:
            draw(np.zeros(shape))
        assert f"shape {shape}" in str(refused.value)


def test_the_spec_stays_the_same_while_training_moves_the_rest():
    first = large(softmaxed(*SHAPE), wrong={1: "x"}, lit_row=0)
    later = large(softmaxed(*SHAPE, seed=1), title="another head", step=9, lit_row=0)
    assert later.spec == first.spec
    assert later.step == 9
    assert large(softmaxed(*SHAPE)).spec != first.spec  # no row is lit
    dark = strip(2, 3)
    bright = strip(2, 3, lit=[[True] * 3] * 2, chosen=(1, 2), weights=[softmaxed(3, *SHAPE, seed=7)] * 2)
    assert bright.spec == dark.spec
    assert strip(3, 2).spec != dark.spec
    assert set(bright.layout) == set(dark.layout)  # also for heads that are no longer lit


def test_a_zoom_is_kept_for_as_long_as_the_tokens_stay_the_same():
    def key(picture):
        return json.loads(picture.spec)["layout"]["uirevision"]

    assert key(large(softmaxed(*SHAPE), lit_row=0)) == key(large(softmaxed(*SHAPE, seed=1)))
    assert key(large(softmaxed(*SHAPE))) != key(large(causal_weights(7, 7), CAUSAL))


@pytest.mark.parametrize(("n_layers", "n_heads"), [(1, 1), (2, 3), (3, 2), (4, 8)])
def test_a_click_on_a_tile_selects_its_head_and_a_click_between_tiles_selects_nothing(n_layers, n_heads):
    weights = [softmaxed(n_heads, *SHAPE, seed=layer) for layer in range(n_layers)]
    shown = cells(drawn(strip(n_layers, n_heads, weights=weights)).data[0])
    found = np.full((n_layers, n_heads, *SHAPE), np.nan)
    seen = np.zeros((n_layers, n_heads), dtype=int)
    for point in np.ndindex(*shown.shape):
        tile = tile_at(point, CROSS)
        assert (tile is None) == np.isnan(shown[point])
        if tile is not None:  # the cells of a tile come row by row
            found[tile].flat[seen[tile]] = shown[point]
            seen[tile] += 1
    np.testing.assert_allclose(found, weights, rtol=1e-6)


def test_layers_are_side_by_side_heads_are_below_each_other_and_both_are_named():
    figure = drawn(strip(3, 2))
    tiles = {}
    for row, column in np.argwhere(~np.isnan(cells(figure.data[0]))):
        tiles.setdefault(tile_at((row, column), CROSS), []).append((row, column))
    layers, heads = figure.layout.annotations[:3], figure.layout.annotations[3:]
    for (layer, head), shape in outlines(figure, 3, 2).items():
        (top, left), (bottom, right) = min(tiles[layer, head]), max(tiles[layer, head])
        assert (shape.y0, shape.y1, shape.x0, shape.x1) == (top - 0.5, bottom + 0.5, left - 0.5, right + 0.5)
        assert (layers[layer].text, layers[layer].x) == (f"layer {layer + 1}", (left + right) / 2)
        assert (heads[head].text, heads[head].y) == (f"head {head + 1}", (top + bottom) / 2)
        assert all(min(tiles[other, head])[1] > right + 1 for other in range(layer + 1, 3))
        assert all(min(tiles[layer, other])[0] > bottom + 1 for other in range(head + 1, 2))
    n_rows, n_columns = cells(figure.data[0]).shape
    assert figure.layout.xaxis.range[0] < -0.5 < n_columns - 0.5 < figure.layout.xaxis.range[1]
    assert figure.layout.yaxis.range[1] < -0.5 < n_rows - 0.5 < figure.layout.yaxis.range[0]  # downwards


def test_the_pointer_shows_tokens_layer_and_head_of_every_cell_of_every_tile():
    layout = drawn(strip(2, 3)).layout
    across = dict(zip(layout.xaxis.tickvals, layout.xaxis.ticktext, strict=True))
    down = dict(zip(layout.yaxis.tickvals, layout.yaxis.ticktext, strict=True))
    for y, x in np.ndindex(3 * 8 - 1, 2 * 9 - 1):
        if (tile := tile_at((y, x), CROSS)) is not None:
            assert across[x] == f"{CROSS.columns[x % 9]} (layer {tile[0] + 1})"
            assert down[y] == f"head {tile[1] + 1}, {CROSS.rows[y % 8]}"


def test_a_lit_head_has_a_frame_and_the_chosen_head_the_thickest():
    figure = drawn(strip(2, 2, lit=[[False, True], [False, False]], chosen=(1, 0)))
    width = {tile: shape.line.width for tile, shape in outlines(figure, 2, 2).items()}
    assert width[0, 0] == width[1, 1] == 0
    assert 0 < width[0, 1] < width[1, 0]


def test_blocked_cells_of_tiles_have_no_weight_and_differ_between_future_and_by_hand():
    weights = [causal_weights(3, 7, 7, seed=layer) for layer in range(2)]
    weights[1][2, 4, 1] = np.nan  # blocked by hand
    figure = drawn(strip(2, 3, CAUSAL, weights=weights))
    shown, blocked = map(cells, figure.data)
    assert [color for _, color in figure.data[1].colorscale] == [colors.CAUSAL, colors.BLOCKED_BY_HAND]
    by_hand = []
    for row, column in np.ndindex(*shown.shape):
        tile = tile_at((row, column), CAUSAL)
        assert np.isnan(shown[row, column]) or np.isnan(blocked[row, column])
        if tile is None or blocked[row, column] == 1:
            by_hand += [] if tile is None else [(tile, row - 2 * 8, column - 1 * 8)]
        else:
            assert np.isnan(blocked[row, column]) == (column % 8 <= row % 8)
    assert by_hand == [((1, 2), 4, 1)]


def test_only_a_head_that_is_off_is_hatched_as_a_whole():
    assert large(softmaxed(*SHAPE)).hatched == ()
    assert large(softmaxed(*SHAPE), off=True).hatched == ((-0.5, 7.5, -0.5, 6.5),)
    tiles = [softmaxed(2, *SHAPE, seed=layer) for layer in range(3)]
    picture = strip(3, 2, weights=tiles, off=[(2, 1)])
    (box,) = picture.hatched
    x0, x1, y0, y1 = (round(edge + 0.5) for edge in box)
    np.testing.assert_allclose(picture.arrays["0.z"][y0:y1, x0:x1], tiles[2][1])

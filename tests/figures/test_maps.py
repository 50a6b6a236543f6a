"""Attention maps: every letter has its own column, every weight its fixed colour, every tile its place."""

from __future__ import annotations

import json

import numpy as np
import pytest
from plotly.graph_objects import Figure

from transformer.figures import colors
from transformer.figures.maps import MapAxes, large_map, map_strip, player_spec, tile_at
from transformer.insight.scores import mirrored_cells

WORD = "banana"
READ = ("[SOS]", *WORD[::-1])
CROSS = MapAxes(
    rows=tuple(f"{read} → {write}" for read, write in zip(READ, [*WORD[::-1], "[EOS]"], strict=True)),
    columns=("[SOS]", *WORD, "[EOS]"),
    row_title="after reading → writes",
    column_title="letters of the word",
)
CAUSAL = MapAxes(rows=CROSS.rows, columns=READ, row_title="rows", column_title="columns", causal=True)
SHAPE = (7, 8)  # rows and columns of a cross-attention map differ, so that swapped axes are seen


def softmaxed(*shape, seed=0):
    """Random rows that add up to 1, as weights do."""
    scores = np.exp(3 * np.random.default_rng(seed).normal(size=shape))
    return scores / scores.sum(axis=-1, keepdims=True)


def causal_weights(*shape, seed=0):
    """Random weights with the future blocked."""
    return np.where(np.tri(*shape[-2:], dtype=bool), softmaxed(*shape, seed=seed), np.nan)


def drawn(picture):
    """The figure as Plotly understands it, which refuses what does not exist."""
    return Figure(picture.figure())


def plain(labels):
    return [label.replace("<br>", "") for label in labels]


def large(weights, axes=CROSS, title="a head", step=3, **more):
    return large_map(weights, axes, title=title, step=step, **more)


def strip(n_layers, n_heads, axes=CROSS, weights=None, lit=None, chosen=None):
    if weights is None:
        shape = (n_heads, len(axes.rows), len(axes.columns))
        weights = [softmaxed(*shape, seed=layer) for layer in range(n_layers)]
    return map_strip(weights, axes, lit=lit or [[False] * n_heads] * n_layers, chosen=chosen, step=5)


def cells(trace):
    """The numbers of a trace; NaN where it has none."""
    return np.array([[np.nan if z is None else z for z in row] for row in trace.z], dtype=float)


def outlines(figure, n_layers, n_heads):
    """The shape of each (layer, head)."""
    shapes = figure.layout.shapes
    return {
        (layer, head): shapes[head * n_layers + layer] for layer in range(n_layers) for head in range(n_heads)
    }


def test_positions_are_the_axis_so_a_repeated_letter_keeps_its_own_column():
    weights = softmaxed(*SHAPE)
    figure = drawn(large(weights))
    np.testing.assert_array_equal(np.array(figure.data[0].z, dtype=float), weights)
    assert figure.data[0].x is figure.data[0].y is None  # rows and columns are counted, not named
    assert list(figure.layout.xaxis.tickvals) == list(range(8))
    assert plain(figure.layout.xaxis.ticktext) == ["[SOS]", "b", "a", "n", "a", "n", "a", "[EOS]"]
    assert list(figure.layout.yaxis.tickvals) == list(range(7))
    assert list(figure.layout.yaxis.ticktext) == list(CROSS.rows)
    assert tuple(figure.layout.xaxis.range) == (-0.5, 7.5)
    assert tuple(figure.layout.yaxis.range) == (6.5, -0.5)  # the first row stands at the top
    assert figure.layout.xaxis.title.text == "letters of the word"
    assert figure.layout.yaxis.title.text == "after reading → writes"


@pytest.mark.parametrize("weights", [softmaxed(*SHAPE), np.full(SHAPE, 0.125), np.zeros(SHAPE)])
def test_a_weight_has_the_same_colour_in_every_map_and_the_scale_is_shown(weights):
    (trace,) = drawn(large(weights)).data
    assert (trace.zmin, trace.zmax) == (0, 1)
    assert trace.showscale is not False
    assert list(trace.colorbar.tickvals) == [0, 0.5, 1]
    assert trace.colorbar.tickformat == ".0%"
    viridis = drawn(large(softmaxed(*SHAPE, seed=9))).data[0].colorscale
    assert trace.colorscale == viridis
    tiles = drawn(strip(2, 2)).data[0]
    assert (tiles.zmin, tiles.zmax) == (0, 1)
    assert tiles.colorscale == viridis
    assert viridis[0][1] == "#440154"
    assert viridis[-1][1] == "#fde725"


def test_what_lies_in_the_future_is_drawn_as_blocked_and_never_as_zero():
    weights = causal_weights(7, 7)
    weights[3, 0] = 0.0  # a weight of zero is a weight
    allowed, blocked = drawn(large(weights, CAUSAL)).data
    for row in range(7):
        for column in range(7):
            if column > row:
                assert allowed.z[row][column] is None
                assert blocked.z[row][column] == 1
                assert blocked.text[row][column] == "╱"
            else:
                assert allowed.z[row][column] == weights[row, column]
                assert blocked.z[row][column] is None
                assert blocked.text[row][column] == ""
    assert {color for _, color in blocked.colorscale} == {colors.CAUSAL}
    assert not blocked.showscale
    assert "blocked: in the future" in blocked.hovertemplate


def test_a_row_that_would_write_the_wrong_letter_says_so_and_no_other_row_does():
    labels = drawn(large(softmaxed(*SHAPE), wrong={2: "x", 6: "[PAD]"})).layout.yaxis.ticktext
    assert labels[2] == f"{CROSS.rows[2]} <b>✗</b> x"
    assert labels[6] == f"{CROSS.rows[6]} <b>✗</b> [PAD]"
    assert [label for i, label in enumerate(labels) if i not in (2, 6)] == [
        label for i, label in enumerate(CROSS.rows) if i not in (2, 6)
    ]


def test_outlines_stand_on_exactly_the_letters_that_a_backwards_reader_reads():
    figure = drawn(large(softmaxed(*SHAPE), outlined=mirrored_cells("cross", len(WORD))))
    columns = plain(figure.layout.xaxis.ticktext)
    found = []
    for shape in figure.layout.shapes:
        assert (shape.x1 - shape.x0, shape.y1 - shape.y0) == (1, 1)
        row, column = int(shape.y0 + 0.5), int(shape.x0 + 0.5)
        assert columns[column] == CROSS.rows[row].split(" → ")[1]  # it reads the letter that it writes
        assert shape.line.color == colors.MIRROR
        assert shape.line.width > 0
        found.append((row, column))
    assert found == [(0, 6), (1, 5), (2, 4), (3, 3), (4, 2), (5, 1)]
    assert not drawn(large(softmaxed(*SHAPE))).layout.shapes


def test_the_title_is_that_of_the_step_and_so_is_the_step():
    picture = large(softmaxed(*SHAPE), title="decoder 1 · head 2", step=41)
    assert picture.step == 41
    assert drawn(picture).layout.title.text == "decoder 1 · head 2"


@pytest.mark.parametrize("shape", [(8, 7), (7, 7), (6, 8), (7, 8, 1), (56,)])
def test_weights_that_do_not_fit_the_tokens_are_refused(shape):
    with pytest.raises(
        ValueError, match="^weights has shape .*, but the tokens need \\(7, 8\\)\\.$"
    ) as refused:
        large(np.zeros(shape))
    assert f"shape {shape}" in str(refused.value)
    with pytest.raises(ValueError, match="but the tokens need \\(7, 8\\)"):
        strip(1, 1, weights=[np.zeros((1, *shape))])


def test_what_stays_is_the_same_text_while_training_moves_the_rest():
    first = large(softmaxed(*SHAPE), wrong={1: "x"}, outlined=[(0, 6)])
    later = large(softmaxed(*SHAPE, seed=1), title="another head", step=9, outlined=[(0, 6)])
    assert later.spec == first.spec
    assert large(softmaxed(*SHAPE)).spec != first.spec  # other outlines
    assert large(causal_weights(7, 7), CAUSAL).spec != first.spec  # other tokens
    dark = strip(2, 3)
    bright = strip(2, 3, lit=[[True] * 3] * 2, chosen=(1, 2), weights=[softmaxed(3, *SHAPE, seed=7)] * 2)
    assert bright.spec == dark.spec
    assert strip(3, 2).spec != dark.spec
    assert set(bright.layout) == set(dark.layout)  # what is not lit any more is said too


def test_a_zoom_is_kept_for_as_long_as_the_tokens_stay():
    def key(picture):
        return json.loads(picture.spec)["layout"]["uirevision"]

    assert key(large(softmaxed(*SHAPE), outlined=[(0, 6)])) == key(large(softmaxed(*SHAPE, seed=1)))
    assert key(large(softmaxed(*SHAPE))) != key(large(causal_weights(7, 7), CAUSAL))


@pytest.mark.parametrize(("n_layers", "n_heads"), [(1, 1), (2, 3), (3, 2), (4, 8)])
def test_a_click_on_a_tile_means_the_head_that_is_drawn_there_and_between_tiles_none(n_layers, n_heads):
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


def test_layers_stand_side_by_side_and_heads_below_each_other_and_both_are_named():
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


def test_under_the_pointer_every_cell_of_every_tile_knows_its_tokens_layer_and_head():
    layout = drawn(strip(2, 3)).layout
    across = dict(zip(layout.xaxis.tickvals, layout.xaxis.ticktext, strict=True))
    down = dict(zip(layout.yaxis.tickvals, layout.yaxis.ticktext, strict=True))
    named = [f"{token} (layer {layer})" for layer in (1, 2) for token in CROSS.columns]
    assert [across[x] for x in sorted(across) if across[x]] == named
    assert [down[y] for y in sorted(down) if down[y]] == [
        f"head {head}, {row}" for head in (1, 2, 3) for row in CROSS.rows
    ]
    for point in ((0, 0), (9, 10), (22, 16)):
        layer, head = tile_at(point, CROSS)
        assert across[point[1]].endswith(f"(layer {layer + 1})")
        assert down[point[0]].startswith(f"head {head + 1},")


def test_a_head_that_turned_has_a_frame_and_the_chosen_one_the_thickest():
    figure = drawn(strip(2, 2, lit=[[False, True], [False, False]], chosen=(1, 0)))
    width = {tile: shape.line.width for tile, shape in outlines(figure, 2, 2).items()}
    assert width[0, 0] == width[1, 1] == 0
    assert 0 < width[0, 1] < width[1, 0]


def test_blocked_cells_of_tiles_have_no_weight_and_say_which_are_in_the_future_and_which_taken_by_hand():
    weights = [causal_weights(3, 7, 7, seed=layer) for layer in range(2)]
    weights[1][2, 4, 1] = np.nan  # somebody has taken it away
    figure = drawn(strip(2, 3, CAUSAL, weights=weights))
    shown, blocked = map(cells, figure.data)
    assert [color for _, color in figure.data[1].colorscale] == [colors.CAUSAL, colors.TAKEN]
    by_hand = []
    for row, column in np.ndindex(*shown.shape):
        tile = tile_at((row, column), CAUSAL)
        assert np.isnan(shown[row, column]) or np.isnan(blocked[row, column])
        if tile is None or blocked[row, column] == 1:
            by_hand += [] if tile is None else [(tile, row - 2 * 8, column - 1 * 8)]
        else:
            assert np.isnan(blocked[row, column]) == (column % 8 <= row % 8)
    assert by_hand == [((1, 2), 4, 1)]


@pytest.mark.parametrize("axes", [CROSS, CAUSAL])
def test_what_a_player_fills_with_numbers_is_the_large_map_with_a_trace_for_cells_taken_by_hand(axes):
    shape = len(axes.rows), len(axes.columns)
    weights = causal_weights(*shape) if axes.causal else softmaxed(*shape)
    assert player_spec(axes, False) == large(weights, axes).spec
    weights[5, 2] = np.nan
    by_player, by_page = json.loads(player_spec(axes, True)), json.loads(large(weights, axes).spec)
    assert by_player["layout"] == by_page["layout"]
    assert by_player["data"][:-1] == by_page["data"][:-1]
    last = by_player["data"][-1]
    assert last["z"] is None  # the player says which
    assert last["colorscale"] == by_page["data"][-1]["colorscale"]


def test_padding_that_is_not_hidden_has_one_label_for_all_its_columns():
    axes = MapAxes(
        rows=("[SOS]", "a"),
        columns=("[SOS]", "a", "b", "[EOS]", "[PAD]", "[PAD]", "[PAD]"),
        row_title="rows",
        column_title="columns",
    )
    figure = large_map(np.full((2, 7), 1 / 7), axes, title="", step=0).figure()
    labels = figure["layout"]["xaxis"]["ticktext"]
    assert labels == ["<br>[SOS]", "a", "b", "<br>[EOS]", "", "<br>[PAD] ×3", ""]


def test_a_head_that_is_off_is_hatched_as_a_whole_and_no_other():
    strip_axes = CROSS
    n_rows, n_columns = len(strip_axes.rows), len(strip_axes.columns)
    weights = softmaxed(n_rows, n_columns)
    assert large(weights).hatched == ()
    assert large(weights, off=True).hatched == ((-0.5, n_columns - 0.5, -0.5, n_rows - 0.5),)
    tiles = [softmaxed(2, n_rows, n_columns) for _ in range(3)]
    picture = map_strip(tiles, strip_axes, lit=[[False] * 2] * 3, chosen=None, step=5, off=[(2, 1)])
    (box,) = picture.hatched
    x0, x1, y0, y1 = (round(edge + 0.5) for edge in box)
    np.testing.assert_allclose(picture.arrays["0.z"][y0:y1, x0:x1], tiles[2][1])

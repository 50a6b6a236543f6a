"""Attention maps: every letter has its own column, every weight its fixed colour, every tile its place."""

from __future__ import annotations

import json

import numpy as np
import pytest
from plotly.graph_objects import Figure

from transformer.figures import colors
from transformer.figures.maps import MapAxes, large_map, map_strip, tile_at
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
    return map_strip(
        weights,
        axes,
        names=[[f"layer {layer} head {head}" for head in range(n_heads)] for layer in range(n_layers)],
        lit=lit or [[False] * n_heads] * n_layers,
        chosen=chosen,
        step=5,
    )


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
    for tile in drawn(strip(2, 2)).data:
        assert (tile.zmin, tile.zmax) == (0, 1)
        assert tile.colorscale == viridis
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
def test_a_click_on_a_tile_means_the_head_that_is_drawn_there(n_layers, n_heads):
    weights = [softmaxed(n_heads, *SHAPE, seed=layer) for layer in range(n_layers)]
    figure = drawn(strip(n_layers, n_heads, weights=weights))
    tiles = [tile_at(trace, n_layers) for trace in range(n_layers * n_heads)]
    assert sorted(tiles) == [(layer, head) for layer in range(n_layers) for head in range(n_heads)]
    for trace, (layer, head), name in zip(figure.data, tiles, figure.layout.annotations, strict=True):
        np.testing.assert_array_equal(np.array(trace.z, dtype=float), weights[layer][head])
        assert name.text == f"layer {layer} head {head}"
        assert f"layer {layer} head {head}" in trace.hovertemplate


def test_layers_stand_side_by_side_and_heads_below_each_other_without_touching():
    figure = drawn(strip(3, 2))
    for i, trace in enumerate(figure.data):
        layer, head = tile_at(i, 3)
        assert (len(trace.x), len(trace.y)) == (8, 7)
        for j, other in enumerate(figure.data):
            other_layer, other_head = tile_at(j, 3)
            assert (other.x[0] > trace.x[-1] + 1) == (other_layer > layer)
            assert (other.y[0] > trace.y[-1] + 1) == (other_head > head)
        frame, name = figure.layout.shapes[i], figure.layout.annotations[i]
        assert (frame.x0, frame.x1) == (trace.x[0] - 0.5, trace.x[-1] + 0.5)
        assert (frame.y0, frame.y1) == (trace.y[0] - 0.5, trace.y[-1] + 0.5)
        assert frame.x0 == name.x
        assert name.y < frame.y0  # above: the axis runs downwards
    low, high = figure.layout.xaxis.range
    bottom, top = figure.layout.yaxis.range
    assert low < figure.data[0].x[0] < figure.data[-1].x[-1] < high
    assert top < figure.layout.annotations[0].y < figure.data[-1].y[-1] < bottom


def test_under_the_pointer_every_cell_of_every_tile_knows_its_tokens():
    figure = drawn(strip(2, 3))
    across = dict(zip(figure.layout.xaxis.tickvals, figure.layout.xaxis.ticktext, strict=True))
    down = dict(zip(figure.layout.yaxis.tickvals, figure.layout.yaxis.ticktext, strict=True))
    for trace in figure.data:
        assert [across[x] for x in trace.x] == list(CROSS.columns)
        assert [down[y] for y in trace.y] == list(CROSS.rows)


def test_a_head_that_turned_carries_a_star_and_the_chosen_one_the_thickest_frame():
    figure = drawn(strip(2, 2, lit=[[False, True], [False, False]], chosen=(1, 0)))
    text, width = {}, {}
    for i in range(4):
        text[tile_at(i, 2)] = figure.layout.annotations[i].text
        width[tile_at(i, 2)] = figure.layout.shapes[i].line.width
    assert {tile for tile, name in text.items() if "★" in name} == {(0, 1)}
    assert width[0, 0] == width[1, 1] == 0
    assert 0 < width[0, 1] < width[1, 0]


def test_the_tiles_of_a_causal_attention_show_the_future_as_blocked_where_it_is():
    figure = drawn(strip(2, 3, CAUSAL, weights=[causal_weights(3, 7, 7, seed=layer) for layer in range(2)]))
    assert len(figure.data) == 12
    for weights, blocked in zip(figure.data[:6], figure.data[6:], strict=True):
        assert (list(blocked.x), list(blocked.y)) == (list(weights.x), list(weights.y))
        assert {color for _, color in blocked.colorscale} == {colors.CAUSAL}
        cells = np.array([[z is not None for z in row] for row in blocked.z])
        np.testing.assert_array_equal(cells, ~np.tri(7, dtype=bool))
        np.testing.assert_array_equal(cells, [[z is None for z in row] for row in weights.z])


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

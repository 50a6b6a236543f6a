"""The masks page's picture: every cell is allowed, causal, padding or both, and looks like it."""

from __future__ import annotations

import numpy as np
import pytest
from plotly.graph_objects import Figure

from transformer.figures import colors
from transformer.figures.maps import MapAxes
from transformer.figures.masks import mask_picture

ROWS, COLUMNS, REAL = 4, 6, 3
AXES = MapAxes(
    rows=("[SOS] → a", "a → a", "a → [EOS]", "[PAD]"),
    columns=("[SOS]", "a", "a", "[PAD]", "[PAD]", "[PAD]"),
    row_title="after reading → writes",
    column_title="letters written so far",
)
CAUSAL = np.tri(ROWS, COLUMNS, dtype=bool)
PADDING = np.broadcast_to(np.arange(COLUMNS) < REAL, (ROWS, COLUMNS)).copy()
OPEN = np.ones((ROWS, COLUMNS), dtype=bool)

LOOKS = {  # (causal allows, padding allows) in the combined mask: colour and mark
    (True, True): (colors.ALLOWED, ""),
    (False, True): (colors.CAUSAL, "╱"),
    (True, False): (colors.PADDING, "•"),
    (False, False): (colors.PADDING, "╱•"),
}


def weights_behind(causal, padding):
    scores = np.random.default_rng(0).random((ROWS, COLUMNS)) * (causal & padding)
    return np.where(causal & padding, scores / scores.sum(axis=1, keepdims=True), np.nan)


def picture(causal=CAUSAL, padding=PADDING, weights=None, title="“aa” in its batch", step=8):
    weights = weights_behind(causal, padding) if weights is None else weights
    return mask_picture(
        weights, AXES, causal=causal, padding=padding, head="decoder 1 · head 2", title=title, step=step
    )


def drawn(made):
    return Figure(made.figure())


def panels(figure):
    """Panel (1 to 4) to its cells: (row, column) to colour and mark; each cell is drawn exactly once."""
    found = {1: {}, 2: {}, 3: {}, 4: {}}
    for trace in figure.data[1:]:  # the first one holds the weights
        assert (trace.xaxis or "x")[1:] == (trace.yaxis or "y")[1:]
        cells = found[int(trace.xaxis[1:] or 1)]
        (color,) = {color for _, color in trace.colorscale}
        for row in range(ROWS):
            for column in range(COLUMNS):
                if trace.z[row][column] is not None:
                    assert (row, column) not in cells
                    cells[row, column] = color, trace.text[row][column]
    return found


def expected(causal, padding):
    return {
        (row, column): LOOKS[bool(causal[row, column]), bool(padding[row, column])]
        for row in range(ROWS)
        for column in range(COLUMNS)
    }


def test_each_panel_shows_its_own_mask_and_the_third_both():
    found = panels(drawn(picture()))
    assert found[1] == expected(CAUSAL, OPEN)
    assert found[2] == expected(OPEN, PADDING)
    assert found[3] == expected(CAUSAL, PADDING)
    assert set(found[3].values()) == set(LOOKS.values())  # all four kinds occur in this example


def test_causal_and_padding_are_told_apart_by_colour_and_by_mark():
    (open_color, open_mark), (causal_color, causal_mark), (padding_color, padding_mark), (_, both) = (
        LOOKS.values()
    )
    assert len({open_color, causal_color, padding_color}) == 3
    assert len({open_mark, causal_mark, padding_mark, both}) == 4
    hovers = [trace.hovertemplate for trace in drawn(picture()).data if trace.xaxis == "x3"]
    assert [text.split("<br>")[1].split(" %{x}")[0] for text in hovers] == [
        "may look at",
        "may not look at (causal: it lies in the future)",
        "may not look at (padding: it is no letter)",
        "may not look at (causal and padding)",
    ]


def test_the_weights_stand_in_the_fourth_panel_and_a_blocked_cell_has_none():
    weights = weights_behind(CAUSAL, PADDING)
    weights[2, 1] = 0.0  # allowed, and nothing is put there
    figure = drawn(picture(weights=weights))
    trace = figure.data[0]
    assert (trace.xaxis, trace.yaxis) == ("x4", "y4")
    assert (trace.zmin, trace.zmax) == (0, 1)
    assert list(trace.colorbar.tickvals) == [0, 0.5, 1]
    combined, covered = panels(figure)[3], panels(figure)[4]
    for row in range(ROWS):
        for column in range(COLUMNS):
            if CAUSAL[row, column] and PADDING[row, column]:
                assert trace.z[row][column] == weights[row, column]
                assert (row, column) not in covered
            else:
                assert trace.z[row][column] is None
                assert covered[row, column] == combined[row, column]


def test_every_panel_has_the_positions_as_its_axes_and_the_first_row_on_top():
    figure = drawn(picture())
    layout = figure.layout
    for i, number in enumerate(("", "2", "3", "4")):
        across, down = layout[f"xaxis{number}"], layout[f"yaxis{number}"]
        assert (across.anchor, down.anchor) == (f"y{number}", f"x{number}")
        assert list(across.tickvals) == list(range(COLUMNS))
        assert [text.replace("<br>", "") for text in across.ticktext] == list(AXES.columns)
        assert list(down.ticktext) == list(AXES.rows)
        assert tuple(across.range) == (-0.5, COLUMNS - 0.5)
        assert tuple(down.range) == (ROWS - 0.5, -0.5)
        assert layout.annotations[i].x == across.domain[0]  # its name stands above it
        if i:
            before = layout["xaxis" + ("", "2", "3")[i - 1]]
            assert before.domain[1] < across.domain[0]
    assert layout.xaxis.title.text == "letters written so far"
    assert layout.yaxis.title.text == "after reading → writes"
    assert layout.title.text == "“aa” in its batch"


@pytest.mark.parametrize(
    ("causal", "padding", "names"),
    [
        (CAUSAL, PADDING, ["causal mask", "padding mask"]),
        (OPEN, PADDING, ["causal mask: none here", "padding mask"]),
        (CAUSAL, OPEN, ["causal mask", "padding mask: nothing to hide"]),
    ],
)
def test_a_mask_that_hides_nothing_says_so(causal, padding, names):
    figure = drawn(picture(causal, padding))
    headings = [annotation.text for annotation in figure.layout.annotations]
    assert headings == [*names, "both combined", "weights: <b>decoder 1 · head 2</b>"]
    assert panels(figure)[3] == expected(causal, padding)


def test_what_stays_is_the_same_text_while_training_moves_the_weights():
    other = np.where(CAUSAL & PADDING, 0.5, np.nan)
    assert picture(weights=other, title="later", step=9).spec == picture().spec
    assert picture(OPEN).spec != picture().spec
    assert picture(padding=OPEN).spec != picture().spec
    assert picture(step=9).step == 9


@pytest.mark.parametrize("name", ["weights", "causal", "padding"])
def test_an_array_that_does_not_fit_the_tokens_is_refused_by_its_name(name):
    arrays = {"weights": weights_behind(CAUSAL, PADDING), "causal": CAUSAL, "padding": PADDING}
    with pytest.raises(ValueError, match=f"^{name} has shape \\(6, 4\\), but the tokens need \\(4, 6\\)\\.$"):
        picture(**arrays | {name: arrays[name].T})

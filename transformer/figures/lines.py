"""Attention as lines from query tokens to key tokens; the opacity of a line is its weight."""

from __future__ import annotations

import json
from functools import lru_cache

import numpy as np

from transformer.figures import colors
from transformer.figures.labels import MapAxes
from transformer.figures.parts import Part, line, note, texts, titled
from transformer.figures.picture import Array, Picture, escaped

LETTER = 0.026
"""Width of one letter of a label, as a share of the width of a narrow picture."""
WIDEST = 0.34
"""Maximum width of the labels on one side, as a share of the picture's width."""


def line_view(weights: Array, axes: MapAxes, *, title: str, step: int, lit_row: int | None = None) -> Picture:
    """Queries (left) and keys (right), with a line for every cell of the map.

    Shape row * n_columns + column is the line of cell (row, column); "meta" in the layout holds the size of
    the map.

    Args:
        weights: (rows, columns) in [0, 1]; NaN where a mask or an intervention blocks: no line.
        lit_row: the row of the current token; its label is bold, its lines are wider and in another colour.

    Raises:
        ValueError: the shape of the weights does not fit the axes.
    """
    axes.check(weights)
    opacities = np.nan_to_num(weights.astype(float), nan=0.0).clip(0.0, 1.0).tolist()
    lines = [
        line((0, row), (1, column), _look(row, lit_row), layer="below", opacity=opacity)
        for row, of_row in enumerate(opacities)
        for column, opacity in enumerate(of_row)
    ]
    return Picture(spec=_spec(axes, lit_row), layout={"title.text": title, "shapes": lines}, step=step)


def _look(row: int, lit_row: int | None) -> Part:
    if lit_row is None:
        return {"color": colors.ATTENTION_LINE, "width": 3}
    if row == lit_row:
        return {"color": colors.HIGHLIGHT, "width": 5}
    return {"color": colors.GHOST, "width": 1.5}


@lru_cache(maxsize=64)
def _spec(axes: MapAxes, lit_row: int | None) -> str:
    most, longest = max(axes.shape), max(map(len, axes.rows), default=0)
    size = 16 if most <= 10 and longest <= 13 else 14 if most <= 14 and longest <= 16 else 12
    rows = [escaped(label) for label in axes.rows]
    if lit_row is not None:
        rows[lit_row] = f"<b>{rows[lit_row]}</b>"
    left, right = (
        min(WIDEST, LETTER * (2 + max(map(len, labels), default=0))) for labels in (axes.rows, axes.columns)
    )
    between = 1 - left - right
    layout = {
        "meta": {"lines": {"rows": len(axes.rows), "columns": len(axes.columns)}},
        "title": titled(),
        "margin": {"l": 4, "r": 4, "t": 76, "b": 4},
        "hovermode": "closest",
        "hoverdistance": 40,
        "showlegend": False,
        "xaxis": {"range": [-left / between, 1 + right / between], "visible": False, "fixedrange": True},
        "yaxis": {"range": [most - 0.4, -0.6], "visible": False, "fixedrange": True},
        "annotations": [
            note(axes.row_title, 0, 1.0, "center bottom", size=13, yref="paper"),
            note(axes.column_title, 1, 1.0, "center bottom", size=13, yref="paper"),
        ],
        "uirevision": json.dumps([axes.rows, axes.columns]),
    }
    columns = [escaped(token) for token in axes.columns]
    data = [_tokens(0, rows, "middle left", size), _tokens(1, columns, "middle right", size)]
    return json.dumps({"data": data, "layout": layout})


def _tokens(x: int, labels: list[str], side: str, size: int) -> Part:
    """A column of tokens, with markers large enough to point at."""
    marker = {"size": 14, "color": colors.GHOST, "opacity": 0.35, "line": {"width": 0}}
    places = [x] * len(labels), range(len(labels))
    # No hover text: on hover, the live figure shows only the lines of the token.
    return texts(*places, labels, size, textposition=side, marker=marker, hoverinfo="none")

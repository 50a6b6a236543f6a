"""Attention as lines from each token that looks to what it looks at, as opaque as the weight."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import numpy as np

from transformer.figures import colors
from transformer.figures.maps import TITLE, MapAxes
from transformer.figures.picture import Array, Picture, escaped

LETTER = 0.026
"""Share of the picture's width that one letter of a label needs where the picture is narrow."""
WIDEST = 0.34
"""Share of the width that the labels of one side may take."""


def line_view(weights: Array, axes: MapAxes, *, title: str, step: int, lit_row: int | None = None) -> Picture:
    """Who looks (left) and what is looked at (right), a line for every cell of the map.

    Shape row * columns + column is the line of that cell; "meta" in the layout tells the live figure so.

    Args:
        weights: (rows, columns) in [0, 1]; NaN where the mask blocks, which draws no line.
        lit_row: the token that matters now: bold, with lines of another colour, before those of all others.
    """
    expected = (len(axes.rows), len(axes.columns))
    if weights.shape != expected:
        raise ValueError(f"weights has shape {weights.shape}, but the tokens need {expected}.")
    opacities = np.nan_to_num(weights.astype(float), nan=0.0).clip(0.0, 1.0)
    lines = [
        _line(row, column, opacities[row, column], lit_row)
        for row in range(len(axes.rows))
        for column in range(len(axes.columns))
    ]
    spec = _spec(axes, lit_row, 1 + title.count("<br>"))
    return Picture(spec=spec, layout={"title.text": title, "shapes": lines}, step=step)


def _line(row: int, column: int, opacity: float, lit_row: int | None) -> dict[str, Any]:
    if lit_row is None:
        look: dict[str, Any] = {"color": colors.LOOKS, "width": 3}
    elif row == lit_row:
        look = {"color": colors.LIT, "width": 5}
    else:
        look = {"color": colors.GHOST, "width": 1.5}
    return {
        "type": "line",
        "layer": "below",
        "x0": 0,
        "x1": 1,
        "y0": row,
        "y1": column,
        "opacity": float(opacity),
        "line": look,
    }


@lru_cache(maxsize=64)
def _spec(axes: MapAxes, lit_row: int | None, title_lines: int) -> str:
    n_rows, n_columns = len(axes.rows), len(axes.columns)
    size = 16 if max(n_rows, n_columns) <= 10 else 14 if max(n_rows, n_columns) <= 14 else 12
    rows = [escaped(label) for label in axes.rows]
    if lit_row is not None:
        rows[lit_row] = f"<b>{rows[lit_row]}</b>"
    left, right = (
        min(WIDEST, LETTER * (2 + max(map(len, labels), default=0))) for labels in (axes.rows, axes.columns)
    )
    between = 1 - left - right
    layout = {
        "meta": {"lines": {"rows": n_rows, "columns": n_columns}},
        "title": TITLE | {"text": "", "pad": {"t": 2 + 8 * title_lines}},
        "margin": {"l": 4, "r": 4, "t": 34 + 18 * title_lines, "b": 4},
        "hovermode": "closest",
        "hoverdistance": 40,
        "showlegend": False,
        "xaxis": {"range": [-left / between, 1 + right / between], "visible": False, "fixedrange": True},
        "yaxis": {
            "range": [max(n_rows, n_columns) - 0.4, -0.6],
            "visible": False,
            "fixedrange": True,
        },
        "annotations": [_heading(axes.row_title, 0), _heading(axes.column_title, 1)],
        "uirevision": json.dumps([axes.rows, axes.columns]),
    }
    data = [
        _tokens(0, rows, "middle left", size),
        _tokens(1, [escaped(token) for token in axes.columns], "middle right", size),
    ]
    return json.dumps({"data": data, "layout": layout})


def _tokens(x: int, labels: list[str], side: str, size: int) -> dict[str, Any]:
    """Tokens below each other; their markers are large, for the pointer."""
    return {
        "type": "scatter",
        "mode": "markers+text",
        "x": [x] * len(labels),
        "y": list(range(len(labels))),
        "text": labels,
        "textposition": side,
        "textfont": {"size": size},
        "cliponaxis": False,
        "marker": {"size": 14, "color": colors.GHOST, "opacity": 0.35, "line": {"width": 0}},
        "hoverinfo": "none",  # what the pointer asks, the lines answer
    }


def _heading(text: str, x: int) -> dict[str, Any]:
    """What the tokens below it are."""
    return {
        "text": text,
        "x": x,
        "yref": "paper",
        "y": 1.0,
        "xanchor": "center",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 13},
    }

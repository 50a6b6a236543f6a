"""Attention maps, a row per query and a column per key: one head large, and all heads as tiles."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np

from transformer.figures import colors
from transformer.figures.picture import Array, Picture, escaped

ZERO_TO_ONE = {"zmin": 0.0, "zmax": 1.0, "colorscale": colors.WEIGHTS}
TITLE = {"x": 0.01, "xanchor": "left", "y": 1, "yanchor": "top", "pad": {"t": 18}, "font": {"size": 16}}
ROWS_OF_TILES = 4
GAP = 1.2
"""Cells between two tiles."""


@dataclass(frozen=True, kw_only=True)
class MapAxes:
    """What stands at the two axes of a map; hashable, so that a layout is made once per word."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    row_title: str
    column_title: str
    causal: bool = False
    """Whether the upper triangle is blocked."""


def large_map(
    weights: Array,
    axes: MapAxes,
    *,
    title: str,
    step: int,
    wrong: Mapping[int, str] | None = None,
    outlined: Sequence[tuple[int, int]] = (),
    lit_row: int | None = None,
) -> Picture:
    """One head, large enough for the last row of a room.

    Args:
        weights: (rows, columns) in [0, 1]; NaN where the mask blocks.
        wrong: row to the token that it would write now, where that is not the right one.
        outlined: cells (row, column) to mark.
        lit_row: the row that matters now, in a frame.
    """
    _check(weights, axes)
    labels = [_marked(escaped(label), (wrong or {}).get(i)) for i, label in enumerate(axes.rows)]
    return Picture(
        spec=_large_spec(axes, tuple(outlined), lit_row, _taken(weights, axes)),
        arrays={"0.z": weights},
        layout={"title.text": title, "yaxis.ticktext": labels},
        step=step,
    )


def _marked(label: str, would_write: str | None) -> str:
    return label if would_write is None else f"{label} <b>✗</b> {escaped(would_write)}"


@lru_cache(maxsize=64)
def _large_spec(
    axes: MapAxes,
    outlined: tuple[tuple[int, int], ...],
    lit_row: int | None,
    taken: tuple[tuple[int, ...], ...],
) -> str:
    n_rows, n_columns = len(axes.rows), len(axes.columns)
    size = 16 if max(n_rows, n_columns) <= 14 else 11
    data = [
        {
            "type": "heatmap",
            **ZERO_TO_ONE,
            "xgap": 1,
            "ygap": 1,
            "hoverongaps": False,
            "hovertemplate": "%{y} · looks at %{x}<br><b>%{z:.1%}</b><extra></extra>",
            "colorbar": {
                "title": {"text": "weight", "side": "top", "font": {"size": 12}},
                "thickness": 10,
                "tickvals": [0, 0.5, 1],
                "tickformat": ".0%",
                "tickfont": {"size": 12},
                "outlinewidth": 0,
                "xpad": 4,
            },
        }
    ]
    if axes.causal:
        data.append(_future(n_rows, n_columns, "╱"))
    if taken:
        data.append(_by_hand(taken, n_rows, n_columns, "✕"))
    layout = {
        "title": TITLE | {"text": ""},
        "margin": {"l": 4, "r": 0, "t": 48, "b": 4},
        "xaxis": _column_axis(axes.columns, axes.column_title, size),
        "yaxis": _token_axis([escaped(label) for label in axes.rows], axes.row_title, size)
        | {"range": [n_rows - 0.5, -0.5]},
        "shapes": [_outline(row, column) for row, column in outlined]
        + ([] if lit_row is None else [_frame_of(lit_row, n_columns)]),
        "uirevision": json.dumps([axes.rows, axes.columns]),
    }
    return json.dumps({"data": data, "layout": layout})


def map_strip(
    weights: Sequence[Array],
    axes: MapAxes,
    *,
    names: Sequence[Sequence[str]],
    lit: Sequence[Sequence[bool]],
    chosen: tuple[int, int] | None,
    step: int,
) -> Picture:
    """All heads as tiles: a column per layer and a row per head; beyond four heads a layer has more columns.

    Args:
        weights: of each layer (H, rows, columns) in [0, 1]; NaN where the mask blocks.
        names: of each layer the name of each head.
        lit: of each layer whether each head has crossed the mirror threshold.
        chosen: (layer, head) that is shown large.
    """
    n_layers, n_heads = len(weights), len(weights[0])
    for heads in weights:
        for one in heads:
            _check(one, axes)
    tiles = [(layer, head) for head in range(n_heads) for layer in range(n_layers)]
    changing: dict[str, Any] = {}
    for i, (layer, head) in enumerate(tiles):
        text = names[layer][head]
        changing[f"annotations[{i}].text"] = f"<b>★ {text}</b>" if lit[layer][head] else text
        is_chosen = (layer, head) == chosen
        changing[f"shapes[{i}].line.width"] = 4 if is_chosen else 2 if lit[layer][head] else 0
    taken = tuple(_taken(weights[layer][head], axes) for layer, head in tiles)
    return Picture(
        spec=_strip_spec(axes, n_layers, n_heads, tuple(tuple(layer) for layer in names), taken),
        arrays={f"{i}.z": weights[layer][head] for i, (layer, head) in enumerate(tiles)},
        layout=changing,
        step=step,
    )


def tile_at(trace: int, n_layers: int) -> tuple[int, int]:
    """The (layer, head) that a click on this trace of a strip means."""
    return trace % n_layers, trace // n_layers


@lru_cache(maxsize=64)
def _strip_spec(
    axes: MapAxes,
    n_layers: int,
    n_heads: int,
    names: tuple[tuple[str, ...], ...],
    taken: tuple[tuple[tuple[int, ...], ...], ...],
) -> str:
    n_rows, n_columns = len(axes.rows), len(axes.columns)
    step_x, step_y = n_columns + GAP, n_rows + GAP + n_rows * 0.2  # room for the name above each tile
    data: list[dict[str, Any]] = []
    blocked: list[dict[str, Any]] = []
    by_hand: list[dict[str, Any]] = []
    annotations, shapes = [], []
    per_layer = -(-n_heads // ROWS_OF_TILES)
    n_across, n_down = n_layers * per_layer, min(n_heads, ROWS_OF_TILES)
    for head in range(n_heads):
        for layer in range(n_layers):
            across, down = layer * per_layer + head // ROWS_OF_TILES, head % ROWS_OF_TILES
            x = [across * step_x + i for i in range(n_columns)]
            y = [down * step_y + i for i in range(n_rows)]
            data.append(
                {
                    "type": "heatmap",
                    **ZERO_TO_ONE,
                    "x": x,
                    "y": y,
                    "showscale": False,
                    "hoverongaps": False,
                    "hovertemplate": f"<b>{names[layer][head]}</b><br>%{{y}} · looks at %{{x}}"
                    "<br><b>%{z:.1%}</b><extra></extra>",
                }
            )
            if axes.causal:
                blocked.append(_future(n_rows, n_columns, None) | {"x": x, "y": y})
            if cells := taken[len(data) - 1]:
                # Not to be pointed at: the number of a trace tells which tile was clicked.
                by_hand.append(
                    _by_hand(cells, n_rows, n_columns, None)
                    | {"x": x, "y": y, "hoverinfo": "skip", "hovertemplate": None}
                )
            annotations.append(
                {
                    "x": x[0] - 0.5,
                    "y": y[0] - 0.6,
                    "text": names[layer][head],
                    "showarrow": False,
                    "xanchor": "left",
                    "yanchor": "bottom",
                    "font": {"size": 12},
                }
            )
            shapes.append(
                {
                    "type": "rect",
                    "x0": x[0] - 0.5,
                    "x1": x[-1] + 0.5,
                    "y0": y[0] - 0.5,
                    "y1": y[-1] + 0.5,
                    "line": {"color": colors.MIRROR, "width": 0},
                }
            )
    hidden = {"showticklabels": False, "showline": False, "showgrid": False, "zeroline": False, "ticks": ""}
    layout = {
        "margin": {"l": 2, "r": 2, "t": 12, "b": 2},
        "xaxis": {
            **hidden,
            "tickvals": [tile * step_x + i for tile in range(n_across) for i in range(n_columns)],
            "ticktext": [escaped(token) for token in axes.columns] * n_across,
            "range": [-1.0, (n_across - 1) * step_x + n_columns],
        },
        "yaxis": {
            **hidden,
            "tickvals": [tile * step_y + i for tile in range(n_down) for i in range(n_rows)],
            "ticktext": [escaped(label) for label in axes.rows] * n_down,
            "range": [(n_down - 1) * step_y + n_rows - 0.3, -0.7 - n_rows * 0.22],
        },
        "annotations": annotations,
        "shapes": shapes,
        "uirevision": json.dumps([axes.rows, axes.columns, n_layers, n_heads]),
    }
    return json.dumps({"data": data + blocked + by_hand, "layout": layout})


def _column_axis(tokens: Sequence[str], title: str, size: int) -> dict[str, Any]:
    """Letters stand below their columns; words lean, for they are wider."""
    if any(len(token) > 2 and not token.startswith("[") for token in tokens):
        return _token_axis([escaped(token) for token in tokens], title, min(size, 14)) | {"tickangle": -40}
    return _token_axis(_lowered(tokens), title, size)


def _lowered(tokens: Sequence[str]) -> list[str]:
    """Special tokens are wider than their column: they stand a line below the letters, equal ones as one."""
    labels = []
    for token, run in groupby(tokens):
        n = len(list(run))
        text = escaped(token)
        if len(token) <= 3:
            labels += [text] * n
        else:
            together = f"<br>{text}" if n == 1 else f"<br>{text} ×{n}"
            labels += [together if i == n // 2 else "" for i in range(n)]
    return labels


def _token_axis(labels: Sequence[str], title: str, size: int) -> dict[str, Any]:
    """Positions are the axis, tokens only its labels: a repeated letter keeps its own column.

    The margin that Plotly makes for a title forgets part of its height: less standoff, and it touches labels.
    """
    return {
        "tickvals": list(range(len(labels))),
        "ticktext": list(labels),
        "tickfont": {"size": size},
        "tickangle": 0,
        "title": {"text": title, "font": {"size": 13}, "standoff": 12},
        "range": [-0.5, len(labels) - 0.5],
        "showgrid": False,
        "showline": False,
        "zeroline": False,
        "ticks": "",
        "automargin": True,
    }


def flat_cells(cells: Array, color: str, mark: str | None, hover: str) -> dict[str, Any]:
    """Some cells of a map in one flat colour, with a mark: how blocked cells are drawn, never as zero.

    Args:
        cells: (rows, columns) bool.
        mark: what stands in each of them; None leaves them plain.
        hover: Plotly's template for what the pointer shows.
    """
    return {
        "type": "heatmap",
        "z": [[1 if cell else None for cell in row] for row in cells.tolist()],
        "colorscale": [[0, color], [1, color]],
        "showscale": False,
        "hoverongaps": False,
        "xgap": 1,
        "ygap": 1,
        "text": [[mark if cell else "" for cell in row] for row in cells.tolist()]
        if mark is not None
        else None,
        "texttemplate": "%{text}" if mark is not None else None,
        "textfont": {"color": colors.MARK, "size": 11},
        "hovertemplate": f"{hover}<extra></extra>",
    }


def _future(n_rows: int, n_columns: int, mark: str | None) -> dict[str, Any]:
    """The cells that the causal mask blocks."""
    cells = ~np.tri(n_rows, n_columns, dtype=bool)
    return flat_cells(cells, colors.CAUSAL, mark, "%{y} may not look at %{x}<br>blocked: in the future")


def _taken(weights: Array, axes: MapAxes) -> tuple[tuple[int, ...], ...]:
    """Cells that are blocked though the causal mask leaves them open: somebody has taken them away."""
    taken = np.isnan(weights)
    if axes.causal:
        taken = taken & np.tri(weights.shape[0], weights.shape[1], dtype=bool)
    return tuple(map(tuple, np.argwhere(taken).tolist()))


def _by_hand(
    taken: tuple[tuple[int, ...], ...], n_rows: int, n_columns: int, mark: str | None
) -> dict[str, Any]:
    cells = np.zeros((n_rows, n_columns), dtype=bool)
    cells[tuple(np.array(taken).T)] = True
    return flat_cells(cells, colors.TAKEN, mark, "%{y} may not look at %{x}<br>blocked by hand")


def _outline(row: int, column: int) -> dict[str, Any]:
    return {
        "type": "rect",
        "x0": column - 0.5,
        "x1": column + 0.5,
        "y0": row - 0.5,
        "y1": row + 0.5,
        "line": {"color": colors.MIRROR, "width": 2},
    }


def _frame_of(row: int, n_columns: int) -> dict[str, Any]:
    """The row that is being written."""
    shape = _outline(row, 0)
    return shape | {"x1": n_columns - 0.5, "line": {"color": colors.LIT, "width": 4}}


def _check(weights: Array, axes: MapAxes) -> None:
    expected = (len(axes.rows), len(axes.columns))
    if weights.shape != expected:
        raise ValueError(f"weights has shape {weights.shape}, but the tokens need {expected}.")

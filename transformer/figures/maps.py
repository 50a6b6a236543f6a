"""Attention maps, a row per query and a column per key: one head large, and all heads as tiles."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np

from transformer.figures import colors
from transformer.figures.picture import Array, Picture, escaped

ZERO_TO_ONE = {"zmin": 0.0, "zmax": 1.0, "colorscale": colors.WEIGHTS}
TITLE = {"x": 0.01, "xanchor": "left", "y": 1, "yanchor": "top", "pad": {"t": 18}, "font": {"size": 16}}
GAP = 1
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
    off: bool = False,
) -> Picture:
    """One head, large enough for the last row of a room.

    Args:
        weights: (rows, columns) in [0, 1]; NaN where the mask blocks.
        wrong: row to the token that it would write now, where that is not the right one.
        outlined: cells (row, column) to mark.
        lit_row: the row that matters now, in a frame.
        off: whether the head is switched off.
    """
    _check(weights, axes)
    labels = [_marked(escaped(label), (wrong or {}).get(i)) for i, label in enumerate(axes.rows)]
    return Picture(
        spec=_large_spec(axes, tuple(outlined), lit_row, _taken(weights, axes)),
        arrays={"0.z": weights},
        layout={"title.text": title, "yaxis.ticktext": labels},
        step=step,
        hatched=(_box(0, 0, (len(axes.rows), len(axes.columns))),) if off else (),
    )


def _marked(label: str, would_write: str | None) -> str:
    return label if would_write is None else f"{label} <b>✗</b> {escaped(would_write)}"


@lru_cache(maxsize=64)
def player_spec(axes: MapAxes, taken: bool) -> str:
    """What stays of one head shown large while a player puts numbers into it.

    Trace 0 are the weights; then come cells in the future, if rows are kept from these, and at last those
    that are blocked by hand.

    Args:
        taken: whether there are any of the last.
    """
    figure = json.loads(_large_spec(axes, (), None, ((0, 0),) if taken else ()))
    if taken:
        figure["data"][-1] |= {"z": None, "text": None, "texttemplate": "✕"}
    return json.dumps(figure)


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
    lit: Sequence[Sequence[bool]],
    chosen: tuple[int, int] | None,
    step: int,
    off: Collection[tuple[int, int]] = (),
) -> Picture:
    """All heads as tiles of one picture: a column of tiles per layer and a row per head.

    Args:
        weights: of each layer (H, rows, columns) in [0, 1]; NaN where the mask blocks.
        lit: of each layer whether each head has crossed the mirror threshold.
        chosen: (layer, head) that is shown large.
        off: (layer, head) of those that are switched off.
    """
    n_layers, n_heads = len(weights), len(weights[0])
    for heads in weights:
        for one in heads:
            _check(one, axes)
    shape = len(axes.rows), len(axes.columns)
    height, width = tile_place(n_heads - 1, n_layers - 1, shape)
    tiles = np.full((height + shape[0], width + shape[1]), np.nan, dtype=np.float32)
    blocked = tiles.copy()
    future = ~np.tri(*shape, dtype=bool) & axes.causal
    changing: dict[str, Any] = {}
    for layer, heads in enumerate(weights):
        for head, one in enumerate(heads):
            y, x = tile_place(head, layer, shape)
            tiles[y : y + shape[0], x : x + shape[1]] = one
            closed = np.where(future, 0.0, 1.0)
            blocked[y : y + shape[0], x : x + shape[1]] = np.where(np.isnan(one), closed, np.nan)
            width_of_line = 4 if (layer, head) == chosen else 2 if lit[layer][head] else 0
            changing[f"shapes[{head * n_layers + layer}].line.width"] = width_of_line
    return Picture(
        spec=strip_spec(axes, n_layers, n_heads),
        arrays={"0.z": tiles, "1.z": blocked},
        layout=changing,
        step=step,
        hatched=tuple(_box(head, layer, shape) for layer, head in off),
    )


def tile_place(head: int, layer: int, shape: tuple[int, int]) -> tuple[int, int]:
    """Row and column of a tile's first cell in the picture of all heads.

    Args:
        shape: rows and columns of a map.
    """
    return head * (shape[0] + GAP), layer * (shape[1] + GAP)


def _box(head: int, layer: int, shape: tuple[int, int]) -> tuple[float, float, float, float]:
    """The rectangle (x0, x1, y0, y1) of the axes that a tile has; a map alone is the first of its tiles."""
    y, x = tile_place(head, layer, shape)
    return x - 0.5, x + shape[1] - 0.5, y - 0.5, y + shape[0] - 0.5


def tile_at(point: tuple[int, int], axes: MapAxes) -> tuple[int, int] | None:
    """The (layer, head) whose tile has this cell (row, column); None between the tiles."""
    (head, row), (layer, column) = (
        divmod(place, len(tokens) + GAP)
        for place, tokens in zip(point, (axes.rows, axes.columns), strict=True)
    )
    return (layer, head) if row < len(axes.rows) and column < len(axes.columns) else None


@lru_cache(maxsize=64)
def strip_spec(axes: MapAxes, n_layers: int, n_heads: int) -> str:
    """What stays of the picture of all heads: trace 0 are the weights, trace 1 blocked cells (0 in the
    future, 1 by hand), and each tile has its outline as a shape, those of the first head first.
    """
    shape = n_rows, n_columns = len(axes.rows), len(axes.columns)
    height, width = tile_place(n_heads - 1, n_layers - 1, shape)
    between = [""] * GAP
    x_names, y_names, shapes, annotations = [], [], [], []
    for layer in range(n_layers):
        x_names += [f"{escaped(token)} (layer {layer + 1})" for token in axes.columns] + between
        middle = tile_place(0, layer, shape)[1] + (n_columns - 1) / 2
        annotations.append(_beside(f"layer {layer + 1}" if n_layers <= 4 else str(layer + 1), x=middle))
    for head in range(n_heads):
        y_names += [f"head {head + 1}, {escaped(label)}" for label in axes.rows] + between
        middle = tile_place(head, 0, shape)[0] + (n_rows - 1) / 2
        annotations.append(_beside(f"head {head + 1}" if n_heads <= 6 else str(head + 1), y=middle))
        for layer in range(n_layers):
            y, x = tile_place(head, layer, shape)
            shapes.append(_rectangle(x, x + n_columns - 1, y, y + n_rows - 1, 0))
    layout = {
        "margin": {"l": 24, "r": 4, "t": 24, "b": 4},
        "xaxis": _hidden(x_names, [-1.0, width + n_columns]),
        "yaxis": _hidden(y_names, [height + n_rows, -1.0]),
        "annotations": annotations,
        "shapes": shapes,
        "uirevision": json.dumps([axes.rows, axes.columns, n_layers, n_heads]),
    }
    cells = {"type": "heatmap", "hoverongaps": False, "showscale": False}
    reasons = {"zmin": 0, "zmax": 1, "colorscale": [[0, colors.CAUSAL], [1, colors.TAKEN]]}
    data = [
        cells | ZERO_TO_ONE | {"hovertemplate": "%{y} · looks at %{x}<br><b>%{z:.1%}</b><extra></extra>"},
        cells | reasons | {"hovertemplate": "%{y} · may not look at %{x}<extra></extra>"},
    ]
    return json.dumps({"data": data, "layout": layout})


def _hidden(names: Sequence[str], ends: list[float]) -> dict[str, Any]:
    """An axis that only the pointer tells of."""
    return {
        "showticklabels": False,
        "showline": False,
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
        "tickvals": list(range(len(names))),
        "ticktext": list(names),
        "range": ends,
    }


def _beside(text: str, *, x: float | None = None, y: float | None = None) -> dict[str, Any]:
    """The name of a column of tiles above it, or of a row to its left."""
    place = (
        {"x": x, "y": 1.0, "yref": "paper", "xanchor": "center", "yanchor": "bottom"}
        if y is None
        else {"x": 0.0, "xref": "paper", "y": y, "xanchor": "right", "yanchor": "middle", "textangle": -90}
    )
    return place | {"text": text, "showarrow": False, "font": {"size": 13}}


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
        "ticklabeloverflow": "allow",  # Plotly would measure every label at every change
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


def _rectangle(left: int, right: int, top: int, bottom: int, width: int) -> dict[str, Any]:
    """Around cells, these among them."""
    return {
        "type": "rect",
        "x0": left - 0.5,
        "x1": right + 0.5,
        "y0": top - 0.5,
        "y1": bottom + 0.5,
        "line": {"color": colors.MIRROR, "width": width},
    }


def _outline(row: int, column: int) -> dict[str, Any]:
    return _rectangle(column, column, row, row, 2)


def _frame_of(row: int, n_columns: int) -> dict[str, Any]:
    """The row that is being written."""
    shape = _outline(row, 0)
    return shape | {"x1": n_columns - 0.5, "line": {"color": colors.LIT, "width": 4}}


def _check(weights: Array, axes: MapAxes) -> None:
    expected = (len(axes.rows), len(axes.columns))
    if weights.shape != expected:
        raise ValueError(f"weights has shape {weights.shape}, but the tokens need {expected}.")

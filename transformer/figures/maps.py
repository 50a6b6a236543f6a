"""Attention maps, a row per query and a column per key: one head large, and all heads as tiles."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from operator import and_

import numpy as np

from transformer.figures import colors
from transformer.figures.labels import MapAxes
from transformer.figures.parts import BARE, ZERO_TO_ONE, Part, axis_title, frame, note, titled, weight_bar
from transformer.figures.picture import Array, Picture, escaped
from transformer.insight.names import shortened
from transformer.shared.attention_info import BY_HAND, FUTURE

MAX_WRONG_TOKEN_LETTERS = 7
"""Maximum length of a wrong token beside its row, in letters."""
RIGHT_MARGIN, LEGEND, TOP_MARGIN, TITLES = 46, 44, 44, 36
"""Pixels right of a map for wrong tokens and the legend, above it for the title, below it for axis titles."""
WIDEST = 150
"""Most pixels that an axis label gets."""
BESIDE: Part = {
    "xref": "container",
    "x": 1,
    "xanchor": "right",
    "yref": "container",
    "y": 0.5,
    "len": 0.6,
    "thickness": 8,
    "xpad": 2,
    "title": {"text": ""},
    "tickfont": {"size": 10},
    "tickvals": [math.sqrt(weight) for weight in colors.WEIGHT_TICKS if weight != 0.01],
    "ticktext": [name for weight, name in colors.WEIGHT_TICKS.items() if weight != 0.01],  # too near to 0
}
"""Where the legend of a large map stands: at its right, where it lies on no title."""
_ASIDE = 3 * "\u2002"
"""Spaces beside a special token."""
LEANING = -40
"""Angle of column labels that are too wide to be horizontal, in degrees."""
GAP = 1
"""Cells between two tiles."""
WEIGHT_HOVER = "%{y} · looks at %{x}<br><b>%{z:.0%}</b><extra></extra>"
"""Hover text of a weight, rounded as in the sentences about the map."""


def large_map(
    weights: Array,
    axes: MapAxes,
    *,
    title: str,
    step: int,
    wrong: Mapping[int, str] | None = None,
    lit_row: int | None = None,
    off: bool = False,
) -> Picture:
    """The map of one head in large type, with its legend.

    Args:
        weights: (rows, columns) in [0, 1]; NaN where a mask or an intervention blocks.
        wrong: maps each row that would write a wrong token at this step to that token.
        lit_row: the current row, which gets a frame.
        off: whether the head is switched off.

    Raises:
        ValueError: the shape of the weights does not fit the axes.
    """
    axes.check(weights)
    marks = [""] * len(axes.rows)
    for row, token in (wrong or {}).items():
        marks[row] = f"<b>✗</b> {escaped(shortened(token, MAX_WRONG_TOKEN_LETTERS))}"
    return Picture(
        spec=_large_spec(axes, lit_row, _taken(weights, axes)),
        arrays={"0.z": weights},
        layout={"title.text": title, "yaxis2.ticktext": marks},
        step=step,
        hatched=(_box(0, 0, axes.shape),) if off else (),
    )


@lru_cache(maxsize=64)
def _large_spec(axes: MapAxes, lit_row: int | None, taken: tuple[tuple[int, int], ...]) -> str:
    n_rows, n_columns = axes.shape
    size = 15 if max(axes.shape) <= 14 else 11
    weights = {"type": "heatmap", **ZERO_TO_ONE, "xgap": 1, "ygap": 1, "hoverongaps": False}
    data = [weights | {"hovertemplate": WEIGHT_HOVER, "showscale": False}]
    if axes.causal:
        data.append(_blocked(~np.tri(*axes.shape, dtype=bool), FUTURE))
    if taken:
        by_hand = np.zeros(axes.shape, dtype=bool)
        by_hand[tuple(np.array(taken).T)] = True
        data.append(_blocked(by_hand, BY_HAND))
    data.append(weight_bar(**BESIDE) | {"yaxis": "y2"})
    right = LEGEND + (RIGHT_MARGIN if axes.marked else 4)
    lit = [] if lit_row is None else [frame((lit_row, lit_row), (0, n_columns - 1), colors.HIGHLIGHT, 4)]
    rows = _token_axis([escaped(label) for label in axes.rows], size)
    columns, under = _column_axis(axes.columns, size)
    beside = 16 + min(WIDEST, 8 + max(_length(label, size) for label in axes.rows))
    layout = {
        "title": titled(),
        # Fixed for these tokens: a map never moves while its numbers change.
        "margin": {"l": beside, "r": right, "t": TOP_MARGIN, "b": under + TITLES},
        "xaxis": columns | {"title": axis_title(f"looks at: {axes.column_title}", standoff=4, size=12)},
        "yaxis": rows
        | {
            "ticklabelstandoff": 6,
            "range": [n_rows - 0.5, -0.5],
            "title": axis_title(axes.row_title, standoff=4, size=12),
        },
        # Wrong tokens have their own space: the map does not move when they appear or disappear.
        "yaxis2": BARE
        | {
            "overlaying": "y",
            "side": "right",
            "matches": "y",
            "tickvals": list(range(n_rows)),
            "ticktext": [""] * n_rows,
            "tickfont": {"size": min(size, 13), "color": colors.WRONG},
            "fixedrange": True,
        },
        "shapes": lit,
        "uirevision": json.dumps([axes.rows, axes.columns]),
    }
    return json.dumps({"data": data, "layout": layout})


def _blocked(cells: Array, code: int) -> Part:
    """A trace of the cells, (rows, columns) bool, blocked for one reason, in its colour and with its mark."""
    color, mark, reason = colors.BLOCKED[code]
    return {
        "type": "heatmap",
        "z": [[1 if cell else None for cell in row] for row in cells.tolist()],
        "colorscale": colors.flat(color),
        "showscale": False,
        "hoverongaps": False,
        "xgap": 1,
        "ygap": 1,
        "text": [[mark if cell else "" for cell in row] for row in cells.tolist()],
        "texttemplate": "%{text}",
        "textfont": {"color": colors.MARK, "size": 11},
        "hovertemplate": f"%{{y}} may not look at %{{x}}<br>{reason}<extra></extra>",
    }


def _taken(weights: Array, axes: MapAxes) -> tuple[tuple[int, int], ...]:
    """(row, column) of the cells blocked by hand: blocked, although the causal mask leaves them open."""
    taken = np.isnan(weights)
    if axes.causal:
        taken &= np.tri(*axes.shape, dtype=bool)
    return tuple((row, column) for row, column in np.argwhere(taken).tolist())


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
        weights: for each layer, (H, rows, columns) in [0, 1]; NaN where a mask or an intervention blocks.
        lit: for each layer, whether each head has a target score at or above the threshold; it is outlined.
        chosen: (layer, head) that is shown large.
        off: (layer, head) of each head that is switched off.

    Raises:
        ValueError: the shape of a map does not fit the axes.
    """
    n_layers, n_heads = len(weights), len(weights[0])
    shape = axes.shape
    height, width = tile_place(n_heads - 1, n_layers - 1, shape)
    tiles = np.full((height + shape[0], width + shape[1]), np.nan, dtype=np.float32)
    blocked = tiles.copy()
    future = ~np.tri(*shape, dtype=bool) & axes.causal
    changing: Part = {}
    for layer, heads in enumerate(weights):
        for head, one in enumerate(heads):
            axes.check(one)
            y, x = tile_place(head, layer, shape)
            tiles[y : y + shape[0], x : x + shape[1]] = one
            closed = np.where(future, 0.0, 1.0)
            blocked[y : y + shape[0], x : x + shape[1]] = np.where(np.isnan(one), closed, np.nan)
            width_of_line = 4 if (layer, head) == chosen else 2 if lit[layer][head] else 0
            changing[f"shapes[{head * n_layers + layer}].line.width"] = width_of_line
    return Picture(
        spec=_strip_spec(axes, n_layers, n_heads),
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
    """The rectangle (x0, x1, y0, y1) of a tile in axis coordinates; a large map is the tile (0, 0)."""
    y, x = tile_place(head, layer, shape)
    return x - 0.5, x + shape[1] - 0.5, y - 0.5, y + shape[0] - 0.5


def tile_at(point: tuple[int, int], axes: MapAxes) -> tuple[int, int] | None:
    """The (layer, head) whose tile contains this cell (row, column); None between the tiles."""
    n_rows, n_columns = axes.shape
    head, row = divmod(point[0], n_rows + GAP)
    layer, column = divmod(point[1], n_columns + GAP)
    return (layer, head) if row < n_rows and column < n_columns else None


@lru_cache(maxsize=64)
def _strip_spec(axes: MapAxes, n_layers: int, n_heads: int) -> str:
    """The constant part of the picture of all heads.

    Trace 0 holds the weights, trace 1 the blocked cells (0: in the future, 1: by hand). Each tile is outlined
    by a shape; the shapes of the first head come first.
    """
    n_rows, n_columns = axes.shape
    height, width = tile_place(n_heads - 1, n_layers - 1, axes.shape)
    between = [""] * GAP
    x_names, y_names, shapes, annotations = [], [], [], []
    for layer in range(n_layers):
        x_names += [f"{escaped(token)} (layer {layer + 1})" for token in axes.columns] + between
        middle = tile_place(0, layer, axes.shape)[1] + (n_columns - 1) / 2
        name = f"layer {layer + 1}" if n_layers <= 4 else str(layer + 1)
        annotations.append(note(name, middle, 1.0, "center bottom", size=13, yref="paper"))
    for head in range(n_heads):
        y_names += [f"head {head + 1}, {escaped(label)}" for label in axes.rows] + between
        middle = tile_place(head, 0, axes.shape)[0] + (n_rows - 1) / 2
        name = f"head {head + 1}" if n_heads <= 6 else str(head + 1)
        annotations.append(note(name, 0.0, middle, "right middle", size=13, xref="paper", textangle=-90))
        for layer in range(n_layers):
            y, x = tile_place(head, layer, axes.shape)
            shapes.append(frame((y, y + n_rows - 1), (x, x + n_columns - 1), colors.MIRROR, 0))
    layout = {
        "margin": {"l": 24, "r": 4, "t": 24, "b": 4},
        "xaxis": _hidden(x_names, [-1.0, width + n_columns]),
        "yaxis": _hidden(y_names, [height + n_rows, -1.0]),
        "annotations": annotations,
        "shapes": shapes,
        "uirevision": json.dumps([axes.rows, axes.columns, n_layers, n_heads]),
    }
    cells = {"type": "heatmap", "hoverongaps": False, "showscale": False}
    reasons = {"zmin": 0, "zmax": 1, "colorscale": [[0, colors.CAUSAL], [1, colors.BLOCKED_BY_HAND]]}
    data = [
        cells | ZERO_TO_ONE | {"hovertemplate": WEIGHT_HOVER},
        cells | reasons | {"hovertemplate": "%{y} · may not look at %{x}<extra></extra>"},
    ]
    return json.dumps({"data": data, "layout": layout})


def _hidden(names: Sequence[str], ends: list[float]) -> Part:
    """An axis without labels; the hover text names its tokens."""
    labels = {"tickvals": list(range(len(names))), "ticktext": list(names)}
    return BARE | labels | {"showticklabels": False, "range": ends}


def _column_axis(tokens: Sequence[str], size: int) -> tuple[Part, int]:
    """The column axis: its labels are slanted if words are among them, or adjacent special tokens.

    Returns:
        The axis, and the height of its labels in pixels.
    """
    special = [len(token) > 2 and token.startswith("[") for token in tokens]
    words = any(len(token) > 2 and not one for token, one in zip(tokens, special, strict=True))
    if words or any(map(and_, special, special[1:])):
        size = min(size, 14)
        leaning = _token_axis([escaped(token) for token in tokens], size) | {"tickangle": LEANING}
        longest = min(WIDEST, max(_length(token, size) for token in tokens))
        return leaning, 12 + round(longest * math.sin(math.radians(-LEANING)))
    # A special token may extend beyond its column: spaces move it outwards, away from the letters.
    small, last = "<span style='font-size:0.7em'>{}</span>", len(tokens) - 1
    texts = {0: f"{escaped(tokens[0])}{_ASIDE}", last: f"{_ASIDE}{escaped(tokens[last])}"}
    labelled = zip(map(escaped, tokens), special, strict=True)
    labels = [small.format(texts.get(i, token)) if one else token for i, (token, one) in enumerate(labelled)]
    return _token_axis(labels, size), size + 8


def _length(label: str, size: int) -> int:
    """Estimated width of a label in pixels; Chinese characters are as wide as they are high."""
    return math.ceil(size * sum(0.56 if letter < "\u2e80" else 1.0 for letter in label))


def _token_axis(labels: Sequence[str], size: int) -> Part:
    """An axis of positions, with tokens as labels: each occurrence of a repeated letter has its own place."""
    return BARE | {
        "tickvals": list(range(len(labels))),
        "ticktext": list(labels),
        "tickfont": {"size": size},
        "tickangle": 0,
        "range": [-0.5, len(labels) - 0.5],
        "ticklabeloverflow": "allow",  # otherwise Plotly measures every label at every change
    }

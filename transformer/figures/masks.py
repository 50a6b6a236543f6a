"""Masks beside the weights they produce: causal and padding told apart, blocked cells drawn as blocked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from transformer.figures import colors
from transformer.figures.maps import TITLE, ZERO_TO_ONE, MapAxes, flat_cells
from transformer.figures.picture import Array, Picture

OPEN, FUTURE, PAD, BOTH = range(4)
_LOOK = {
    OPEN: (colors.ALLOWED, "", "may look at"),
    FUTURE: (colors.CAUSAL, "╱", "may not look at (causal: it lies in the future)"),
    PAD: (colors.PADDING, "•", "may not look at (padding: it is no letter)"),
    BOTH: (colors.PADDING, "╱•", "may not look at (causal and padding)"),
}


def mask_picture(
    weights: Array, axes: MapAxes, *, causal: Array, padding: Array, head: str, title: str, step: int
) -> Picture:
    """Four panels: the causal mask, the padding mask, both combined, and the weights behind them.

    Args:
        weights: (rows, columns) of one head, in [0, 1], as the model computed them; NaN where blocked.
        causal: (rows, columns) bool, True where the causal mask allows.
        padding: (rows, columns) bool, True where the padding mask allows.
        head: the name of that head.
    """
    expected = (len(axes.rows), len(axes.columns))
    for name, array in (("weights", weights), ("causal", causal), ("padding", padding)):
        if array.shape != expected:
            raise ValueError(f"{name} has shape {array.shape}, but the tokens need {expected}.")
    taken = np.isnan(weights) & causal & padding  # somebody has blocked these by hand
    spec = _spec(axes, causal.tobytes(), padding.tobytes(), taken.tobytes(), head)
    return Picture(spec=spec, arrays={"0.z": weights}, layout={"title.text": title}, step=step)


@lru_cache(maxsize=64)
def _spec(axes: MapAxes, causal_bytes: bytes, padding_bytes: bytes, taken_bytes: bytes, head: str) -> str:
    shape = (len(axes.rows), len(axes.columns))
    future = ~np.frombuffer(causal_bytes, dtype=bool).reshape(shape) * FUTURE
    pad = ~np.frombuffer(padding_bytes, dtype=bool).reshape(shape) * PAD
    both = future + pad
    data: list[dict[str, Any]] = [
        {
            "type": "heatmap",
            **ZERO_TO_ONE,
            "xaxis": "x4",
            "yaxis": "y4",
            "xgap": 1,
            "ygap": 1,
            "hoverongaps": False,
            "hovertemplate": "%{y} · looks at %{x}<br><b>%{z:.1%}</b><extra></extra>",
            "colorbar": {"thickness": 10, "tickvals": [0, 0.5, 1], "tickformat": ".0%", "outlinewidth": 0},
        }
    ]
    for panel, kinds in (("", future), ("2", pad), ("3", both)):
        data += _cells(kinds, panel, (OPEN, FUTURE, PAD, BOTH))
    data += _cells(both, "4", (FUTURE, PAD, BOTH))
    taken = np.frombuffer(taken_bytes, dtype=bool).reshape(shape)
    if taken.any():
        trace = flat_cells(taken, colors.TAKEN, "✕", "%{y}<br>may not look at (blocked by hand) %{x}")
        data.append(trace | {"xaxis": "x4", "yaxis": "y4"})
    names = ["causal mask", "padding mask", "both combined", f"weights: <b>{head}</b>"]
    if not future.any():
        names[0] += ": none here"
    if not pad.any():
        names[1] += ": nothing to hide"
    layout: dict[str, Any] = {
        "title": TITLE | {"text": ""},
        "margin": {"l": 4, "r": 0, "t": 54, "b": 4},
        "annotations": [_heading(name, i) for i, name in enumerate(names)],
        "uirevision": json.dumps([axes.rows, axes.columns]),
    }
    for i, panel in enumerate(("", "2", "3", "4")):
        left, right = _domain(i)
        common = {"showgrid": False, "showline": False, "zeroline": False, "ticks": "", "tickangle": 0}
        layout[f"xaxis{panel}"] = common | {
            "domain": [left, right],
            "anchor": f"y{panel}",
            "tickvals": list(range(shape[1])),
            "ticktext": _narrow(axes.columns),
            "range": [-0.5, shape[1] - 0.5],
            "tickfont": {"size": 13},
            "automargin": True,
        }
        layout[f"yaxis{panel}"] = common | {
            "anchor": f"x{panel}",
            "tickvals": list(range(shape[0])),
            "ticktext": list(axes.rows),
            "range": [shape[0] - 0.5, -0.5],
            "tickfont": {"size": 13},
            "showticklabels": i == 0,
            "automargin": True,
        }
    layout["xaxis"]["title"] = {"text": axes.column_title, "font": {"size": 12}, "standoff": 10}
    layout["yaxis"]["title"] = {"text": axes.row_title, "font": {"size": 12}, "standoff": 10}
    return json.dumps({"data": data, "layout": layout})


def _domain(panel: int) -> tuple[float, float]:
    return panel * 0.255, panel * 0.255 + 0.235


def _narrow(tokens: Sequence[str]) -> list[str]:
    """Special tokens are wider than their column: every second of them stands one line lower."""
    special = [i for i, token in enumerate(tokens) if len(token) > 3]
    lines = {i: n % 3 + 1 for n, i in enumerate(special)}
    return ["<br>" * lines.get(i, 0) + token for i, token in enumerate(tokens)]


def _cells(kinds: Array, panel: str, shown: Sequence[int]) -> list[dict[str, Any]]:
    """One flat trace for each kind of cell that a panel has."""
    traces = []
    for kind in shown:
        cells = kinds == kind
        if not cells.any():
            continue
        color, mark, why = _LOOK[kind]
        trace = flat_cells(cells, color, mark, f"%{{y}}<br>{why} %{{x}}")
        traces.append(trace | {"xaxis": f"x{panel}", "yaxis": f"y{panel}"})
    return traces


def _heading(text: str, panel: int) -> dict[str, Any]:
    return {
        "text": text,
        "xref": "paper",
        "yref": "paper",
        "x": _domain(panel)[0],
        "y": 1.0,
        "xanchor": "left",
        "yanchor": "bottom",
        "yshift": 4,
        "showarrow": False,
        "font": {"size": 14},
    }

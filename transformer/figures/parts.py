"""Parts shared by several pictures, as Plotly dictionaries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from transformer.figures import colors

Part = dict[str, Any]

BARE: Part = {"showgrid": False, "showline": False, "zeroline": False, "ticks": ""}
"""An axis without lines and ticks of its own."""
PAPER: Part = {"xref": "paper", "yref": "paper"}
"""Coordinates as shares of the plot area instead of axis values."""
ZERO_TO_ONE: Part = {"zmin": 0.0, "zmax": 1.0, "colorscale": colors.WEIGHTS}


def titled(text: str = "", *, size: int = 16, pad: int = 18) -> Part:
    """The title of a picture, in its upper left corner."""
    corner = {"x": 0.01, "xanchor": "left", "y": 1, "yanchor": "top"}
    return {"text": text, **corner, "pad": {"t": pad}, "font": {"size": size}}


def axis_title(text: str, *, standoff: int, size: int = 13) -> Part:
    """The title of an axis."""
    return {"text": text, "font": {"size": size}, "standoff": standoff}


def note(text: str, x: float | None, y: float | None, anchor: str, *, size: int = 12, **more: Any) -> Part:
    """An annotation without an arrow.

    Args:
        anchor: the sides of the text that are placed at x and y, such as "left bottom".
    """
    across, down = anchor.split()
    place = {"x": x, "y": y, "xanchor": across, "yanchor": down}
    return {"text": text, **place, "showarrow": False, "font": {"size": size}, **more}


def line(start: tuple[float, float], end: tuple[float, float], look: Part, **more: Any) -> Part:
    """A straight line from one (x, y) to another."""
    (x0, y0), (x1, y1) = start, end
    return {"type": "line", "x0": x0, "y0": y0, "x1": x1, "y1": y1, "line": look, **more}


def frame(rows: tuple[int, int], columns: tuple[int, int], color: str, width: int, **more: Any) -> Part:
    """A rectangle around cells; `rows` and `columns` are (first, last), both inclusive."""
    across = {"x0": columns[0] - 0.5, "x1": columns[1] + 0.5}
    down = {"y0": rows[0] - 0.5, "y1": rows[1] + 0.5}
    return {"type": "rect", **across, **down, "line": {"color": color, "width": width}, **more}


def texts(x: Sequence[float], y: Sequence[float], shown: Sequence[str], size: float, **more: Any) -> Part:
    """A text at each point, by default with a marker for hover."""
    points = {"x": list(x), "y": list(y), "text": list(shown)}
    font = {"textfont": {"size": size}, "cliponaxis": False}
    return {"type": "scatter", "mode": "markers+text", **points, **font, **more}


def share_bar(name: str) -> Part:
    """The legend of colours from 0 to 100%; by default with the ticks of a linear scale."""
    return {
        "title": {"text": name, "side": "top", "font": {"size": 12}},
        "thickness": 10,
        "tickvals": [0, 0.5, 1],
        "tickformat": ".0%",
        "tickfont": {"size": 12},
        "outlinewidth": 0,
        "xpad": 4,
    }


def weight_bar(**place: Any) -> Part:
    """The colour bar of weights, as an empty trace: a heatmap's own bar is linear in the weights, and leaves
    no room for small ones.

    Args:
        place: properties that override those of `share_bar`.
    """
    ticks = {
        "tickvals": [math.sqrt(weight) for weight in colors.WEIGHT_TICKS],
        "ticktext": list(colors.WEIGHT_TICKS.values()),
    }
    return {
        "type": "scatter",
        "x": [None],
        "y": [None],
        "mode": "markers",
        "hoverinfo": "skip",
        "showlegend": False,
        "marker": {
            "color": [0],
            "cmin": 0,
            "cmax": 1,
            "colorscale": [[i / (len(colors.VIRIDIS) - 1), color] for i, color in enumerate(colors.VIRIDIS)],
            "showscale": True,
            "colorbar": share_bar("weight") | ticks | place,
        },
    }

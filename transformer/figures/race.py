"""Runs beside each other: the colours of the difference of two maps, and the curves of all runs."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

from transformer.figures import colors
from transformer.figures.curves import AXIS, curve, panel_name

_STOPS = 12
"""Stops of the scale on each side of zero, which has one more."""
_TICKS = (-1.0, -0.25, 0.0, 0.25, 1.0)
_BETWEEN = 0.1
"""Share of the width that lies between both panels of the curves."""


def race_look() -> dict[str, Any]:
    """The scale of right minus left, from -1 to 1, and its legend.

    Colours follow the square root of the difference, as for weights: blue where the left run has more weight,
    orange where the right run has more.
    """
    ticks = [((1 + math.copysign(math.sqrt(abs(tick)), tick)) / 2, tick) for tick in _TICKS]
    return {
        "scale": _by_root(),
        "legend": {
            "stops": colors.two_sided(colors.LEFT, colors.RIGHT_RUN),
            "ticks": [(at, f"{100 * tick:+.0f}%".replace("-", "−") if tick else "0") for at, tick in ticks],
        },
    }


def _by_root() -> colors.Stops:
    left, right = (colors.by_root((colors.NEUTRAL, end), _STOPS) for end in (colors.LEFT, colors.RIGHT_RUN))
    return [((1 - at) / 2, color) for at, color in left[:0:-1]] + [
        ((1 + at) / 2, color) for at, color in right
    ]


@cache
def race_curves(examples: str | None, names: tuple[str, ...]) -> str:
    """The figure of the curves of several runs, without data: two panels beside each other.

    Of two runs the left panel is the training loss, of more the score of the clearest head; the right one is
    accuracy, hidden if only losses are known. Traces 2i and 2i + 1 are the left and the right panel of run i.
    The player sets the ranges of steps and losses.

    Args:
        examples: the plural noun for the examples of the task; None if only losses are known.
        names: of the runs; two are called left and right instead.
    """
    many = len(names) > 2
    sides = ((colors.LEFT, "left"), (colors.RIGHT_RUN, "right"))
    looks = [(colors.LEFT, name) for name in names] if many else sides
    data = []
    for color, name in looks:
        of_left = f"{name}: %{{y:{'.1%' if many else '.3f'}}}<extra></extra>"
        of_share = f"{name}: %{{y:.1%}}<extra></extra>"
        drawn = {"color": color, "width": 1.5 if many else 2}
        faint = {"opacity": 0.6} if many else {}
        data.append(curve(name, drawn, of_left, **faint))
        shares = {"xaxis": "x2", "yaxis": "y3", "showlegend": False, "marker": {"size": 4 if many else 6}}
        data.append(curve(name, drawn, of_share, **shares, **faint) | {"mode": "lines+markers"})
    axis = AXIS | {"title": {"text": "step", "standoff": 2, "font": {"size": 12}}}
    share_axis = AXIS | {"range": [-0.02, 1.04], "tickformat": ".0%", "tickvals": [0, 0.5, 1]}
    title = "clearest head" if many else "training loss"
    place = (0.05, 0.5 - _BETWEEN / 2, "right bottom") if many else (1.0, 0.5 - _BETWEEN / 2)
    layout = {
        "margin": {"l": 40 if many else 34, "r": 14, "t": 6, "b": 32},
        "hovermode": "closest" if many else "x",
        "showlegend": False,
        "xaxis": axis | {"domain": [0, 0.5 - _BETWEEN / 2]},
        "xaxis2": axis | {"domain": [0.5 + _BETWEEN / 2, 1], "anchor": "y3"},
        "yaxis": share_axis if many else dict(AXIS),
        "yaxis3": share_axis | {"anchor": "x2"},
        "annotations": [
            panel_name(title, *place),
            panel_name(f"test {examples} right", 0.05, 1.0, "right bottom"),
        ],
    }
    if examples is None:
        off = {"visible": False}
        layout |= {"xaxis": axis | {"domain": [0, 1]}, "annotations": [panel_name("training loss", 1.0, 1.0)]}
        layout |= {"xaxis2": off | {"domain": [0.99, 1], "anchor": "y3"}, "yaxis3": off | {"anchor": "x2"}}
    return json.dumps({"data": data, "layout": layout})

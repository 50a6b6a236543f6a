"""The curves of a run: loss above, accuracy below, training and held-out apart, the run before as a ghost."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from transformer.figures import colors
from transformer.figures.picture import Array, Picture

MAX_POINTS = 500


@dataclass(frozen=True)
class Series:
    """The numbers of one run, one entry a step; NaN where a step has none."""

    steps: Array
    loss: Array
    held_out_loss: Array
    token_accuracy: Array
    exact: Array


def thinned(steps: Array, values: Array, most: int = MAX_POINTS) -> tuple[Array, Array]:
    """At most about `most` points: each the mean of a few neighbouring steps, at the last of them."""
    n = -(-len(steps) // most)  # steps in one point, rounded up
    if n <= 1:
        return steps, values
    whole = len(steps) // n * n
    x, y = steps[:whole].reshape(-1, n)[:, -1], values[:whole].reshape(-1, n).mean(axis=1)
    if whole < len(steps):
        x, y = np.append(x, steps[-1]), np.append(y, values[whole:].mean())
    return x, y


def curves(run: Series, *, planned: int, highest_loss: float, run_id: str, ghost: Series | None) -> Picture:
    """Loss and accuracy against the step.

    Args:
        planned: the last step of the plan; the axis ends there.
        highest_loss: top of the loss axis: a guess without knowledge costs log(vocabulary).
        run_id: a zoom is kept as long as this stays the same.
        ghost: the run before, drawn grey behind this one.
    """
    arrays: dict[str, Array] = {}
    for first, series in ((0, ghost), (2, run)):
        if series is None:
            empty = np.full(1, np.nan)
            arrays |= {
                f"{first}.x": empty,
                f"{first}.y": empty,
                f"{first + 1}.x": empty,
                f"{first + 1}.y": empty,
            }
            continue
        arrays[f"{first}.x"], arrays[f"{first}.y"] = thinned(series.steps, series.loss)
        known = ~np.isnan(series.exact)
        arrays[f"{first + 1}.x"], arrays[f"{first + 1}.y"] = series.steps[known], series.exact[known]
    known = ~np.isnan(run.held_out_loss)
    arrays["4.x"], arrays["4.y"] = run.steps[known], run.held_out_loss[known]
    arrays["5.x"], arrays["5.y"] = thinned(run.steps, run.token_accuracy)
    for name in list(arrays):
        if not len(arrays[name]):
            arrays[name] = np.full(1, np.nan)
    step = int(run.steps[-1]) if len(run.steps) else 0
    return Picture(spec=_spec(planned, highest_loss, run_id), arrays=arrays, step=step)


@lru_cache(maxsize=64)
def _spec(planned: int, highest_loss: float, run_id: str) -> str:
    def line(name: str, axis: str, color: str, *, legend: bool = True, **style: object) -> dict[str, object]:
        unit = "%{y:.1%}" if axis == "y2" else "%{y:.3f}"
        return {
            "type": "scatter",
            "mode": style.pop("mode", "lines"),
            "name": name,
            "yaxis": axis,
            "line": {"color": color, **style},
            "marker": {"color": color, "size": 7},
            "showlegend": legend,
            "hovertemplate": f"{name}: {unit}<extra></extra>",
        }

    data = [
        line("previous run: training loss", "y", colors.GHOST, legend=False, width=1.5, dash="dot"),
        line("previous run: words right", "y2", colors.GHOST, legend=False, width=1.5, dash="dot"),
        line("training", "y", colors.TRAIN, width=1.5),
        line("words right (held-out)", "y2", colors.HELD_OUT, legend=False, width=3, mode="lines+markers"),
        line("held-out words", "y", colors.HELD_OUT, width=3, mode="lines+markers"),
        line("letters right (training)", "y2", colors.TRAIN, legend=False, width=1.5),
    ]
    axis = {"zeroline": False, "fixedrange": False, "tickfont": {"size": 12}}
    layout = {
        "margin": {"l": 40, "r": 6, "t": 24, "b": 34},
        "hovermode": "x",
        "legend": {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "font": {"size": 12}},
        "xaxis": {**axis, "range": [0, planned], "title": {"text": "step", "standoff": 4}, "anchor": "y2"},
        "yaxis": {
            **axis,
            "range": [0, highest_loss],
            "domain": [0.54, 1.0],
        },
        "yaxis2": {
            **axis,
            "range": [-0.02, 1.04],
            "domain": [0.0, 0.46],
            "tickformat": ".0%",
            "tickvals": [0, 0.5, 1],
        },
        "annotations": [_panel_name("loss", 1.0), _panel_name("share right", 0.46)],
        "uirevision": run_id,
    }
    return json.dumps({"data": data, "layout": layout})


def _panel_name(text: str, top: float) -> dict[str, object]:
    """What a panel shows, inside its upper right corner, where no curve begins or ends."""
    return {
        "text": text,
        "xref": "paper",
        "yref": "paper",
        "x": 1.0,
        "y": top,
        "xanchor": "right",
        "yanchor": "top",
        "showarrow": False,
        "font": {"size": 12},
    }

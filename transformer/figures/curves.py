"""The curves of a run: loss above, accuracy below, with the run before as a ghost; or any numbers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from transformer.figures import colors
from transformer.figures.parts import PAPER, Part, line, note
from transformer.figures.picture import Array, Picture

MAX_POINTS = 500
MAX_MARKERS = 60
"""Maximum number of points of a curve that are marked: each marker is an element of the page, and more would
overlap."""
AXIS: Part = {"zeroline": False, "tickfont": {"size": 12}}


@dataclass(frozen=True)
class Series:
    """The numbers of one run, (N,) each, one entry a step; NaN where a step has none."""

    steps: Array
    loss: Array
    held_out_loss: Array
    token_accuracy: Array
    exact: Array
    free_loss: Array


def thinned(steps: Array, *curves: Array, most: int = MAX_POINTS) -> tuple[Array, ...]:
    """At most `most` points: each the mean of a few neighbouring steps, at the last of them.

    Returns:
        The steps of the points, then the values of each curve.
    """
    n = -(-len(steps) // most)  # steps in one point, rounded up
    if n <= 1:
        return steps, *curves
    whole = len(steps) // n * n
    points = [steps[n - 1 : whole : n], *(values[:whole].reshape(-1, n).mean(axis=1) for values in curves)]
    if whole < len(steps):
        ends = (steps[-1], *(values[whole:].mean() for values in curves))
        points = [np.append(each, end) for each, end in zip(points, ends, strict=True)]
    return tuple(points)


def _measured(steps: Array, *curves: Array) -> list[tuple[Array, Array]]:
    """Each curve where it has a value; the steps are one array where they are the same."""
    has_value = [~np.isnan(values) for values in curves]
    first = steps[has_value[0]]
    return [
        (first if np.array_equal(here, has_value[0]) else steps[here], values[here])
        for here, values in zip(has_value, curves, strict=True)
    ]


def arrays_of(lines: Iterable[tuple[Array, Array]]) -> dict[str, Array]:
    """x and y of each trace in turn, for `Picture.arrays`; a single NaN where a line has no point."""
    nothing, arrays = np.full(1, np.nan), {}
    for trace, (x, y) in enumerate(lines):
        arrays[f"{trace}.x"], arrays[f"{trace}.y"] = (x, y) if len(x) else (nothing, nothing)
    return arrays


def highest_loss(n_tokens: int, *losses: Array) -> float:
    """Top of a loss axis: about 0.5 above log(n_tokens), the loss of a uniform guess.

    Args:
        n_tokens: size of the vocabulary.
        losses: losses that must fit too, as a confident wrong answer costs more than a guess; NaN is ignored.
            If they do not fit, the top is the lowest even number at which they do.
    """
    top = round(float(np.log(n_tokens)) + 0.5, 1)
    highest = max((float(np.nanmax(loss)) for loss in losses if not np.isnan(loss).all()), default=0.0)
    return top if highest <= top else 2.0 * float(np.ceil(highest / 2.0))


MARKER: Part = line(
    (0, 0), (0, 1), {"color": colors.MARKER, "width": 2, "dash": "dot"}, yref="paper", visible=False
)
"""A vertical line through all panels at the step that is looked at: the first shape of its picture."""


def marker_at(step: int | None) -> Part:
    """Changes for `Picture.layout` that move the marker to a step, or hide it."""
    return {"shapes[0].visible": step is not None, "shapes[0].x0": step or 0, "shapes[0].x1": step or 0}


def curve(name: str, look: Part, hover: str | None, **more: Any) -> Part:
    """A line of numbers against the step."""
    return {"type": "scatter", "mode": "lines", "name": name, "line": look, "hovertemplate": hover, **more}


def step_axis(planned: int) -> Part:
    """The axis that all panels share, below the lowest."""
    title = {"text": "step", "standoff": 4}
    return AXIS | {"range": [0, planned], "title": title, "anchor": "y2"}


def panel_name(text: str, top: float, x: float = 1.0, anchor: str = "right top", size: int = 12) -> Part:
    """The name of a panel; by default inside its upper right corner."""
    beside = (
        {"xshift": -8} if anchor.startswith("right") else {}
    )  # the marker of the newest step is at the edge
    return note(text, x, top, anchor, size=size, **PAPER, **beside)


def curves(
    run: Series,
    *,
    planned: int,
    highest_loss: float,
    run_id: str,
    marker: int | None = None,
    called: tuple[str, str] = ("letters", "words"),
) -> Picture:
    """Loss and accuracy against the step; a player draws the run before behind them (`ghost`).

    Args:
        planned: the last step on the axis.
        highest_loss: top of the loss axis, as the function `highest_loss` returns it.
        run_id: a zoom is kept as long as this stays the same.
        marker: the step that is looked at; None hides the marker.
        called: the plural nouns for parts of an answer and for examples, such as letters and words.
    """
    nothing = np.empty(0)
    steps, loss, accuracy = thinned(run.steps, run.loss, run.token_accuracy)
    exact, held_out, free = _measured(run.steps, run.exact, run.held_out_loss, run.free_loss)
    of_run = (steps, loss), exact, held_out, (steps, accuracy), free
    step = int(run.steps[-1]) if len(run.steps) else 0
    return Picture(
        spec=_spec(planned, highest_loss, run_id, called),
        arrays=arrays_of([(nothing, nothing), (nothing, nothing), *of_run]),
        layout=marker_at(marker),
        step=step,
    )


def ghost(run: Series) -> dict[str, Array]:
    """The arrays that show a run in grey behind the curves of another: of traces 0 and 1 of `curves`."""
    steps, loss = thinned(run.steps, run.loss)
    return arrays_of([(steps, loss), *_measured(run.steps, run.exact)])


def number_curves(
    steps: Array, numbers: Mapping[str, Array], *, run_id: str, marker: int | None = None
) -> Picture:
    """Any numbers against the step, each in a panel of its own.

    Args:
        steps: (N,), ascending.
        numbers: (N,) values by name, of at least one name; NaN where a step has none.
        run_id: a zoom is kept as long as this stays the same.
        marker: the step that is looked at; None hides the marker.
    """
    lines = [thinned(x, y) for number in numbers.values() for x, y in _measured(steps, number)]
    return Picture(
        spec=_number_spec(tuple(numbers), run_id),
        arrays=arrays_of((x, y) for x, y in lines),
        layout=marker_at(marker),
        step=int(steps[-1]) if len(steps) else 0,
    )


@lru_cache(maxsize=64)
def _number_spec(names: tuple[str, ...], run_id: str) -> str:
    height, gap = 1 / len(names), 0.08
    data, axes, panels = [], {}, []
    for i, name in enumerate(names):
        top, axis = 1 - i * height, "y" if i == 0 else f"y{i + 2}"
        hover = f"{name}: %{{y:.4g}}<extra></extra>"
        data.append(curve(name, {"color": colors.TRAIN, "width": 1.5}, hover, yaxis=axis))
        axes[f"yaxis{axis[1:]}"] = AXIS | {"domain": [top - height + (gap if i < len(names) - 1 else 0), top]}
        panels.append(panel_name(name, top, anchor="right bottom"))
    bottom = {"anchor": f"y{len(names) + 1}" if len(names) > 1 else "y"}
    layout: Part = {
        "margin": {"l": 48, "r": 6, "t": 20, "b": 34},
        "hovermode": "x",
        "showlegend": False,
        "xaxis": AXIS | {"title": {"text": "step", "standoff": 4}, "rangemode": "tozero"} | bottom,
        **axes,
        "annotations": panels,
        "shapes": [MARKER],
        "uirevision": run_id,
    }
    return json.dumps({"data": data, "layout": layout})


@lru_cache(maxsize=64)
def _spec(planned: int, highest_loss: float, run_id: str, called: tuple[str, str]) -> str:
    parts, examples = called
    marked = {"mode": "lines+markers"}
    data = [
        _curve("previous run: training loss", "y", colors.GHOST, 1.5, dash="dot"),
        _curve(f"previous run: {examples} right", "y2", colors.GHOST, 1.5, dash="dot"),
        _curve("training", "y", colors.TRAIN, 1.5, legend="training"),
        _curve(f"test {examples} right", "y2", colors.HELD_OUT, 3) | marked,
        _curve(
            f"test {examples}, given the right answer so far",
            "y",
            colors.HELD_OUT,
            3,
            legend="test (given right answer)",
        )
        | marked,
        _curve(f"{parts} right (training)", "y2", colors.TRAIN, 1.5),
        _curve(
            f"test {examples}, reading its own {parts}",
            "y",
            colors.FREE,
            2,
            dash="dash",
            legend="test (on its own)",
        ),
    ]
    # The legend of the lower panel, which tells two shares apart: of single parts, and of whole examples.
    shares = (
        f"<span style='color:{colors.TRAIN}'><b>training {parts}</b></span>, "
        f"<span style='color:{colors.HELD_OUT}'><b>test {examples}</b></span> right"
    )
    layout: Part = {
        "margin": {"l": 40, "r": 6, "t": 24, "b": 34},
        "hovermode": "x",
        "legend": {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "font": {"size": 11}},
        "xaxis": step_axis(planned),
        "yaxis": AXIS | {"range": [0, highest_loss], "domain": [0.57, 1.0]},
        "yaxis2": AXIS
        | {
            "range": [-0.02, 1.04],
            "domain": [0.0, 0.43],
            "tickformat": ".0%",
            "tickvals": [0, 0.5, 1],
        },
        "annotations": [
            panel_name("loss: how wrong it is", 1.0),
            panel_name(shares, 0.5, 1.0, "right middle"),  # long names end in the margin of the axis
        ],
        "shapes": [MARKER],
        "uirevision": run_id,
    }
    return json.dumps({"data": data, "layout": layout})


def _curve(name: str, axis: str, color: str, width: float, *, dash: str = "solid", legend: str = "") -> Part:
    """A curve of the loss or of a share; `legend` is its name in the legend, empty if it is not there."""
    unit = "%{y:.1%}" if axis == "y2" else "%{y:.3f}"
    look = {"color": color, "width": width, "dash": dash}
    hover = f"{name}: {unit}<extra></extra>"
    points = {"size": 7, "maxdisplayed": MAX_MARKERS}
    return curve(legend or name, look, hover, yaxis=axis, showlegend=bool(legend), marker=points)

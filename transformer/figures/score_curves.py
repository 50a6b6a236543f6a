"""How the heads of a run came to do one thing: a score of every head over training, above the loss."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from transformer.figures import colors
from transformer.figures.curves import marker_at, marker_line, panel_name, thinned
from transformer.figures.picture import Array, Picture

LINE_OF_TEXT = 0.13
"""Height of a line of text on the axis of the scores, where the picture is low."""
SPLIT = (0.36, 0.44)
"""Where the panel of the loss ends and that of the scores begins."""


def score_curves(
    steps: Array,
    scores: Mapping[str, Array],
    loss_steps: Array,
    loss: Array,
    *,
    score_name: str,
    threshold: float,
    planned: int,
    highest_loss: float,
    run_id: str,
    marker: int | None = None,
) -> Picture:
    """The score of each head against the step; those that end highest are coloured and named.

    Args:
        steps: (N,) at which the scores were taken.
        scores: name of a head to its (N,) scores in [0, 1]; NaN where there is none.
        loss_steps: (M,), as long as loss.
        loss: (M,) of the training.
        threshold: from this score on, a head does what the score measures.
        planned: the last step of the plan; both axes end there.
        highest_loss: top of the loss axis.
        run_id: a zoom is kept as long as this stays the same.
        marker: the step that is looked at.
    """
    names = tuple(scores)
    n_named = min(len(colors.NAMED), len(names))
    last = {name: _last(scores[name]) for name in names}
    best = sorted(names, key=lambda name: -last[name])[:n_named]  # among equals the first
    nothing = np.full(1, np.nan)
    x = steps if len(steps) else nothing
    arrays: dict[str, Array] = {}
    for trace, name in enumerate((*names, *best)):
        arrays[f"{trace}.x"] = x
        arrays[f"{trace}.y"] = scores[name] if len(steps) else nothing
    trace = len(names) + n_named
    thin_x, thin_y = thinned(loss_steps, loss)
    arrays[f"{trace}.x"], arrays[f"{trace}.y"] = (thin_x, thin_y) if len(thin_x) else (nothing, nothing)
    layout = marker_at(marker)
    texts = [name.replace(" · ", "<br>") for name in best]
    heights = [text.count("<br>") + 1 for text in texts]
    for i, y in enumerate(_apart([max(0.0, last[name]) for name in best], heights)):
        layout[f"annotations[{i}].text"] = texts[i] if last[best[i]] >= 0 else ""
        layout[f"annotations[{i}].y"] = y
    newest = max((int(each[-1]) for each in (steps, loss_steps) if len(each)), default=0)
    return Picture(
        spec=_spec(names, score_name, threshold, planned, highest_loss, run_id),
        arrays=arrays,
        layout=layout,
        step=newest,
    )


def _last(values: Array) -> float:
    """The last score that there is, or -1."""
    known = values[~np.isnan(values)]
    return float(known[-1]) if len(known) else -1.0


def _apart(heights: list[float], n_lines: list[int]) -> list[float]:
    """Where the names stand: each at its line's end, highest first, moved down as far as the one above needs.

    What would then stand below the panel pushes the ones above it up again.
    """
    half = [LINE_OF_TEXT * n / 2 for n in n_lines]
    placed: list[float] = []
    for i, height in enumerate(heights):
        top = 1.04 if i == 0 else placed[-1] - half[i - 1]
        placed.append(min(height, top - half[i]))
    floor = -0.04
    for i in reversed(range(len(placed))):
        placed[i] = max(placed[i], floor + half[i])
        floor = placed[i] + half[i]
    return placed


@lru_cache(maxsize=64)
def _spec(
    names: tuple[str, ...],
    score_name: str,
    threshold: float,
    planned: int,
    highest_loss: float,
    run_id: str,
) -> str:
    def line(name: str, color: str, width: float, unit: str, **more: Any) -> dict[str, Any]:
        return {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "line": {"color": color, "width": width},
            "hovertemplate": f"step %{{x:,}} · {name}: {unit}<extra></extra>",
        } | more

    data = [line(name, colors.GHOST, 1, "%{y:.2f}", opacity=0.6) for name in names]
    # Drawn upon the thin line of its head, which answers the pointer.
    data += [
        line("", color, 3, "", hoverinfo="skip", hovertemplate=None) for color in colors.NAMED[: len(names)]
    ]
    data.append(line("training loss", colors.TRAIN, 1.5, "%{y:.3f}", yaxis="y2"))
    widest = max((len(part) for name in names for part in name.split(" · ")), default=0)
    axis = {"zeroline": False, "tickfont": {"size": 12}}
    layout = {
        "margin": {"l": 40, "r": 12 + 8 * widest, "t": 26, "b": 34},
        "hovermode": "closest",
        "hoverdistance": 40,
        "showlegend": False,
        "xaxis": axis | {"range": [0, planned], "title": {"text": "step", "standoff": 4}, "anchor": "y2"},
        "yaxis": axis | {"range": [-0.04, 1.04], "domain": [SPLIT[1], 1.0], "tickvals": [0, 0.5, 1]},
        "yaxis2": axis | {"range": [0, highest_loss], "domain": [0.0, SPLIT[0]]},
        "annotations": [
            *(
                {"text": "", "y": 0, **_AT_THE_END, "font": {"size": 13, "color": c}}
                for c in colors.NAMED[: len(names)]
            ),
            panel_name("training loss", SPLIT[0]),
            panel_name(score_name, 1.0)
            | {"x": 0.0, "xanchor": "left", "yanchor": "bottom", "font": {"size": 14}},
            {
                "text": f"threshold {threshold:g}",
                "xref": "paper",
                "x": 0.01,
                "y": threshold,
                "xanchor": "left",
                "yanchor": "bottom",
                "showarrow": False,
                "font": {"size": 12},
            },
        ],
        "shapes": [
            marker_line(),
            {
                "type": "line",
                "xref": "paper",
                "x0": 0,
                "x1": 1,
                "y0": threshold,
                "y1": threshold,
                "layer": "below",
                "line": {"color": colors.MARKER, "width": 2, "dash": "dash"},
            },
        ],
        "uirevision": run_id,
    }
    return json.dumps({"data": data, "layout": layout})


_AT_THE_END = {
    "xref": "paper",
    "x": 1.0,
    "xanchor": "left",
    "yanchor": "middle",
    "align": "left",
    "showarrow": False,
}

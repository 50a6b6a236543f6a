"""One score of every head during training, above the loss."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from transformer.figures import colors
from transformer.figures.curves import (
    AXIS,
    MARKER,
    arrays_of,
    curve,
    marker_at,
    panel_name,
    step_axis,
    thinned,
)
from transformer.figures.parts import line, note
from transformer.figures.picture import Array, Picture
from transformer.insight.scores import THRESHOLD

LINE_OF_TEXT = 0.13
"""Height of a line of text in a low picture, as a share of the score axis."""
MARGIN = 0.04
"""Room above and below the scores, as a share of their range."""
SPLIT = (0.36, 0.44)
"""Where the panel of the loss ends and that of the scores begins."""


def score_curves(
    steps: Array,
    scores: Mapping[str, Array],
    loss_steps: Array,
    loss: Array,
    *,
    score_name: str,
    planned: int,
    highest_loss: float,
    run_id: str,
    marker: int | None = None,
    shares: bool = True,
) -> Picture:
    """The score of each head against the step; the few that end farthest from 0 are coloured and named.

    Args:
        steps: (N,) steps at which the scores were measured.
        scores: the (N,) scores of each head, by its name; NaN where there is none.
        loss_steps: (M,) steps of the losses.
        loss: (M,) training losses.
        planned: the last step on the axis.
        highest_loss: top of the loss axis.
        run_id: a zoom is kept as long as this stays the same.
        marker: the step to mark; None hides the marker.
        shares: whether scores are shares from 0 to 1, and clear from the threshold on; else any numbers.
    """
    names = tuple(scores)
    last = {name: _last(scores[name]) for name in names}
    low, high = (0.0, 1.0) if shares else _range(list(scores.values()))
    ranked = sorted(names, key=lambda name: -abs(last[name] or 0.0))  # of equals, the first
    best = ranked[: len(colors.NAMED)]
    best = sorted(best, key=lambda name: -(last[name] or 0.0))
    lines = [(steps, scores[name]) for name in (*names, *best)]
    thin_steps, thin_loss = thinned(loss_steps, loss)
    layout = marker_at(marker)
    texts = [name.replace(" · ", "<br>") for name in best]
    n_lines = [text.count("<br>") + 1 for text in texts]
    heights = [((last[name] or 0.0) - low) / (high - low) for name in best]
    for i, height in enumerate(_apart(heights, n_lines)):
        layout[f"annotations[{i}].text"] = "" if last[best[i]] is None else texts[i]
        layout[f"annotations[{i}].y"] = low + height * (high - low)
    margin = MARGIN * (high - low)
    layout["yaxis.range"] = [low - margin, high + margin]
    newest = max((int(each[-1]) for each in (steps, loss_steps) if len(each)), default=0)
    return Picture(
        spec=_spec(names, score_name, planned, highest_loss, run_id, shares),
        arrays=arrays_of([*lines, (thin_steps, thin_loss)]),
        layout=layout,
        step=newest,
    )


def _last(values: Array) -> float | None:
    """The last score that is not NaN; None if there is none."""
    measured = values[~np.isnan(values)]
    return float(measured[-1]) if len(measured) else None


def _range(lines: list[Array]) -> tuple[float, float]:
    """The lowest and the highest of all numbers and 0; (0, 1) if these are equal."""
    all_values = np.concatenate([*lines, np.zeros(1)])
    low, high = float(np.nanmin(all_values)), float(np.nanmax(all_values))
    return (low, high) if high > low else (0.0, 1.0)


def _apart(heights: list[float], n_lines: list[int]) -> list[float]:
    """Heights of the names, highest first: as near to the ends of the curves as fits without overlap."""
    half = np.array([LINE_OF_TEXT * n / 2 for n in n_lines])
    below = np.cumsum([0.0, *(half[:-1] + half[1:])])[: len(half)]  # least distance from the first name
    groups: list[list[float]] = []  # names that touch stand together around the mean of their ends
    for top in np.array(heights) + below:
        groups.append([float(top)])
        while len(groups) > 1 and np.mean(groups[-1]) > np.mean(groups[-2]):
            groups[-2:] = [groups[-2] + groups[-1]]
    tops = [float(np.mean(group)) for group in groups for _ in group]
    if not tops:
        return []
    return [float(top) for top in np.clip(tops, below[-1] + half[-1] - 0.04, 1.04 - half[0]) - below]


@lru_cache(maxsize=64)
def _spec(
    names: tuple[str, ...],
    score_name: str,
    planned: int,
    highest_loss: float,
    run_id: str,
    shares: bool,
) -> str:
    form = ".0%" if shares else "~g"
    named = colors.NAMED[: len(names)]
    data = [
        curve(
            name,
            {"color": colors.GHOST, "width": 1},
            f"step %{{x:,}} · {name}: %{{y:{form}}}<extra></extra>",
            opacity=0.6,
        )
        for name in names
    ]
    # Drawn over the thin line of the same head, which shows the hover text.
    data += [curve("", {"color": color, "width": 3}, None, hoverinfo="skip") for color in named]
    of_loss = "step %{x:,} · training loss: %{y:.3f}<extra></extra>"
    data.append(curve("training loss", {"color": colors.TRAIN, "width": 1.5}, of_loss, yaxis="y2"))
    level = THRESHOLD if shares else 0.0
    widest = max((len(part) for name in names for part in name.split(" · ")), default=0)
    dashed = {"color": colors.MARKER, "width": 2, "dash": "dash"}
    ends = [note("", 1.0, 0, "left middle", size=13, xref="paper", align="left") for _ in named]
    for end, color in zip(ends, named, strict=True):
        end["font"]["color"] = color
    layout = {
        "margin": {"l": 40 if shares else 64, "r": 12 + 8 * widest, "t": 26, "b": 34},
        "hovermode": "closest",
        "hoverdistance": 40,
        "showlegend": False,
        "xaxis": step_axis(planned),
        "yaxis": AXIS
        | {"domain": [SPLIT[1], 1.0], "tickformat": form}
        | ({"tickvals": [0, 0.5, 1]} if shares else {}),
        "yaxis2": AXIS | {"range": [0, highest_loss], "domain": [0.0, SPLIT[0]]},
        "annotations": [
            *ends,
            panel_name("training loss", SPLIT[0]),
            panel_name(score_name, 1.0, 0.0, "left bottom", size=14),
            *(
                [note(f"clear from {THRESHOLD:.0%}", 0.01, THRESHOLD, "left bottom", xref="paper")]
                if shares
                else []
            ),
        ],
        "shapes": [MARKER, line((0, level), (1, level), dashed, xref="paper", layer="below")],
        "uirevision": run_id,
    }
    return json.dumps({"data": data, "layout": layout})

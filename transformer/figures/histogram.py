"""How long questions and answers are: two rows of bars."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from transformer.figures import colors
from transformer.figures.picture import Picture

SIDES = ("questions", "answers")


def length_histogram(
    questions: Sequence[int], answers: Sequence[int], *, unit: tuple[str, str], title: str
) -> Picture:
    """A bar for each length, of questions above and answers below, on one axis.

    Args:
        questions: the length of each.
        answers: the length of each.
        unit: what is counted on either side, such as words or characters.
    """
    longest = max([*questions, *answers], default=1)
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {
        "title": {"text": title, "x": 0.01, "xanchor": "left", "y": 1, "yanchor": "top", "pad": {"t": 6}}
        | {"font": {"size": 14}},
        "margin": {"l": 4, "r": 8, "t": 30, "b": 4},
        "bargap": 0.2,
        "showlegend": False,
        "xaxis": {
            "range": [0.4, longest + 0.6],
            "dtick": max(1, -(-longest // 12)),
            "showgrid": False,
            "zeroline": False,
            "anchor": "y2",
            "title": {"text": _unit(unit), "font": {"size": 12}, "standoff": 4},
            "automargin": True,
            "fixedrange": True,
        },
    }
    for panel, (side, lengths, color) in enumerate(
        zip(SIDES, (questions, answers), (colors.QUERY, colors.KEY), strict=True)
    ):
        counts = np.bincount(np.asarray(lengths, dtype=int), minlength=longest + 1)[1:]
        suffix = "2" if panel else ""
        data.append(
            {
                "type": "bar",
                "name": side,
                "x": list(range(1, longest + 1)),
                "y": counts.tolist(),
                "xaxis": "x",
                "yaxis": f"y{suffix}",
                "marker": {"color": color},
                "hovertemplate": f"{side} of %{{x}} {unit[panel]}: <b>%{{y:,}}</b><extra></extra>",
            }
        )
        layout[f"yaxis{suffix}"] = {
            "domain": [0.54, 1.0] if panel == 0 else [0.0, 0.46],
            "title": {"text": side, "font": {"size": 12}, "standoff": 6},
            "nticks": 3,
            "rangemode": "tozero",
            "zeroline": False,
            "automargin": True,
            "fixedrange": True,
        }
    return Picture(spec=json.dumps({"data": data, "layout": layout}))


def _unit(unit: tuple[str, str]) -> str:
    """What the one axis counts."""
    if unit[0] == unit[1]:
        return f"length in {unit[0]}"
    return f"length: questions in {unit[0]}, answers in {unit[1]}"

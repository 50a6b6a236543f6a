"""How long questions and answers are: two rows of bars."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from transformer.figures import colors
from transformer.figures.parts import Part, axis_title, titled
from transformer.figures.picture import Picture


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
    counted = f"length: questions in {unit[0]}, answers in {unit[1]}"
    if unit[0] == unit[1]:
        counted = f"length in {unit[0]}"
    return Picture(
        spec=json.dumps(
            {
                "data": [
                    _bars("questions", questions, longest, unit[0], colors.QUERY, "y"),
                    _bars("answers", answers, longest, unit[1], colors.KEY, "y2"),
                ],
                "layout": {
                    "title": titled(title, size=14, pad=6),
                    "margin": {"l": 4, "r": 8, "t": 30, "b": 4},
                    "bargap": 0.2,
                    "showlegend": False,
                    "xaxis": {
                        "range": [0.4, longest + 0.6],
                        "dtick": max(1, -(-longest // 12)),
                        "showgrid": False,
                        "zeroline": False,
                        "anchor": "y2",
                        "title": axis_title(counted, standoff=4, size=12),
                        "automargin": True,
                        "fixedrange": True,
                    },
                    "yaxis": _counts("questions", [0.54, 1.0]),
                    "yaxis2": _counts("answers", [0.0, 0.46]),
                },
            }
        )
    )


def _bars(side: str, lengths: Sequence[int], longest: int, unit: str, color: str, axis: str) -> Part:
    """How many there are of each length."""
    counts = np.bincount(np.asarray(lengths, dtype=int), minlength=longest + 1)[1:]
    return {
        "type": "bar",
        "name": side,
        "x": list(range(1, longest + 1)),
        "y": counts.tolist(),
        "xaxis": "x",
        "yaxis": axis,
        "marker": {"color": color},
        "hovertemplate": f"{side} of %{{x}} {unit}: <b>%{{y:,}}</b><extra></extra>",
    }


def _counts(side: str, domain: list[float]) -> Part:
    """The axis of one side."""
    return {
        "domain": domain,
        "title": axis_title(side, standoff=6, size=12),
        "nticks": 3,
        "rangemode": "tozero",
        "zeroline": False,
        "automargin": True,
        "fixedrange": True,
    }

"""Lengths: how long questions and answers are, and where answers are right, by the length of the question."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from transformer.figures import colors
from transformer.figures.parts import BARE, Part, axis_title, line, share_bar, titled
from transformer.figures.picture import Array, Picture


def length_histogram(
    questions: Sequence[int], answers: Sequence[int], *, unit: tuple[str, str], title: str
) -> Picture:
    """A bar for each length, of questions above and answers below, on one axis.

    Args:
        questions: the length of each question.
        answers: the length of each answer.
        unit: the units of questions and of answers, such as words or characters.
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
    """The bars of one side: how many there are of each length from 1 on."""
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


def length_heatmap(
    share: Array,
    asked: Array,
    exact: Array,
    *,
    longest_trained: int,
    title: str,
    step: int,
    shortest: int,
) -> Picture:
    """Shares of right letters: a row for each length of question, a column for each place in the answer.

    Args:
        share: (lengths, positions) share of letters that are right; NaN where there is no such letter.
        asked: (lengths,) how many words of each length were asked.
        exact: (lengths,) share of words that are right to the last letter: a column of its own.
        longest_trained: letters of the longest word of the training; a line stands below its row, if longer
            words follow.
        shortest: letters of the words of the first row.

    Raises:
        ValueError: the arrays do not have the same lengths.
    """
    n_lengths, n_positions = share.shape
    for name, array in (("asked", asked), ("exact", exact)):
        if array.shape != (n_lengths,):
            raise ValueError(f"{name} has shape {array.shape}, but share has {n_lengths} lengths.")
    labels = [f"{shortest + i} ({int(n):,})" for i, n in enumerate(asked)]
    return Picture(
        spec=_spec(shortest, n_lengths, n_positions, longest_trained),
        arrays={"0.z": share, "1.z": exact[:, np.newaxis]},
        layout={"title.text": title, "yaxis.ticktext": labels},
        step=step,
    )


@lru_cache(maxsize=64)
def _spec(shortest: int, n_lengths: int, n_positions: int, longest_trained: int) -> str:
    lengths = list(range(shortest, shortest + n_lengths))
    size = 14 if max(n_lengths, n_positions) <= 10 else 12
    bare = BARE | {"tickangle": 0, "tickfont": {"size": size}}
    heat: Part = {
        "type": "heatmap",
        "y": lengths,
        "zmin": 0.0,
        "zmax": 1.0,
        "colorscale": colors.SHARES,
        "xgap": 1,
        "ygap": 1,
        "hoverongaps": False,
    }
    shares = {
        "x": list(range(1, n_positions + 1)),
        "hovertemplate": "output %{x}, questions of length %{y}: <b>%{z:.1%}</b> right<extra></extra>",
        "colorbar": share_bar("share right<br><span style='font-size:7px'>&nbsp;</span>"),
    }
    exact = {
        "x": [0],
        "xaxis": "x2",
        "showscale": False,
        "texttemplate": "%{z:.0%}",
        "textfont": {"size": size},
        "hovertemplate": "questions of length %{y}: <b>%{z:.1%}</b> right to the last<extra></extra>",
    }
    layout: Part = {
        "title": titled(),
        "margin": {"l": 4, "r": 0, "t": 48, "b": 4},
        "xaxis": bare
        | {
            "domain": [0.0, 0.82],
            "range": [0.5, n_positions + 0.5],
            "dtick": 1 if n_positions <= 16 else 5,
            "title": axis_title("place in the answer", standoff=10),
            "automargin": True,
        },
        "yaxis": bare
        | {
            "tickvals": lengths,
            "ticktext": [str(n) for n in lengths],
            "range": [lengths[-1] + 0.5, shortest - 0.5],
            "title": axis_title("length of the question (asked)", standoff=16),
            "automargin": True,
        },
        "xaxis2": bare
        | {
            "domain": [0.85, 1.0],
            "anchor": "y",
            "range": [-0.5, 0.5],
            "tickvals": [0],
            "ticktext": ["all<br>right"],
        },
        "uirevision": json.dumps([shortest, n_lengths, n_positions]),
    }
    if shortest <= longest_trained < lengths[-1]:
        border = longest_trained + 0.5
        look = {"color": colors.MIRROR, "width": 3}
        layout["shapes"] = [line((0, border), (1, border), look, xref="paper")]
        layout["annotations"] = [
            {
                "text": "trained<br>up to here",
                "x": n_positions + 0.4,
                "y": border,
                "axref": "x",
                "ayref": "y",
                "ax": n_positions + 0.4,
                "ay": max(border - 3, min(border - 0.2, shortest + 0.5)),  # short words leave room there
                "xanchor": "right",
                "yanchor": "bottom",
                "align": "right",
                "arrowcolor": colors.MIRROR,
                "arrowhead": 2,
                "arrowwidth": 2,
                "font": {"size": 13},
            }
        ]
    return json.dumps({"data": [heat | shares, heat | exact], "layout": layout})

"""Probabilities of the next token, after the right letters and after the letters that the model wrote."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from transformer.figures import colors
from transformer.figures.parts import PAPER, Part, note, titled
from transformer.figures.picture import Array, Picture, escaped

PANELS = ("given the right answer so far<br>(teacher-forced)", "on its own<br>(free-running)")
ENDED = "writing has ended"
OTHERS, RIGHT, WRONG = range(3)
KINDS = (
    ("other tokens", colors.GHOST),
    ("the right token", colors.RIGHT),
    ("the likeliest, and wrong", colors.WRONG),
)
"""The traces of a panel with their colours; the last one only where the likeliest token is wrong."""
BELOW = 0.4
"""Space, in rows, above the bar of the expected token if that is not among the likeliest tokens."""
LETTER = 0.022
"""Share of the picture's width that one letter of a label needs where the picture is narrow."""


def next_token_bars(
    forced: Array | None,
    free: Array | None,
    tokens: Sequence[str],
    *,
    expected: int | None,
    most: int = 8,
    title: str,
    step: int,
) -> Picture:
    """Two panels of bars, the likeliest token on top.

    Args:
        forced: (V,) probabilities of the next token after the right letters so far; None after the last one.
        free: (V,) those after the letters that the model wrote itself; None where its writing has ended.
        expected: id of the right next token, shown even where it is not among the highest; None where no
            answer is known.
        most: likeliest tokens in a panel; the expected token may come after them.

    Raises:
        ValueError: there are not as many probabilities as tokens.
    """
    for name, probabilities in (("forced", forced), ("free", free)):
        if probabilities is not None and probabilities.shape != (len(tokens),):
            raise ValueError(f"{name} has shape {probabilities.shape}, but there are {len(tokens)} tokens.")
    n = min(most, len(tokens))
    arrays: dict[str, Array] = {}
    layout: Part = {"title.text": title}
    for panel, probabilities in enumerate((forced, free)):
        bars, labels = _bars(probabilities, tokens, expected, n)
        arrays |= {f"{3 * panel + kind}.x": values for kind, values in enumerate(bars)}
        layout[f"yaxis{'2' if panel else ''}.ticktext"] = labels
        layout[f"annotations[{2 + panel}].visible"] = probabilities is None
        for place, value in enumerate(np.nan_to_num(np.nanmax(bars, axis=0, initial=0))):
            number = f"annotations[{4 + panel * (n + 1) + place}]"
            layout |= {
                f"{number}.x": float(value),
                f"{number}.text": _percent(value) if labels[place] else "",
            }
    return Picture(spec=_spec(n, max(map(len, tokens), default=0)), arrays=arrays, layout=layout, step=step)


def _bars(
    probabilities: Array | None, tokens: Sequence[str], expected: int | None, n: int
) -> tuple[Array, list[str]]:
    """The lengths of all bars, (kinds, n + 1), NaN where there is no bar of this kind, and their labels.

    The last place is that of the expected token where it is not among the n highest.
    """
    bars, labels = np.full((3, n + 1), np.nan), [""] * (n + 1)
    if probabilities is None:
        return bars, labels
    shown = [int(i) for i in np.argsort(-probabilities, kind="stable")[:n]]
    if expected is not None and expected not in shown:
        shown.append(expected)
    for place, token in enumerate(shown):
        kind, mark = OTHERS, ""
        if token == expected:
            kind, mark = RIGHT, "✓ "
        elif place == 0 and expected is not None:
            kind, mark = WRONG, "✗ "
        bars[kind, place] = probabilities[token]
        labels[place] = f"{mark}{escaped(tokens[token])}"
    return bars, labels


def _percent(share: float) -> str:
    return f"{round(100 * float(share), 1):g}%"


@lru_cache(maxsize=64)
def _spec(n: int, longest: int) -> str:
    width_of_labels = min(0.26, LETTER * (longest + 2))  # the marks ✓ and ✗ need room too
    places = [*range(n), n + BELOW]
    data: list[Part] = []
    headings, ends = [], []
    # Annotations, since Plotly draws no text beside a bar that had no length before.
    numbers: list[Part] = []
    layout: Part = {
        "title": titled(pad=10),
        "margin": {"l": 4, "r": 4, "t": 66, "b": 4},
        "barmode": "overlay",
        "bargap": 0.25,
        "showlegend": False,
        "uirevision": str(n),
    }
    for left, suffix, heading in ((0.0, "", PANELS[0]), (0.5, "2", PANELS[1])):
        headings.append(note(heading, left + 0.01, 1.0, "left bottom", size=13, align="left", **PAPER))
        middle = {"xref": f"x{suffix}", "yref": "paper", "x": 0.6, "y": 0.5}
        ends.append(middle | {"text": ENDED, "showarrow": False, "font": {"size": 16}})
        for place in places:
            beside = {"xref": f"x{suffix}", "yref": f"y{suffix}", "x": 0, "y": place, "xanchor": "left"}
            numbers.append(beside | {"xshift": 3, "text": "", "showarrow": False, "font": {"size": 14}})
        for name, color in KINDS:
            data.append(
                {
                    "type": "bar",
                    "orientation": "h",
                    "name": name,
                    "xaxis": f"x{suffix}",
                    "yaxis": f"y{suffix}",
                    "y": places,
                    "marker": {"color": color},
                    "hovertemplate": "%{y}: %{x:.2%}<extra></extra>",
                }
            )
        layout[f"xaxis{suffix}"] = {
            "domain": [left + width_of_labels, left + 0.49],
            "anchor": f"y{suffix}",
            "range": [0, 1.45],  # room for the number after the bar
            "tickvals": [0, 0.5, 1],
            "tickformat": ".0%",
            "tickfont": {"size": 12},
            "zeroline": False,
            "fixedrange": True,
            "automargin": True,
        }
        layout[f"yaxis{suffix}"] = {
            "anchor": f"x{suffix}",
            "tickvals": places,
            "ticktext": [""] * len(places),
            "tickfont": {"size": 16},
            "range": [n + BELOW + 0.6, -0.6],
            "showgrid": False,
            "zeroline": False,
            "ticks": "",
            "fixedrange": True,
        }
    return json.dumps({"data": data, "layout": layout | {"annotations": headings + ends + numbers}})

"""The next token: what the model holds likely, on the right letters and on its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from transformer.figures import colors
from transformer.figures.maps import TITLE
from transformer.figures.picture import Array, Picture, escaped

PANELS = ("right letters as input<br>(teacher-forced)", "its own letters as input<br>(free-running)")
ENDED = "writing has ended"
OTHERS, RIGHT, WRONG = range(3)
"""The traces of a panel: bars of no note, the expected token's, and the highest where that is another."""
BELOW = 0.4
"""Rows between the highest bars and the expected token's where it is not among them."""
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
        forced: (V,) probabilities of the next token after the right letters so far; None behind the last.
        free: (V,) those after the letters that the model wrote itself; None where its writing has ended.
        expected: id of the right next token, shown even where it is not among the highest; None where no
            answer is known.
        most: bars in a panel.
    """
    for name, probabilities in (("forced", forced), ("free", free)):
        if probabilities is not None and probabilities.shape != (len(tokens),):
            raise ValueError(f"{name} has shape {probabilities.shape}, but there are {len(tokens)} tokens.")
    n = min(most, len(tokens))
    arrays: dict[str, Array] = {}
    layout: dict[str, Any] = {"title.text": title}
    for panel, probabilities in enumerate((forced, free)):
        bars, labels = _bars(probabilities, tokens, expected, n)
        arrays |= {f"{3 * panel + kind}.x": values for kind, values in enumerate(bars)}
        layout[f"{_axis('y', panel)}.ticktext"] = labels
        layout[f"annotations[{2 + panel}].visible"] = probabilities is None
    return Picture(
        spec=_spec(n, max(map(len, tokens), default=0), 1 + title.count("<br>")),
        arrays=arrays,
        layout=layout,
        step=step,
    )


def _bars(
    probabilities: Array | None, tokens: Sequence[str], expected: int | None, n: int
) -> tuple[Array, list[str]]:
    """The lengths of all bars (kinds, n + 1), NaN where a bar is of another kind, and their labels.

    The last place is that of the expected token where it is not among the n highest.
    """
    bars, labels = np.full((3, n + 1), np.nan), [""] * (n + 1)
    if probabilities is None:
        return bars, labels
    shown = [int(i) for i in np.argsort(-probabilities, kind="stable")[:n]]
    if expected is not None and expected not in shown:
        shown.append(expected)
    for place, token in enumerate(shown):
        if token == expected:
            kind, mark = RIGHT, "✓ "
        elif place == 0 and expected is not None:
            kind, mark = WRONG, "✗ "
        else:
            kind, mark = OTHERS, ""
        bars[kind, place] = probabilities[token]
        labels[place] = f"{mark}{escaped(tokens[token])}"
    return bars, labels


def _axis(letter: str, panel: int) -> str:
    return f"{letter}axis{panel + 1 if panel else ''}"


@lru_cache(maxsize=64)
def _spec(n: int, longest: int, title_lines: int) -> str:
    labels = min(0.26, LETTER * (longest + 2))  # the marks ✓ and ✗ need room too
    places = [*range(n), n + BELOW]
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {
        "title": TITLE | {"text": "", "pad": {"t": 2 + 8 * title_lines}},
        "margin": {"l": 4, "r": 4, "t": 48 + 18 * title_lines, "b": 4},
        "barmode": "overlay",
        "bargap": 0.25,
        "showlegend": False,
        "annotations": [_heading(PANELS[0], 0), _heading(PANELS[1], 1), _ended(0), _ended(1)],
        "uirevision": str(n),
    }
    for panel in range(2):
        suffix = "2" if panel else ""
        for kind, color in ((OTHERS, colors.GHOST), (RIGHT, colors.RIGHT), (WRONG, colors.WRONG)):
            data.append(
                {
                    "type": "bar",
                    "orientation": "h",
                    "name": ("other tokens", "the right token", "the likeliest, and wrong")[kind],
                    "xaxis": f"x{suffix}",
                    "yaxis": f"y{suffix}",
                    "y": places,
                    "marker": {"color": color},
                    "texttemplate": "%{x:.1~%}",
                    "textposition": "outside",
                    "textfont": {"size": 14},
                    "cliponaxis": False,
                    "hovertemplate": "%{y}: %{x:.2%}<extra></extra>",
                }
            )
        layout[_axis("x", panel)] = {
            "domain": [0.5 * panel + labels, 0.5 * panel + 0.49],
            "anchor": f"y{suffix}",
            "range": [0, 1.45],  # the number stands behind its bar
            "tickvals": [0, 0.5, 1],
            "tickformat": ".0%",
            "tickfont": {"size": 12},
            "zeroline": False,
            "fixedrange": True,
            "automargin": True,
        }
        layout[_axis("y", panel)] = {
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
    return json.dumps({"data": data, "layout": layout})


def _heading(text: str, panel: int) -> dict[str, Any]:
    """What a panel shows, above its labels."""
    return {
        "text": text,
        "xref": "paper",
        "yref": "paper",
        "x": 0.5 * panel + 0.01,
        "y": 1.0,
        "xanchor": "left",
        "yanchor": "bottom",
        "align": "left",
        "showarrow": False,
        "font": {"size": 13},
    }


def _ended(panel: int) -> dict[str, Any]:
    """That there is nothing to show, in the middle of a panel."""
    return {
        "text": ENDED,
        "xref": f"x{panel + 1 if panel else ''}",
        "yref": "paper",
        "x": 0.6,
        "y": 0.5,
        "showarrow": False,
        "font": {"size": 16},
    }

"""Which words of an answer come from which words of its question: two rows of tokens, joined by lines."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transformer.figures import colors
from transformer.figures.picture import Picture, escaped

BETWEEN = 1.4
"""Space between two tokens, in letters."""
PIXELS_OF_A_LETTER = 0.62
"""Of a type of one pixel."""
READ, WRITTEN = 1.0, 0.0
"""Heights of the two rows."""
NOTHING = "∅"


@dataclass(frozen=True, kw_only=True)
class Aligned:
    """A question and its answer in tokens, with the token that each comes from."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    links: tuple[tuple[int, ...], ...] | None
    """For each token of the target the tokens of the source; None where nobody knows."""


def alignment(pair: Aligned, *, title: str, width: float = 900.0) -> Picture:
    """Draw the question above its answer, each token joined to those that it comes from.

    Shape row * columns + column is the line from that token of the answer to that of the question; "meta" in
    the layout tells the live figure so, which leaves only the lines of the token under the pointer.

    Args:
        width: pixels that there are from left to right, about; longer sentences have smaller type.
    """
    links: Sequence[tuple[int, ...]] = pair.links or [()] * len(pair.target)
    if len(links) != len(pair.target):
        raise ValueError(f"There are links for {len(links)} tokens, but the answer has {len(pair.target)}.")
    above, below = _places(pair.source), _places(pair.target)
    span = max(above[-1], below[-1]) if above and below else 1.0
    size = max(8.0, min(22.0, width / (span + 2 * BETWEEN) / PIXELS_OF_A_LETTER))
    above, below = ([place + (span - row[-1]) / 2 for place in row[:-1]] for row in (above, below))
    known = pair.links is not None
    needed = {column for row in links for column in row}
    from_nothing = [known and not row for row in links]
    unread = [known and column not in needed for column in range(len(pair.source))]
    shapes = [
        _line(below[row], above[column], column in links[row])
        for row in range(len(pair.target))
        for column in range(len(pair.source))
    ]
    said = [_said(pair, row, known) for row in range(len(pair.target))]
    asked = [_asked(pair, column, links, known) for column in range(len(pair.source))]
    data = [
        _tokens(below, WRITTEN, pair.target, from_nothing, said, "bottom center", size),
        _tokens(above, READ, pair.source, unread, asked, "top center", size),
        _signs([below[row] for row, alone in enumerate(from_nothing) if alone], WRITTEN + 0.04, size),
        _signs([above[column] for column, alone in enumerate(unread) if alone], READ - 0.04, size),
    ]
    layout: dict[str, Any] = {
        "meta": {"lines": {"rows": len(pair.target), "columns": len(pair.source)}},
        "title": {"text": title, "x": 0.01, "xanchor": "left", "y": 1, "yanchor": "top", "pad": {"t": 6}}
        | {"font": {"size": 14}},
        "margin": {"l": 4, "r": 4, "t": 30, "b": 4},
        "hovermode": "closest",
        "hoverdistance": 40,
        "showlegend": False,
        "xaxis": {"range": [-2 * BETWEEN, span + 2 * BETWEEN], "visible": False, "fixedrange": True},
        "yaxis": {"range": [-0.55, 1.55], "visible": False, "fixedrange": True},
        "shapes": shapes,
    }
    return Picture(spec=json.dumps({"data": data, "layout": layout}))


def _places(tokens: Sequence[str]) -> list[float]:
    """The middle of each token, and behind them the end of the row, in letters."""
    places, end = [], 0.0
    for token in tokens:
        # Chinese characters are two letters wide.
        width = sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in token)
        places.append(end + width / 2)
        end += width + BETWEEN
    return [*places, max(0.0, end - BETWEEN)]


def _line(x0: float, x1: float, is_link: bool) -> dict[str, Any]:
    return {
        "type": "line",
        "layer": "below",
        "x0": x0,
        "y0": WRITTEN + 0.06,
        "x1": x1,
        "y1": READ - 0.06,
        "opacity": 0.9 if is_link else 0.0,
        "line": {"color": colors.LOOKS, "width": 3},
    }


def _tokens(
    places: Sequence[float],
    height: float,
    tokens: Sequence[str],
    alone: Sequence[bool],
    hover: Sequence[str],
    side: str,
    size: float,
) -> dict[str, Any]:
    """A row of tokens; those that have no partner are slanted."""
    return {
        "type": "scatter",
        "mode": "markers+text",
        "x": list(places),
        "y": [height] * len(places),
        "text": [
            f"<i>{escaped(token)}</i>" if single else escaped(token)
            for token, single in zip(tokens, alone, strict=True)
        ],
        "textposition": side,
        "textfont": {"size": size},
        "cliponaxis": False,
        "marker": {"size": 9, "color": colors.GHOST, "opacity": [0.0 if single else 1.0 for single in alone]},
        "hovertext": list(hover),
        "hoverinfo": "text",
    }


def _signs(places: Sequence[float], height: float, size: float) -> dict[str, Any]:
    """What stands where a line would begin: that there is none."""
    return {
        "type": "scatter",
        "mode": "text",
        "x": list(places),
        "y": [height] * len(places),
        "text": [NOTHING] * len(places),
        "textfont": {"size": max(12.0, 0.9 * size)},
        "cliponaxis": False,
        "hoverinfo": "skip",
    }


def _said(pair: Aligned, row: int, known: bool) -> str:
    token = f"<b>{escaped(pair.target[row])}</b>"
    if not known or pair.links is None:
        return f"{token}: nobody knows where it comes from"
    if not pair.links[row]:
        return f"{token} comes from nothing"
    return f"{token} comes from {_listed([pair.source[column] for column in pair.links[row]])}"


def _asked(pair: Aligned, column: int, links: Sequence[tuple[int, ...]], known: bool) -> str:
    token = f"<b>{escaped(pair.source[column])}</b>"
    if not known:
        return f"{token}: nobody knows what comes from it"
    made = [pair.target[row] for row, needs in enumerate(links) if column in needs]
    return f"{token} gives {_listed(made)}" if made else f"nothing comes from {token}"


def _listed(tokens: Sequence[str]) -> str:
    return " · ".join(f"<b>{escaped(token)}</b>" for token in tokens)

"""The alignment of an answer with its question: two rows of tokens, joined by lines."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from transformer.figures import colors
from transformer.figures.parts import Part, line, texts, titled
from transformer.figures.picture import Picture, escaped

BETWEEN = 1.4
"""Space between two tokens, in letters."""
PIXELS_OF_A_LETTER = 0.62
"""Approximate width of a letter in pixels, at a font size of one pixel."""
WIDE = 900.0
"""Approximate width of the figure in pixels."""
READ, WRITTEN = 1.0, 0.0
"""Heights of the two rows."""
UNALIGNED = "∅"


@dataclass(frozen=True, kw_only=True)
class Aligned:
    """A question and its answer as tokens, with the links between them."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    links: tuple[tuple[int, ...], ...]
    """For each token of the target, the indices of the source tokens that it comes from."""


def alignment(pair: Aligned, *, title: str) -> Picture:
    """Draw the question above its answer, each token of the answer joined to those that it comes from.

    Shape number row * columns + column is the line from token `row` of the answer to token `column` of the
    question. Those of the first token of the answer are lit, as an example. "meta" in the layout holds both
    counts, with which the live figure shows only the lines of the token under the pointer. Long
    sentences get a smaller font.

    Raises:
        ValueError: there are not as many rows of links as tokens in the answer.
    """
    links = pair.links
    if len(links) != len(pair.target):
        raise ValueError(f"There are links for {len(links)} tokens, but the answer has {len(pair.target)}.")
    gives = [
        [row for row, needs in enumerate(links) if column in needs] for column in range(len(pair.source))
    ]
    above, below, span = _places(pair.source, pair.target)
    size = max(8.0, min(22.0, WIDE / (span + 2 * BETWEEN) / PIXELS_OF_A_LETTER))
    shapes = [
        _link(below[row], above[column], column in links[row], row == 0)
        for row in range(len(pair.target))
        for column in range(len(pair.source))
    ]
    from_nothing = [not needs for needs in links]
    unread = [not rows for rows in gives]
    data = [
        _tokens(below, WRITTEN, pair.target, from_nothing, "bottom center", size)
        | {"hovertext": [_from(pair, row) for row in range(len(pair.target))]},
        _tokens(above, READ, pair.source, unread, "top center", size)
        | {"hovertext": [_gives(pair, column, rows) for column, rows in enumerate(gives)]},
        _signs([x for x, alone in zip(below, from_nothing, strict=True) if alone], WRITTEN + 0.04, size),
        _signs([x for x, alone in zip(above, unread, strict=True) if alone], READ - 0.04, size),
    ]
    layout: Part = {
        "meta": {"lines": {"rows": len(pair.target), "columns": len(pair.source)}},
        "title": titled(title, size=14, pad=6),
        "margin": {"l": 4, "r": 4, "t": 30, "b": 4},
        "hovermode": "closest",
        "hoverdistance": 40,
        "showlegend": False,
        "xaxis": {"range": [-2 * BETWEEN, span + 2 * BETWEEN], "visible": False, "fixedrange": True},
        "yaxis": {"range": [-0.55, 1.55], "visible": False, "fixedrange": True},
        "shapes": shapes,
    }
    return Picture(spec=json.dumps({"data": data, "layout": layout}))


def _places(source: Sequence[str], target: Sequence[str]) -> tuple[list[float], list[float], float]:
    """The centres of the tokens in the two rows, and the width of the longer row, all in letters."""
    rows, widths = [], []
    for tokens in (source, target):
        places, end = [], 0.0
        for token in tokens:
            # Wide characters, such as Chinese ones, are two letters wide.
            width = sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in token)
            places.append(end + width / 2)
            end += width + BETWEEN
        rows.append(places)
        widths.append(max(0.0, end - BETWEEN))
    span = max(widths)
    above, below = (
        [place + (span - width) / 2 for place in row] for row, width in zip(rows, widths, strict=True)
    )
    return above, below, span


def _link(below: float, above: float, is_link: bool, lit: bool) -> Part:
    """The line between two tokens; invisible if they are not linked."""
    look = {"color": colors.HIGHLIGHT if lit else colors.ATTENTION_LINE, "width": 5 if lit else 3}
    seen = {"layer": "below", "opacity": 0.9 if is_link else 0.0}
    return line((below, WRITTEN + 0.06), (above, READ - 0.06), look, **seen)


def _tokens(
    places: Sequence[float],
    height: float,
    tokens: Sequence[str],
    alone: Sequence[bool],
    side: str,
    size: float,
) -> Part:
    """A row of tokens; those without a link (`alone`) are in italics and have no marker."""
    shown = [
        f"<i>{escaped(token)}</i>" if single else escaped(token)
        for token, single in zip(tokens, alone, strict=True)
    ]
    opacity = [0.0 if single else 1.0 for single in alone]
    marker = {"size": 9, "color": colors.GHOST, "opacity": opacity}
    heights = [height] * len(places)
    return texts(places, heights, shown, size, textposition=side, marker=marker, hoverinfo="text")


def _signs(places: Sequence[float], height: float, size: float) -> Part:
    """Signs beside tokens without a link, where a line would begin."""
    n = len(places)
    return texts(places, [height] * n, [UNALIGNED] * n, max(12.0, 0.9 * size), mode="text", hoverinfo="skip")


def _from(pair: Aligned, row: int) -> str:
    token = f"<b>{escaped(pair.target[row])}</b>"
    return f"{token} comes from {_listed([pair.source[i] for i in pair.links[row]]) or 'nothing'}"


def _gives(pair: Aligned, column: int, rows: Sequence[int]) -> str:
    token = f"<b>{escaped(pair.source[column])}</b>"
    made = _listed([pair.target[row] for row in rows])
    return f"{token} gives {made}" if made else f"nothing comes from {token}"


def _listed(tokens: Sequence[str]) -> str:
    return " · ".join(f"<b>{escaped(token)}</b>" for token in tokens)

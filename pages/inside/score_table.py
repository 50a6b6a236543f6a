"""Which parts of the two streams make a score, as a table that adds up."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import numpy as np

from transformer.figures.colors import ABOVE_ZERO, BELOW_ZERO

if TYPE_CHECKING:
    from transformer.anatomy.parts import ScoreParts

DIGITS = 2


def said_of(parts: ScoreParts) -> str:
    """One sentence: the products that contribute most to the score, with its sign."""
    sign = 1 if parts.score >= 0 else -1
    order = np.argsort(-sign * parts.values, axis=None)[:2]
    named = []
    for place in order:
        i, j = np.unravel_index(place, parts.values.shape)
        if sign * parts.values[i, j] > 0:
            named.append(f"{parts.queries[i]} × {parts.keys[j]} {parts.values[i, j]:+.{DIGITS}f}")
    most = f"; most comes from {' and '.join(named)}" if named else ""
    return (
        f"The score before the softmax is {parts.score:+.{DIGITS}f}{most}. Rows: parts of the query’s "
        "stream; columns: parts of the key’s. All cells add up to the score."
    )


def score_table(parts: ScoreParts) -> str:
    """The table as HTML, its cells coloured by sign."""
    largest = float(np.abs(parts.values).max()) or 1.0
    head = "".join(f"<th scope='col'>{html.escape(name)}</th>" for name in parts.keys)
    rows = []
    for name, values, printed in zip(parts.queries, parts.values, parts.printed(DIGITS), strict=True):
        cells = "".join(
            f"<td style='background: {_color(value / largest)}'>{text}</td>"
            for value, text in zip(values, printed, strict=True)
        )
        rows.append(f"<tr><th scope='row'>{html.escape(name)}</th>{cells}</tr>")
    return (
        "<div class='hl-wide' tabindex='0' role='group' aria-label='Parts of the score'>"
        f"<table class='hl-parts'><tr><td></td>{head}</tr>{''.join(rows)}</table></div>"
    )


def _color(share: float) -> str:
    """The colour of the sign, as strong as a share from -1 to 1."""
    color = ABOVE_ZERO if share > 0 else BELOW_ZERO
    return f"color-mix(in srgb, {color} {60 * abs(share):.0f}%, transparent)"

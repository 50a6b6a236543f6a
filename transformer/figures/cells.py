"""How the cells of a table of numbers look: its scale, the numbers in it, and why some cells are blocked."""

from __future__ import annotations

from textwrap import wrap

import numpy as np

from transformer.figures import colors
from transformer.figures.parts import Part
from transformer.figures.picture import Array, escaped
from transformer.insight.blocking import BOTH, BY_HAND, FUTURE, OPEN, PADDING
from transformer.insight.tables import Panel

BLOCKED = {
    FUTURE: (colors.CAUSAL, "╱", "blocked: causal mask"),
    PADDING: (colors.PADDING, "•", "blocked: padding mask"),
    BOTH: (colors.PADDING, "╱•", "blocked: causal and padding mask"),
    BY_HAND: (colors.TAKEN, "✕", "blocked by hand"),
}
"""Code of a blocked cell to its colour, its mark and its name."""
ROLES = {"query": colors.QUERY, "key": colors.KEY, "value": colors.VALUE}
_TWO_SIDED = [[0, colors.BELOW_ZERO], [0.5, colors.NEUTRAL], [1, colors.ABOVE_ZERO]]
SCALES = {
    "weights": colors.WEIGHTS,
    "probabilities": colors.WEIGHTS,
    **{role: [[0, colors.NEGATIVE], [0.5, colors.NEUTRAL], [1, color]] for role, color in ROLES.items()},
    "distances": _TWO_SIDED,
    "scores": _TWO_SIDED,
    "plain": _TWO_SIDED,
}
"""Role of a table to its colours; masks and ids are flat."""
SHARES = ("weights", "probabilities")
"""Roles whose numbers go from 0 to 1."""
MOST_HOVERS = 6000
"""Cells of a picture beyond which the pointer shows places in numbers, to keep the picture small."""
LETTER, LINE = 6.2, 13
"""Pixels of a letter and of a line of small type."""


def flat(color: str) -> list[list[float | str]]:
    """A scale of one colour."""
    return [[0, color], [1, color]]


def blocked_cells(cells: Array, code: int, *, gap: int = 1, size: int | None = 11) -> Part:
    """Cells that are blocked for one reason, in its colour and with its mark; never drawn as zero.

    Args:
        cells: (rows, columns) bool.
        size: of the mark's type; None where there is no room for it.
    """
    color, mark, _ = BLOCKED[code]
    drawn: Part = {
        "type": "heatmap",
        "z": [[1 if cell else None for cell in row] for row in cells.tolist()],
        "colorscale": flat(color),
        "showscale": False,
        "hoverongaps": False,
        "xgap": gap,
        "ygap": gap,
    }
    if size is None:
        return drawn
    marks = [[mark if cell else "" for cell in row] for row in cells.tolist()]
    return drawn | {
        "text": marks,
        "texttemplate": "%{text}",
        "textfont": {"color": colors.MARK, "size": size},
    }


def reasons(table: Panel) -> Array:
    """(rows, columns) codes of why cells are blocked; OPEN where they are not."""
    if table.role == "mask":
        return table.values.astype(int)
    if table.codes is not None:
        return table.codes.astype(int)
    return np.where(np.isnan(table.values), BY_HAND, OPEN)


def table_traces(
    table: Panel, *, place: Part, width: float, height: float, hovers: bool, letters: int
) -> list[Part]:
    """The heatmap of a table, and one for each reason why cells are blocked.

    Args:
        place: the axes that it stands on, and its colour axis.
        width: of a cell in pixels, about.
        height: of a cell in pixels, about.
        hovers: whether each cell says its labels; else its place in numbers.
        letters: in a line of what the pointer shows.
    """
    codes = reasons(table)
    gap = 1 if min(width, height) >= 9 else 0
    said: Part = {"hovertext": _hovers(table, codes, letters), "hoverinfo": "text"} if hovers else {}
    axes = {key: value for key, value in place.items() if key != "coloraxis"}
    is_flat = table.role in ("mask", "ids")
    numbers: Part = {
        **(axes | {"colorscale": flat(colors.ALLOWED)} if is_flat else place),
        "type": "heatmap",
        "z": _rounded(np.where(codes == OPEN, table.values, np.nan)),
        "xgap": gap,
        "ygap": gap,
        "hoverongaps": False,
        "showscale": False,
        **(said or {"hovertemplate": "%{y} · %{x}<br><b>%{z}</b><extra></extra>"}),
    }
    if table.role != "mask" and width >= _width_of_numbers(table) + 3 and height >= LINE - 2:
        size = 11 if height >= LINE + 1 else 10
        numbers |= {"texttemplate": f"%{{z:{_digits(table)}}}", "textfont": {"size": size}}
    size_of_mark = min(11, int(height)) if width >= 1.5 * LETTER and height >= 7 else None
    blocked = [
        blocked_cells(codes == code, code, gap=gap, size=size_of_mark)
        | axes
        | (said or {"hovertemplate": f"%{{y}} · %{{x}}<br>{name}<extra></extra>"})
        for code, (_, _, name) in BLOCKED.items()
        if (codes == code).any()
    ]
    return [numbers, *blocked, *(_hatch(len(table.rows), first, end, axes) for first, end in table.off)]


def _rounded(values: Array) -> list[list[float | None]]:
    """Numbers short enough to be sent; None where blocked."""
    return [[None if np.isnan(v) else float(f"{v:.4g}") for v in row] for row in values.tolist()]


def _digits(table: Panel) -> str:
    """The format of the numbers in cells: shorter where they are long."""
    if table.role in ("mask", "ids"):
        return ".0f"
    largest = np.nanmax(np.abs(table.values), initial=0.0)
    return ".2f" if largest < 9.995 else ".1f" if largest < 99.95 else ".0f"


def _width_of_numbers(table: Panel) -> float:
    """Pixels that the longest number in a cell needs."""
    values = table.values[np.isfinite(table.values)]
    ends = (float(values.min()), float(values.max())) if values.size else ()
    return max((len(format(end, _digits(table))) for end in ends), default=1) * (LETTER + 0.4)


def _hovers(table: Panel, codes: Array, letters: int) -> list[list[str]]:
    """What the pointer shows of each cell, in lines of so many letters."""
    sentences = ["".join(f"<br>{escaped(part)}" for part in wrap(text, letters)) for text in table.hover_rows]
    sentences = sentences or [""] * len(table.rows)
    rows = [escaped(label or table.name) for label in table.rows]
    feature = "feature " if table.column_title == "feature" else ""
    columns = [f"{feature}{escaped(label)}" for label in table.columns]
    return [
        [
            f"{row} · {column}<br><b>{_said(table.role, value, code)}</b>{sentence}"
            for column, value, code in zip(columns, values, row_codes, strict=True)
        ]
        for row, sentence, values, row_codes in zip(
            rows, sentences, table.values.tolist(), codes.tolist(), strict=True
        )
    ]


def _said(role: str, value: float, code: int) -> str:
    if code != OPEN:
        return BLOCKED[code][2]
    if role == "mask":
        return "open"
    return f"{value:.1%}" if role in SHARES else f"{value:.5g}"


def _hatch(n_rows: int, first: int, end: int, axes: Part) -> Part:
    """Stripes over the columns of a head that is switched off."""
    left, right, bottom = first - 0.5, end - 0.5, n_rows - 0.5
    return {
        "xaxis": axes["xaxis"],
        "yaxis": axes["yaxis"],
        "type": "scatter",
        "name": "switched off",
        "x": [left, right, right, left, left],
        "y": [-0.5, -0.5, bottom, bottom, -0.5],
        "mode": "lines",
        "line": {"width": 0},
        "fill": "toself",
        "fillpattern": {"shape": "/", "fgcolor": colors.OFF, "size": 10, "solidity": 0.6},
        "hoverinfo": "skip",
    }

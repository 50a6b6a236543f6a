"""How the cells of a table of numbers look: its scale, the numbers in it, and why some cells are blocked."""

from __future__ import annotations

from textwrap import wrap
from typing import Any, Protocol

import numpy as np

from transformer.figures import colors
from transformer.figures.picture import Array, escaped
from transformer.insight.blocking import BOTH, BY_HAND, FUTURE, OPEN, PADDING

BLOCKED = {
    FUTURE: (colors.CAUSAL, "╱", "in the future"),
    PADDING: (colors.PADDING, "•", "padding"),
    BOTH: (colors.PADDING, "╱•", "padding in the future"),
    BY_HAND: (colors.TAKEN, "✕", "blocked by hand"),
}
"""Code of a blocked cell to its colour, its mark and its name."""
ROLES = {"query": colors.QUERY, "key": colors.KEY, "value": colors.VALUE}
SCALES = {
    "weights": colors.WEIGHTS,
    "probabilities": colors.WEIGHTS,
    **{role: [[0, colors.NEGATIVE], [0.5, colors.NEUTRAL], [1, color]] for role, color in ROLES.items()},
    "distances": [[0, colors.BELOW_ZERO], [0.5, colors.NEUTRAL], [1, colors.ABOVE_ZERO]],
    "scores": [[0, colors.BELOW_ZERO], [0.5, colors.NEUTRAL], [1, colors.ABOVE_ZERO]],
    "plain": [[0, colors.BELOW_ZERO], [0.5, colors.NEUTRAL], [1, colors.ABOVE_ZERO]],
}
"""Role of a table to its colours; masks and ids are flat."""
SHARES = ("weights", "probabilities")
"""Roles whose numbers go from 0 to 1."""
FLAT = [[0, colors.ALLOWED], [1, colors.ALLOWED]]
MOST_HOVERS = 6000
"""Cells of a picture beyond which the pointer shows places in numbers, to keep the picture small."""
LETTER, LINE = 6.2, 13
"""Pixels of a letter and of a line of small type."""


class Table(Protocol):
    """A table of numbers with what stands at its two axes."""

    @property
    def name(self) -> str:
        """Its heading."""

    @property
    def values(self) -> Array:
        """(rows, columns); NaN where blocked."""

    @property
    def rows(self) -> tuple[str, ...]:
        """Labels."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Labels."""

    @property
    def role(self) -> str:
        """query, key, value, weights or probabilities (0 to 1), scores, distances, mask, ids or plain."""

    @property
    def axes(self) -> tuple[str, str]:
        """What its row and its column stand for: "row", "column", "feature" or ""."""

    @property
    def row_title(self) -> str:
        """What the rows are."""

    @property
    def column_title(self) -> str:
        """What the columns are."""

    @property
    def hover_rows(self) -> tuple[str, ...]:
        """A sentence for each row; may be empty."""

    @property
    def marked(self) -> tuple[tuple[int, int], ...]:
        """Cells (row, column) that stand out."""

    @property
    def codes(self) -> Array | None:
        """(rows, columns), why cells are blocked."""

    @property
    def off(self) -> tuple[tuple[int, int], ...]:
        """Columns, from and up to but without, of heads that are switched off."""


def blocked_of(table: Table) -> Array:
    """(rows, columns) codes: 0 where a cell is open."""
    if table.role == "mask":
        return table.values.astype(int)
    if table.codes is not None:
        return table.codes.astype(int)
    return np.where(np.isnan(table.values), BY_HAND, OPEN)


def _digits(table: Table) -> str:
    """The format of the numbers in cells: shorter where they are long."""
    if table.role in ("mask", "ids"):
        return ".0f"
    largest = np.nanmax(np.abs(table.values), initial=0.0)
    return ".2f" if largest < 9.995 else ".1f" if largest < 99.95 else ".0f"


def _width_of_numbers(table: Table) -> float:
    """Pixels that the longest number in a cell needs."""
    values = table.values[np.isfinite(table.values)]
    ends = (float(values.min()), float(values.max())) if values.size else ()
    return max((len(format(end, _digits(table))) for end in ends), default=1) * (LETTER + 0.4)


def _hovers(table: Table, codes: Array, letters: int) -> list[list[str]]:
    """What the pointer shows of each cell, in lines of so many letters."""
    sentences = [escaped("\n".join(["", *wrap(text, letters)])) for text in table.hover_rows]
    sentences = [text.replace("\n", "<br>") for text in sentences] or [""] * len(table.rows)
    rows = [escaped(label or table.name) for label in table.rows]
    column = f"{table.column_title} " if table.column_title == "feature" else ""
    columns = [f"{column}{escaped(label)}" for label in table.columns]
    return [
        [
            f"{rows[i]} · {columns[j]}<br><b>{_said(table, i, j, int(codes[i, j]))}</b>{sentences[i]}"
            for j in range(len(columns))
        ]
        for i in range(len(table.rows))
    ]


def _said(table: Table, row: int, column: int, code: int) -> str:
    if code != OPEN:
        name = BLOCKED[code][2]
        return name if name.startswith("blocked") else f"blocked: {name}"
    value = float(table.values[row, column])
    if table.role == "mask":
        return "open"
    return f"{value:.1%}" if table.role in SHARES else f"{value:.5g}"


def _hover(texts: list[list[str]] | None, template: str) -> dict[str, Any]:
    """What the pointer shows: a text of each cell, or what a template makes of its place."""
    if texts is None:
        return {"hovertemplate": f"{template}<extra></extra>"}
    return {"hovertext": texts, "hoverinfo": "text"}


def rounded(values: Array) -> list[list[float | None]]:
    """Numbers short enough to be sent; None where blocked."""
    return [[None if np.isnan(v) else float(f"{v:.4g}") for v in row] for row in values.tolist()]


def cell_traces(
    table: Table, *, place: dict[str, Any], width: float, height: float, hovers: bool, letters: int = 60
) -> list[dict[str, Any]]:
    """The heatmap of a table, and a flat one for each reason why cells are blocked.

    Args:
        place: the axes that it stands on, and its colour axis.
        width: of a cell in pixels, about.
        height: of a cell in pixels, about.
        hovers: whether each cell says its labels; else its place in numbers.
        letters: in a line of what the pointer shows.
    """
    codes = blocked_of(table)
    gap = 1 if min(width, height) >= 9 else 0
    common = {**place, "type": "heatmap", "xgap": gap, "ygap": gap, "hoverongaps": False}
    shown = _hovers(table, codes, letters) if hovers else None
    main: dict[str, Any] = {
        **common,
        "z": rounded(np.where(codes == OPEN, table.values, np.nan)),
        "showscale": False,
        **_hover(shown, "%{y} · %{x}<br><b>%{z}</b>"),
    }
    if table.role in ("mask", "ids"):
        main |= {"colorscale": FLAT}
        main.pop("coloraxis", None)
    if table.role != "mask" and width >= _width_of_numbers(table) + 3 and height >= LINE - 2:
        size = 11 if height >= LINE + 1 else 10
        main |= {"texttemplate": f"%{{z:{_digits(table)}}}", "textfont": {"size": size}}
    traces = [main]
    for code, (color, mark, name) in BLOCKED.items():
        cells = codes == code
        if not cells.any():
            continue
        flat: dict[str, Any] = {
            **{key: value for key, value in common.items() if key != "coloraxis"},
            "z": [[1 if cell else None for cell in row] for row in cells.tolist()],
            "colorscale": [[0, color], [1, color]],
            "showscale": False,
            **_hover(shown, f"%{{y}} · %{{x}}<br>{name}"),
        }
        if width >= 1.5 * LETTER and height >= 7:
            flat |= {
                "text": [[mark if cell else "" for cell in row] for row in cells.tolist()],
                "texttemplate": "%{text}",
                "textfont": {"color": colors.MARK, "size": min(11, int(height))},
            }
        traces.append(flat)
    return traces + [_hatch(len(table.rows), first, end, place) for first, end in table.off]


def _hatch(n_rows: int, first: int, end: int, place: dict[str, Any]) -> dict[str, Any]:
    """Stripes over the columns of a head that is switched off."""
    left, right, bottom = first - 0.5, end - 0.5, n_rows - 0.5
    return {
        **{key: place[key] for key in ("xaxis", "yaxis")},
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

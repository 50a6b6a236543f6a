"""The look of the cells of a table of numbers: scale, digits, and why some cells are blocked."""

from __future__ import annotations

from transformer.figures import colors
from transformer.figures.parts import Part
from transformer.figures.picture import Array
from transformer.insight.blocking import BOTH, BY_HAND, FUTURE, PADDING, REASONS

BLOCKED = {
    FUTURE: (colors.CAUSAL, "╱", REASONS[FUTURE]),
    PADDING: (colors.PADDING, "•", REASONS[PADDING]),
    BOTH: (colors.PADDING, "╱•", REASONS[BOTH]),
    BY_HAND: (colors.TAKEN, "✕", REASONS[BY_HAND]),
}
"""Code of a blocked cell to its colour, its mark and its name."""
ROLES = {"query": colors.QUERY, "key": colors.KEY, "value": colors.VALUE}
_TWO_SIDED = [[0, colors.BELOW_ZERO], [0.5, colors.NEUTRAL], [1, colors.ABOVE_ZERO]]
SCALES = {
    "weights": colors.WEIGHTS,
    "probabilities": colors.WEIGHTS,
    **{role: [[0, colors.NEGATIVE], [0.5, colors.NEUTRAL], [1, color]] for role, color in ROLES.items()},
    "scores": _TWO_SIDED,
    "plain": _TWO_SIDED,
}
"""Role of a table to its colours."""


def flat(color: str) -> list[list[float | str]]:
    """A scale of one colour."""
    return [[0, color], [1, color]]


LOOK = {"scales": SCALES | {"mask": flat(colors.ALLOWED), "ids": flat(colors.ALLOWED)}, "blocked": BLOCKED}
"""How the picture of the model draws its tables."""


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

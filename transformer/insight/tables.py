"""A table of numbers with its labels, and the focused cell."""

from __future__ import annotations

from dataclasses import dataclass

from transformer.insight.scores import Array


@dataclass(frozen=True)
class Focus:
    """The cell that is explained, counted from 0; a number that is too large means the last.

    On the screen they are counted from 1.
    """

    row: int = 0
    """Position of the query."""
    column: int | None = 0
    """Position of the key; None for the highest weight of the row."""
    feature: int = 0
    """Index within a vector."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Panel:
    """One table of numbers with its labels."""

    name: str
    values: Array
    """(rows, columns); NaN where blocked."""
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    role: str = "plain"
    """query, key, value, weights or probabilities (0 to 1), scores, distances, mask (codes), ids or plain."""
    axes: tuple[str, str] = ("", "")
    """The focus that a click sets by its row and its column: "row", "column", "feature" or ""."""
    row_title: str = ""
    column_title: str = ""
    hover_rows: tuple[str, ...] = ()
    """A sentence for each row; may be empty."""
    marked: tuple[tuple[int, int], ...] = ()
    """Cells (row, column) that stand out, such as the right tokens."""
    codes: Array | None = None
    """(rows, columns), why cells are blocked, where some may be: the codes of a mask."""
    off: tuple[tuple[int, int], ...] = ()
    """Columns, from and up to but without, that belong to heads which are switched off."""

    def __post_init__(self) -> None:
        expected = (len(self.rows), len(self.columns))
        if self.values.shape != expected:
            raise ValueError(f"{self.name} has shape {self.values.shape}, but its labels need {expected}.")

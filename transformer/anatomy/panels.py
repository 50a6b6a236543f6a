"""What the page of stages is made of: a focus, panels of numbers, and stages that explain them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Focus:
    """The one cell that is explained; all three are counted from 0, and what is too large means the last.

    Who sees them counts from 1.
    """

    row: int = 0
    """Position of the query."""
    column: int | None = 0
    """Position of the key; None for the one that its row looks at most."""
    feature: int = 0
    """Index within a vector."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Panel:
    """One table of numbers with what stands at its two axes."""

    name: str
    values: Array
    """(rows, columns); NaN where blocked."""
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    role: str = "plain"
    """query, key, value, weights or probabilities (0 to 1), scores, distances, mask (codes), ids or plain."""
    axes: tuple[str, str] = ("", "")
    """What a click sets by its row and its column: "row", "column", "feature" or ""."""
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Stage:
    """One step of the forward pass, with its formula and the numbers of the focused cell put in."""

    key: str
    title: str
    sentence: str
    """One sentence, in plain words."""
    shape: str
    """Of the main panel, such as "(T, S) = (7, 8)"."""
    panels: tuple[Panel, ...]
    """The main one first."""
    formula: str
    """LaTeX, with symbols. Positions and features are counted from 1, as everything on a page."""
    numbers: str
    """LaTeX of the same formula for the focused cell, ending with its value."""
    sources: tuple[Panel, ...] = field(default=())
    """What the focused cell was computed from."""
    result: float | None = None
    """The focused cell of the main panel as it is shown; None where that is blocked."""
    focus: Focus = field(default=Focus())
    """The cell that it is about."""


def numbered(n: int) -> tuple[str, ...]:
    """Names of features or positions, counted from 1."""
    return tuple(map(str, range(1, n + 1)))


def strip(
    name: str,
    values: Array,
    columns: Sequence[str],
    role: str = "plain",
    title: str = "",
    codes: Array | None = None,
    at: str = "",
) -> Panel:
    """One vector, (n,), as a panel of one row.

    Args:
        codes: (n,), why its cells are blocked, where some may be.
        at: "column" or "feature" where one cell of it is what matters.
    """
    return Panel(
        name=name,
        values=values[None],
        rows=("",),
        columns=tuple(columns),
        role=role,
        axes=("", at),
        column_title=title,
        codes=None if codes is None else codes[None],
    )


def vector_strip(name: str, values: Array) -> Panel:
    """A vector of features, (n,), of which the focused one matters."""
    return strip(name, values, numbered(len(values)), title="feature", at="feature")


def product_strips(
    left: tuple[str, Array, str],
    right: tuple[str, Array, str],
    columns: Sequence[str],
    title: str = "",
    codes: Array | None = None,
) -> tuple[Panel, ...]:
    """Two vectors and their products, which add up to the focused cell.

    Args:
        left: name, numbers (n,) and role.
        right: the same of the other vector.
        codes: (n,), why cells of the first are blocked, where some may be.
    """
    (left_name, left_values, left_role), (right_name, right_values, right_role) = left, right
    return (
        strip(left_name, left_values, columns, left_role, title, codes),
        strip(right_name, right_values, columns, right_role, title),
        strip("their products, which add up", left_values * right_values, columns, "plain", title, codes),
    )


def linear_strips(
    left: tuple[str, Array, str], name: str, weight: Array, bias: float | None, title: str = "feature"
) -> tuple[Panel, ...]:
    """What a linear map makes one of its outputs from; a bias is one more feature that is always 1.

    Args:
        left: name, numbers (n,) and role of the vector that goes in.
        weight: (n,), the weights of this output.
    """
    vector_name, vector, role = left
    columns = numbered(len(vector))
    if bias is not None:
        columns = (*columns, "bias")
        vector, weight = np.append(vector, 1.0), np.append(weight, bias)
    return product_strips((vector_name, vector, role), (name, weight, "plain"), columns, title)

"""Stages of the forward pass: a focused cell, panels of numbers, a sentence and a formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transformer.insight.scores import Array as Array
from transformer.insight.tables import Focus as Focus
from transformer.insight.tables import Panel as Panel

STAGES = {
    "tokens": "Tokens",
    "embedding": "Embeddings",
    "positions": "Positions",
    "plain": "Attention without parameters",
    "input": "Input of the attention",
    "qkv": "Query, key and value",
    "scores_row": "Scores of one query",
    "scores": "All scores",
    "scale": "Scaled scores",
    "mask": "Mask",
    "masked": "Masked scores",
    "weights": "Softmax",
    "mixed": "Weighted sum of values",
    "heads": "Concatenated heads",
    "residual": "Residual and norm",
    "feed_forward": "Feed-forward",
    "stack": "Residual stream by layer",
    "logits": "Logits",
    "probabilities": "Probabilities",
}
"""Key to title of the stages of one attention, in the order of the forward pass."""
POSITION_STAGES = {
    "nothing": "No positions",
    "table": "Position vectors",
    "likeness": "Similarity of positions",
    "moved": "Change of positions during training",
}
"""Key to title of the stages that the chapter on positions can have."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Cell:
    """How the value of the focused cell is computed."""

    numbers: str
    """LaTeX of the stage's formula with its numbers put in, ending with its value."""
    sources: tuple[Panel, ...] = ()
    """What it was computed from."""
    result: float | None
    """Its value, as the main panel shows it; None where that is blocked."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Stage:
    """One step of the forward pass: a formula, real numbers, and a sentence."""

    key: str
    sentence: str
    """One sentence, in plain words."""
    shape: str
    """Of the main panel, such as "(T, S) = (7, 8)"."""
    panels: tuple[Panel, ...]
    """The main one first."""
    formula: str
    """LaTeX, with symbols. Positions and features are counted from 1, as everything on a page."""
    cell: Cell
    focus: Focus = Focus()
    """Where the cell is."""

    @property
    def title(self) -> str:
        """What it is called."""
        return (STAGES | POSITION_STAGES)[self.key]


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
        at: "column" or "feature" if one of its cells is focused.
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


def vector_strip(name: str, values: Array, role: str = "plain") -> Panel:
    """A vector of features, (n,), with the focused one marked."""
    return strip(name, values, numbered(len(values)), role, "feature", at="feature")

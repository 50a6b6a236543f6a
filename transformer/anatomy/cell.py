"""One cell of a table of a forward pass, and the explanation of how it was computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from transformer.anatomy import latex
from transformer.anatomy.boxes import Box, Table
from transformer.anatomy.latex import Digits, Shown, at, equation, number
from transformer.insight.scores import Array
from transformer.shared.attention_info import OPEN

if TYPE_CHECKING:
    from transformer.anatomy.passes import AttentionPass, FeedForwardPass, ForwardTrace


@dataclass(frozen=True, kw_only=True)
class Explained:
    """The explanation of one cell of a table."""

    title: str = ""
    """The box, the head if the table has several, and the table."""
    sentence: str
    formula: str
    """LaTeX, with symbols. Positions and features are counted from 1."""
    numbers: str
    """LaTeX: the calculation with the numbers of the cell, and its value."""
    result: float | None
    """The value; None for a masked score or a weight that is blocked."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell, with the forward pass that its formula needs."""

    trace: ForwardTrace
    box: Box
    table: Table
    head: int
    row: int
    column: int

    @property
    def value(self) -> float:
        values = self.table.values
        return float((values[self.head] if values.ndim == 3 else values)[self.row, self.column])

    @property
    def code(self) -> int:
        """Why the cell is blocked; OPEN if it is not, or if no mask applies to its table."""
        return OPEN if self.table.codes is None else int(self.table.codes[self.head, self.row, self.column])

    @property
    def attention(self) -> AttentionPass:
        return self.trace.attentions[self.box.name]

    @property
    def part(self) -> AttentionPass | FeedForwardPass:
        """The attention or the feed-forward part."""
        if self.box.kind == "attention":
            return self.attention
        return self.trace.stacks[self.box.lane].layers[int(self.box.name.split(".")[1])]

    @property
    def token(self) -> str:
        """The token of its row."""
        side = self.box.key_side if self.table.rows == "key" else self.box.side
        return self.trace.tokens(side)[self.row]

    @property
    def here(self) -> str:
        """Its indices in LaTeX."""
        return at(self.row, self.column)

    def said(
        self,
        name: str,
        formula: str,
        sentence: str,
        forms: Callable[[Digits], Sequence[Shown]] | None = None,
        value: float | None = None,
    ) -> Explained:
        """An explanation of the cell: `forms` compute its value; without them, the value is only stated.

        Args:
            name: what stands left of the value or its calculation, in LaTeX.
            value: by default the number in the table.
        """
        value = self.value if value is None else value
        numbers = f"{name} = {number(value)}" if forms is None else equation(name, forms, value)
        return Explained(sentence=sentence, formula=formula, numbers=numbers, result=value)

    def linear(self, name: str, module: str, output: int, vector: Array) -> tuple[str, partial[list[Shown]]]:
        """Name and forms of one output of a linear map."""
        parameters = self.trace.parameters
        bias = parameters.get(f"{module}.bias")
        return name, partial(
            products,
            left=vector,
            right=parameters[f"{module}.weight"][output],
            bias=None if bias is None else float(bias[output]),
        )

    def norm(self, digits: Digits, norm: str, x: Array, made_of: Shown | None = None) -> Shown:
        """The cell's feature of a vector, (D,), after a norm."""
        gain, bias = (self.trace.parameters[f"{norm}.{name}"] for name in ("weight", "bias"))
        return latex.norm_numbers(digits, self.trace.config.model, x, self.column, gain, bias, made_of)


def products(digits: Digits, left: Array, right: Array, bias: float | None = None) -> list[Shown]:
    return [latex.products(digits, left, right, bias)]

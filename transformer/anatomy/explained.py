"""The derivation of one number of a forward pass: its formula with symbols and with its own numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from transformer.anatomy import latex
from transformer.anatomy.boxes import boxes
from transformer.anatomy.cell import Cell, Explained
from transformer.anatomy.explain_inputs import INPUTS
from transformer.anatomy.explain_layers import LAYERS
from transformer.anatomy.latex import broken_formula, broken_numbers, text
from transformer.errors import InputError

if TYPE_CHECKING:
    from transformer.anatomy.passes import ForwardTrace


def explained(trace: ForwardTrace, box: str, table: str, head: int, row: int, column: int) -> Explained:
    """Explain how one number was computed.

    Args:
        box: the name of one of `boxes`.
        table: the key of one of its tables.
        head: counted from 0, like row and column; too large an index means the last one.

    Raises:
        InputError: there is no such box or table.
    """
    named_box = next((one for one in boxes(trace) if one.name == box), None)
    place = None if named_box is None else next((one for one in named_box.tables if one.key == table), None)
    if named_box is None or place is None:
        raise InputError("This model does not have the chosen cell; choose a cell of its picture.")
    n_heads = len(place.values) if place.values.ndim == 3 else 1
    *_, rows, columns = place.values.shape
    cell = Cell(
        trace=trace,
        box=named_box,
        table=place,
        head=min(head, n_heads - 1),
        row=min(row, rows - 1),
        column=min(column, columns - 1),
    )
    made = EXPLAINERS[table](cell)
    of_head = f", head {cell.head + 1}" if n_heads > 1 else ""
    return replace(
        made,
        title=f"{named_box.title}{of_head} · {place.name}",
        formula=broken_formula(made.formula),
        numbers=broken_numbers(made.numbers),
    )


def _stack(cell: Cell) -> Explained:
    last = cell.trace.stacks[cell.box.lane].layers[-1].after[cell.row]
    norm = f"{cell.box.lane}_norm"
    return cell.said(
        rf"\mathrm{{out}}{cell.here}",
        rf"\mathrm{{out}}_i = \mathrm{{norm}}(x_i), \quad {latex.norm_formula(cell.trace.config.model)}",
        "The final norm of the residual stream.",
        lambda digits: [cell.norm(digits, norm, last)],
    )


def _named(symbol: str, cell: Cell) -> str:
    """A symbol with the cell's position and the token of its column as its index."""
    return f"{symbol}_{{{cell.row + 1},{text(cell.trace.vocabulary[cell.column])}}}"


def _logits(cell: Cell) -> Explained:
    output = cell.trace.stacks[cell.box.lane].output[cell.row]
    name, forms = cell.linear(_named("z", cell), "to_logits", cell.column, output)
    sentence = "A last matrix makes a number for every token that can be written."
    return cell.said(name, r"z_i = \mathrm{out}_i W + b", sentence, forms)


def _probabilities(cell: Cell) -> Explained:
    row, right = cell.row, cell.trace.expected[cell.row]
    best = cell.trace.predicted[row]
    said = "is right" if cell.trace.has_answer else "is what the model wrote"
    verdict = f"“{right}” {said}." if right else "Nothing is to be written here."
    return cell.said(
        _named("p", cell),
        r"p_{i,t} = \frac{e^{z_{i,t}}}{\sum_{t'} e^{z_{i,t'}}}",
        f"The softmax makes logits probabilities: here “{best}” is the most probable; {verdict}",
        lambda digits: latex.share(digits, cell.trace.logits[row], cell.column),
    )


EXPLAINERS: dict[str, Callable[[Cell], Explained]] = {
    **INPUTS,
    **LAYERS,
    "stack": _stack,
    "logits": _logits,
    "probabilities": _probabilities,
}
"""Functions that explain the cells of a table, by the table's key."""

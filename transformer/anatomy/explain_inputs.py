"""Explanations of the cells of an embedding: tokens, their vectors, positions."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from transformer.anatomy import latex
from transformer.anatomy.boxes import plain_weights, scaled_embedding
from transformer.anatomy.cell import Cell, Explained, products
from transformer.anatomy.latex import at, text

SINUSOID = (
    r"p_{i,2k+1} = \sin\frac{i - 1}{10000^{2k/d_{model}}}, \quad "
    r"p_{i,2k+2} = \cos\frac{i - 1}{10000^{2k/d_{model}}}"
)
"""Section 3.5 of the paper, which counts positions and features from 0; here they count from 1."""


def _tokens(cell: Cell) -> Explained:
    return Explained(
        sentence="The model reads each token as its number in the vocabulary.",
        formula=r"t_i = \mathrm{id}(\text{token}_i)",
        numbers=rf"t{at(cell.row)} = \mathrm{{id}}({text(cell.token)}) = {cell.value:.0f}",
        result=cell.value,
    )


def _embedding(cell: Cell) -> Explained:
    stack, d_model = cell.trace.stacks[cell.box.lane], cell.trace.config.model.d_model
    name = f"e{cell.here} = E[{text(cell.token)}]{at(cell.column)}"
    if not stack.scaled:
        return cell.said(name, "e_i = E[t_i]", "The token’s row of the learned table.")
    raw = float(stack.embedded[cell.row, cell.column])
    return cell.said(
        rf"{name} \cdot \sqrt{{{d_model}}}",
        r"e_i = E[t_i] \, \sqrt{d_{model}}",
        f"The token’s row of the learned table, times √{d_model}, the root of the model’s width.",
        lambda digits: [digits(raw) * digits(math.sqrt(d_model))],
    )


def _sinusoid(cell: Cell) -> str:
    """The sine or cosine at the cell in LaTeX, without its value."""
    i, f = cell.row, cell.column
    wave = r"\cos" if f % 2 else r"\sin"
    return rf"{wave}\frac{{{i}}}{{10000^{{{f - f % 2}/{cell.trace.config.model.d_model}}}}}"


def _added(cell: Cell) -> Explained:
    i, f, model = cell.row, cell.column, cell.trace.config.model
    if model.positions == "learned":
        sentence = "Each position has a learned vector."
        return cell.said(f"p{cell.here} = P[{i + 1}]{at(f)}", "p_i = P[i]", sentence)
    angle = i / 10_000 ** ((f - f % 2) / model.d_model)
    name, wave = (r"\cos(", math.cos) if f % 2 else (r"\sin(", math.sin)
    return cell.said(
        f"p{cell.here} = {_sinusoid(cell)}",
        SINUSOID,
        "Each pair of features is a sine and a cosine of the position, with longer waves from left to right.",
        lambda digits: [digits(angle).within(name, ")", wave)],
    )


def _likeness(cell: Cell) -> Explained:
    i, j, model = cell.row, cell.column, cell.trace.config.model
    table = cell.trace.stacks[cell.box.lane].positions
    formula = r"p_i \cdot p_j = \sum_f p_{i,f} \, p_{j,f}"
    sentence = "The dot product of two positions says how alike their vectors are."
    if model.positions == "sinusoid" and model.d_model % 2 == 0:
        formula += r" = \sum_k \cos\frac{i - j}{10000^{2k/d_{model}}}"
        sentence = "The dot product of two positions depends only on the distance between them."
    forms = partial(products, left=table[i], right=table[j])
    return cell.said(rf"p{at(i)} \cdot p{at(j)}", formula, sentence, forms)


def _positions(cell: Cell) -> Explained:
    i, f, model = cell.row, cell.column, cell.trace.config.model
    stack = cell.trace.stacks[cell.box.lane]
    name = f"x{cell.here} = e{cell.here}"
    if model.positions == "none":
        sentence = "Nothing is added for the position: equal tokens enter as equal vectors."
        return cell.said(name, "x_i = e_i", sentence)
    before, added = scaled_embedding(cell.trace, stack), stack.positions
    what = _sinusoid(cell) if model.positions == "sinusoid" else f"P[{i + 1}]{at(f)}"
    formula = rf"x_i = e_i + p_i, \quad {SINUSOID}" if model.positions == "sinusoid" else "x_i = e_i + P[i]"
    return cell.said(
        f"{name} + {what}",
        formula,
        "The position’s vector is added, because attention alone does not know the order of tokens.",
        lambda digits: [digits(float(before[i, f])) + digits(float(added[i, f]))],
    )


def _plain(cell: Cell) -> Explained:
    i, j = cell.row, cell.column
    x = cell.trace.stacks[cell.box.lane].entered
    likeness = x.astype(np.float64) @ x.T.astype(np.float64)
    return cell.said(
        f"w'{at(i, j)}",
        r"w'_{ij} = \frac{e^{x_i \cdot x_j}}{\sum_{j'} e^{x_i \cdot x_{j'}}}",
        "For comparison, not a part of the model: attention without a learned matrix, scale or mask.",
        lambda digits: latex.share(digits, likeness[i], j),
        float(plain_weights(x)[i, j]),
    )


INPUTS: dict[str, Callable[[Cell], Explained]] = {
    "tokens": _tokens,
    "embedding": _embedding,
    "added": _added,
    "likeness": _likeness,
    "positions": _positions,
    "plain": _plain,
}
"""Functions that explain the cells of a table, by the table's key."""

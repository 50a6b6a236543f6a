"""The computations that several stages share: inner products and shares of a softmax, with their numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from transformer.anatomy import latex
from transformer.anatomy.latex import told
from transformer.anatomy.panels import Array, Cell, Panel, strip


def inner_product(name: str, value: float, left: Panel, right: Panel) -> Cell:
    """A cell that is the sum of the products of two vectors.

    Args:
        name: of the cell, in LaTeX.
        value: of the cell, as the model computed it.
        left: a strip; what is blocked in it, NaN, counts for nothing.
        right: a strip.
    """
    here = ~np.isnan(left.values)
    numbers = told(
        name, lambda digits: [latex.products(digits, left.values[here], right.values[here])], value
    )
    return Cell(numbers=numbers, sources=_with_products(left, right), result=value)


def linear(
    name: str, value: float, vector: Panel, weights_name: str, weights: Array, bias: float | None
) -> Cell:
    """A cell that is one output of a linear map; among its sources a bias is one more feature, always 1.

    Args:
        name: of the cell, in LaTeX.
        value: of the cell, as the model computed it.
        vector: a strip, what goes in.
        weights_name: what the weights of this output are called.
        weights: (n,), those weights.
    """
    right = replace(vector, name=weights_name, values=weights[None], role="plain")
    numbers = told(name, lambda digits: [latex.products(digits, vector.values[0], weights, bias)], value)
    if bias is not None:
        vector, right = _with_column(vector, "bias", 1.0), _with_column(right, "bias", bias)
    return Cell(numbers=numbers, sources=_with_products(vector, right), result=value)


def _with_products(left: Panel, right: Panel) -> tuple[Panel, ...]:
    """Two strips and their products, without a focused cell."""
    products = replace(
        left, name="products, which add up to the value", values=left.values * right.values, role="plain"
    )
    return tuple(replace(panel, axes=("", "")) for panel in (left, right, products))


def _with_column(vector: Panel, column: str, value: float) -> Panel:
    """A strip with one cell more."""
    values = np.append(vector.values[0], value)
    return strip(vector.name, values, (*vector.columns, column), vector.role, vector.column_title)


def softmax_share(name: str, value: float, scores: Array, place: int, source: Panel) -> Cell:
    """A cell that is the share of one of some scores in their softmax.

    Args:
        name: of the cell, in LaTeX.
        value: of the cell, as the model computed it.
        scores: (n,), those that take part.
        source: the strip in which they are shown.
    """
    numbers = told(name, lambda digits: latex.share(digits, scores, place), value)
    return Cell(numbers=numbers, sources=(source,), result=value)

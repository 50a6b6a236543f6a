"""The stages before an attention: tokens, embeddings, positions, a comparison, and the input."""

from __future__ import annotations

import math

import numpy as np

from transformer.anatomy import latex
from transformer.anatomy.cells import softmax_share
from transformer.anatomy.latex import at, number, told
from transformer.anatomy.panels import Array, Cell, Panel, Stage, vector_strip
from transformer.anatomy.spot import LENGTHS, SIDE_TITLES, Spot
from transformer.insight.names import site_name

READERS = {"src": "encoder", "tgt": "decoder", "seq": "decoder"}
"""The stack that reads a side."""


def tokens(spot: Spot) -> Stage:
    """The token ids that the model reads."""
    sides = {spot.axes.query: "row"} | ({spot.axes.key: "column"} if spot.cross else {})
    n_tokens = {side: len(spot.trace.tokens(side)) for side in sides}
    panels = [
        Panel(
            name=f"{READERS[side]} input",
            values=np.array([spot.trace.ids(side)], dtype=np.float32),
            rows=("id",),
            columns=spot.trace.tokens(side),
            role="ids",
            axes=("", focus),
            column_title=SIDE_TITLES[side],
        )
        for side, focus in sides.items()
    ]
    first, *second = (f"the {READERS[side]}{{}} {n}" for side, n in n_tokens.items())
    read = " and ".join([first.format(" reads"), *(other.format("") for other in second)])
    token_id = spot.trace.ids(spot.axes.query)[spot.row]
    return Stage(
        key="tokens",
        sentence=f"{read[0].upper()}{read[1:]} tokens, each as its index in the vocabulary.",
        shape=", ".join(f"{LENGTHS[side]} = {n}" for side, n in n_tokens.items()),
        panels=tuple(panels),
        formula=r"t_i = \mathrm{id}(\text{token}_i)",
        cell=Cell(
            numbers=rf"t{at(spot.row)} = \mathrm{{id}}({latex.text(spot.query)}) = {token_id}",
            result=float(token_id),
        ),
    )


def _embedded(spot: Spot, stack_name: str) -> Array:
    """(Q, D), token vectors of one stack, scaled if the model scales them."""
    stack = spot.trace.stacks[stack_name]
    root = np.float32(math.sqrt(spot.model.d_model) if stack.scaled else 1.0)
    return stack.embedded * root


def embedding(spot: Spot) -> Stage:
    """The row of the table that belongs to each token."""
    stack, d_model, i, f = spot.stack, spot.model.d_model, spot.row, spot.feature
    values = _embedded(spot, spot.stack_name)
    raw, value = float(stack.embedded[i, f]), float(values[i, f])
    cell = f"x{at(i, f)} = E[{latex.text(spot.query)}]{at(f)}"
    if stack.scaled:
        name, formula = "embedded and scaled", r"x_i = E[t_i] \, \sqrt{d_{model}}"
        times = f", multiplied by √{d_model} so that positions do not dominate"
        numbers = told(
            rf"{cell} \cdot \sqrt{{{d_model}}}",
            lambda digits: [digits(raw) * digits(math.sqrt(d_model))],
            value,
        )
    else:
        name, formula, times, numbers = "embedded", "x_i = E[t_i]", "", f"{cell} = {number(value)}"
    panels = [spot.of_queries(name, values)]
    if spot.cross:
        panels.append(spot.of_keys("the encoder's side", _embedded(spot, "encoder")))
    return Stage(
        key="embedding",
        sentence=f"Each token becomes its row of a learned table: {d_model} numbers{times}.",
        shape=spot.shape("Q", "D"),
        panels=tuple(panels),
        formula=formula,
        cell=Cell(
            numbers=numbers,
            sources=(vector_strip(f"row of “{spot.query}” in the table", stack.embedded[i]),),
            result=value,
        ),
    )


SINUSOID = (
    r"p_{i,2k+1} = \sin\frac{i - 1}{10000^{2k/d_{model}}}, \quad "
    r"p_{i,2k+2} = \cos\frac{i - 1}{10000^{2k/d_{model}}}"
)
"""The paper's section 3.5, whose positions and features are counted from 0, here from 1."""


def sinusoid_numbers(position: int, feature: int, d_model: int) -> str:
    """One cell of the sinusoid table, without its value; both are counted from 0."""
    wave = r"\cos" if feature % 2 else r"\sin"
    return rf"{wave}\frac{{{position}}}{{10000^{{{feature - feature % 2}/{d_model}}}}}"


def positions(spot: Spot) -> Stage:
    """Position vectors, added to the embeddings."""
    model, stack, i, f = spot.model, spot.stack, spot.row, spot.feature
    before, added = _embedded(spot, spot.stack_name), stack.positions
    value = float(stack.entered[i, f])
    panels = [spot.of_queries("with positions", stack.entered)]
    sources = [vector_strip(f"“{spot.query}” embedded", before[i])]
    cell = f"x{at(i, f)} = e{at(i, f)}"
    if model.positions == "none":
        sentence = "This model adds no position vectors, so equal tokens have equal vectors."
        formula, numbers = "x_i = e_i", f"{cell} = {number(value)}"
    else:
        if model.positions == "sinusoid":
            kind, what = "vector of sines and cosines", sinusoid_numbers(i, f, model.d_model)
            formula = rf"x_i = e_i + p_i, \quad {SINUSOID}"
        else:
            kind, what, formula = "learned vector", f"P[{i + 1}]{at(f)}", "x_i = e_i + P[i]"
        sentence = f"A {kind} is added for each position, because attention itself ignores order."
        numbers = told(
            f"{cell} + {what}",
            lambda digits: [digits(float(before[i, f])) + digits(float(added[i, f]))],
            value,
        )
        panels.append(spot.of_queries("position vectors", added))
        sources.append(vector_strip(f"vector of position {i + 1}", added[i]))
    if spot.cross:
        panels.append(spot.of_keys("the encoder's side", spot.trace.stacks["encoder"].entered))
    return Stage(
        key="positions",
        sentence=sentence,
        shape=spot.shape("Q", "D"),
        panels=tuple(panels),
        formula=formula,
        cell=Cell(numbers=numbers, sources=tuple(sources), result=value),
    )


def plain(spot: Spot) -> Stage:
    """Attention without learned matrices, scale or mask: a comparison, not part of the model."""
    i, j = spot.row, spot.column
    x = spot.stack.entered.astype(np.float64)
    y = spot.trace.stacks["encoder"].output.astype(np.float64) if spot.cross else x
    products = x @ y.T  # (Q, S)
    powers = np.exp(products - products.max(axis=1, keepdims=True))
    weights = powers / powers.sum(axis=1, keepdims=True)
    read, other = ("y", "the encoder's outputs") if spot.cross else ("x", "the inputs")
    return Stage(
        key="plain",
        sentence="For comparison only, attention without learned matrices, scaling or mask: the mean of "
        f"{other}, weighted by the softmax of dot products.",
        shape=spot.shape("Q", "S"),
        panels=(
            spot.map("softmax of dot products", weights.astype(np.float32), "weights"),
            spot.of_queries(f"weighted mean of {other}", (weights @ y).astype(np.float32)),
        ),
        formula=rf"w'_{{ij}} = \frac{{e^{{x_i \cdot {read}_j}}}}{{\sum_{{j'}} e^{{x_i \cdot {read}_{{j'}}}}}}"
        rf", \quad z_i = \sum_j w'_{{ij}} \, {read}_j",
        cell=softmax_share(
            f"w'{at(i, j)}",
            float(weights[i, j]),
            products[i],
            j,
            spot.score_strip(f"dot products of “{spot.query}”", products[i]),
        ),
    )


def entering(spot: Spot) -> Stage:
    """The input of queries, keys and values."""
    attention, i, f = spot.attention, spot.row, spot.feature
    value, stream = float(attention.reads[i, f]), attention.stream[i]
    place, cell = site_name(spot.site), rf"\hat{{x}}{at(i, f)}"
    panels = [
        spot.of_queries("input of the queries" if spot.cross else "input of the attention", attention.reads)
    ]
    if spot.model.norm_placement == "pre":
        what = f"the norm of the residual stream in {place}"
        panels.append(spot.of_queries("residual stream before the norm", attention.stream))
        formula = rf"\hat{{x}}_i = \mathrm{{norm}}(x_i), \quad {latex.norm_formula(spot.model)}"
        numbers = told(cell, lambda digits: [spot.norm(digits, attention.norm, stream)], value)
    else:
        what = f"the residual stream in {place}"
        formula, numbers = r"\hat{x}_i = x_i", f"{cell} = x{at(i, f)} = {number(value)}"
    if spot.cross:
        panels.append(spot.of_keys("the encoder's output", attention.memory))
        sentence = (
            f"Queries are computed from {what}, keys and values from the encoder's output: here the decoder "
            "reads the input."
        )
    else:
        sentence = f"Queries, keys and values are all computed from {what}: this is self-attention."
    return Stage(
        key="input",
        sentence=sentence,
        shape=spot.shape("Q", "D"),
        panels=tuple(panels),
        formula=formula,
        cell=Cell(
            numbers=numbers,
            sources=(vector_strip(f"residual stream of “{spot.query}”", stream),),
            result=value,
        ),
    )

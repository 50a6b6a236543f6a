"""The stages before an attention: tokens, embeddings, positions, a comparison, and what goes in."""

from __future__ import annotations

import math

import numpy as np

from transformer.anatomy import latex
from transformer.anatomy.latex import Shown, number, told
from transformer.anatomy.panels import Array, Panel, Stage, vector_strip
from transformer.anatomy.spot import SIDE_TITLES, Spot


def tokens(spot: Spot) -> Stage:
    """What the model reads, as numbers."""
    names = {"src": "encoder", "tgt": "decoder", "seq": "decoder"}
    sides = [(spot.axes.query, "row")] + ([(spot.axes.key, "column")] if spot.cross else [])
    panels = [
        Panel(
            name=f"what the {names[side]} reads",
            values=np.array([spot.trace.ids(side)], dtype=np.float32),
            rows=("id",),
            columns=spot.trace.tokens(side),
            role="ids",
            axes=("", focus),
            column_title=SIDE_TITLES[side],
        )
        for side, focus in sides
    ]
    read = " and ".join(f"the {names[side]} {len(spot.trace.tokens(side))}" for side, _ in sides)
    first = read.replace(f"{names[sides[0][0]]} ", f"{names[sides[0][0]]} reads ", 1)
    token, token_id = spot.queries[spot.row], spot.trace.ids(spot.axes.query)[spot.row]
    return Stage(
        key="tokens",
        title="Tokens",
        sentence=f"{first[0].upper()}{first[1:]} tokens, and to the model each is only a number in "
        "its vocabulary.",
        shape=", ".join(f"{spot.letter(s)} = {len(spot.trace.tokens(s))}" for s, _ in sides),
        panels=tuple(panels),
        formula=r"t_i = \mathrm{id}(\text{token}_i)",
        numbers=rf"t_{{{spot.row + 1}}} = \mathrm{{id}}({latex.text(token)}) = {token_id}",
        result=float(token_id),
    )


def embedding(spot: Spot) -> Stage:
    """The row of the table that belongs to each token."""
    stack, i, f = spot.stack, spot.row, spot.feature(spot.model.d_model)
    root = math.sqrt(spot.model.d_model)
    values = _embedded(spot, spot.stack_name)
    raw, value = float(stack.embedded[i, f]), float(values[i, f])
    panels = [spot.of_queries("embedded" + (" and scaled" if stack.scaled else ""), values)]
    if spot.cross:
        panels.append(spot.of_keys("the encoder's side", _embedded(spot, "encoder")))
    cell = f"x_{{{i + 1},{f + 1}}} = E[{latex.text(spot.queries[i])}]_{{{f + 1}}}"
    scaled = told(
        rf"{cell} \cdot \sqrt{{{spot.model.d_model}}}",
        lambda more: [latex.multiplied(raw, root, more)],
        value,
    )
    times = (
        f" times √{spot.model.d_model}, so that it is not drowned by the positions" if stack.scaled else ""
    )
    return Stage(
        key="embedding",
        title="Embeddings",
        sentence=f"Each token is looked up in a learned table: its row of {spot.model.d_model} "
        f"numbers{times}.",
        shape=spot.shape("Q", "D"),
        panels=tuple(panels),
        formula=r"x_i = E[t_i] \, \sqrt{d_{model}}" if stack.scaled else "x_i = E[t_i]",
        numbers=scaled if stack.scaled else f"{cell} = {number(value)}",
        sources=(vector_strip(f"the table's row of “{spot.queries[i]}”", stack.embedded[i]),),
        result=value,
    )


def _embedded(spot: Spot, stack_name: str) -> Array:
    """(Q, D), token vectors of one stack, scaled where it scales them."""
    stack = spot.trace.stacks[stack_name]
    root = np.float32(math.sqrt(spot.model.d_model) if stack.scaled else 1.0)
    return stack.embedded * root


def sinusoid_formula() -> str:
    """The paper's section 3.5, whose positions and features are counted from 0, here from 1."""
    return (
        r"p_{i,2k+1} = \sin\frac{i - 1}{10000^{2k/d_{model}}}, \quad "
        r"p_{i,2k+2} = \cos\frac{i - 1}{10000^{2k/d_{model}}}"
    )


def sinusoid_numbers(position: int, feature: int, d_model: int) -> str:
    """One cell of the sinusoid table, without its value; both are counted from 0."""
    wave = r"\cos" if feature % 2 else r"\sin"
    return rf"{wave}\frac{{{position}}}{{10000^{{{feature - feature % 2}/{d_model}}}}}"


def positions(spot: Spot) -> Stage:
    """What tells one place from another."""
    model, stack, i, f = spot.model, spot.stack, spot.row, spot.feature(spot.model.d_model)
    before = _embedded(spot, spot.stack_name)
    value = float(stack.entered[i, f])
    panels = [spot.of_queries("with positions", stack.entered)]
    sources = [vector_strip(f"“{spot.queries[i]}” embedded", before[i])]
    x = f"x_{{{i + 1},{f + 1}}}"
    if model.positions == "none":
        sentence = "Nothing is added for the position here, so equal tokens enter as equal vectors."
        formula, numbers = "x_i = e_i", f"{x} = e_{{{i + 1},{f + 1}}} = {number(value)}"
    else:
        panels.append(spot.of_queries("what is added", stack.positions))
        sources.append(vector_strip(f"the vector of position {i + 1}", stack.positions[i]))

        def sums(more: int) -> list[Shown]:
            return [latex.added(float(before[i, f]), float(stack.positions[i, f]), more)]

        if model.positions == "sinusoid":
            kind, wave = "of sines and cosines", sinusoid_numbers(i, f, model.d_model)
            formula = rf"x_i = e_i + p_i, \quad {sinusoid_formula()}"
            numbers = told(f"{x} = e_{{{i + 1},{f + 1}}} + {wave}", sums, value)
        else:
            kind, formula = "that was learned", "x_i = e_i + P[i]"
            numbers = told(f"{x} = e_{{{i + 1},{f + 1}}} + P[{i + 1}]_{{{f + 1}}}", sums, value)
        sentence = f"A vector {kind} is added for each position, because attention alone knows no order."
    if spot.cross:
        panels.append(spot.of_keys("the encoder's side", spot.trace.stacks["encoder"].entered))
    return Stage(
        key="positions",
        title="Positions",
        sentence=sentence,
        shape=spot.shape("Q", "D"),
        panels=tuple(panels),
        formula=formula,
        numbers=numbers,
        sources=tuple(sources),
        result=value,
    )


def plain(spot: Spot) -> Stage:
    """Attention without any learned matrix, scale or mask: a comparison, no part of the model."""
    x = spot.stack.entered.astype(np.float64)
    y = spot.trace.stacks["encoder"].output.astype(np.float64) if spot.cross else x
    i, j = spot.row, spot.column
    products = x @ y.T  # (Q, S)
    powers = np.exp(products - products.max(axis=1, keepdims=True))
    weights = powers / powers.sum(axis=1, keepdims=True)
    value = float(weights[i, j])
    read, other = ("y", "the encoder's outputs") if spot.cross else ("x", "the inputs")
    return Stage(
        key="plain",
        title="Attention without parameters",
        sentence="For comparison only, the bare idea, without a learned matrix, scale or mask: weights are "
        f"the softmax of plain dot products, and out comes the weighted mean of {other}.",
        shape=spot.shape("Q", "S"),
        panels=(
            spot.map("weights of plain dot products", weights.astype(np.float32), "weights"),
            spot.of_queries(f"weighted mean of {other}", (weights @ y).astype(np.float32)),
        ),
        formula=rf"w'_{{ij}} = \frac{{e^{{x_i \cdot {read}_j}}}}{{\sum_{{j'}} e^{{x_i \cdot {read}_{{j'}}}}}}"
        rf", \quad z_i = \sum_j w'_{{ij}} \, {read}_j",
        numbers=told(f"w'_{{{i + 1},{j + 1}}}", lambda more: latex.share(products[i], j, more), value),
        sources=(spot.score_strip(f"plain dot products of “{spot.queries[i]}” with all", products[i]),),
        result=value,
    )


def entering(spot: Spot) -> Stage:
    """Where queries, keys and values come from."""
    attention, model = spot.attention, spot.model
    i, f = spot.row, spot.feature(spot.model.d_model)
    value, first = float(attention.reads[i, f]), model.norm_placement == "pre"
    stream = "the norm of the residual stream" if first else "the residual stream"
    panels = [spot.of_queries("what queries are made of" if spot.cross else "what goes in", attention.reads)]
    if first:
        panels.append(spot.of_queries("residual stream before the norm", attention.stream))
    if spot.cross:
        panels.append(spot.of_keys("the encoder's output", attention.memory))
        sentence = (
            f"Queries are made of {stream} in {spot.place}, keys and values of the encoder's output: "
            "this is where the decoder reads the word."
        )
    else:
        sentence = (
            f"Queries, keys and values are all made of {stream} in {spot.place}, which "
            "therefore reads itself."
        )
    cell = rf"\hat{{x}}_{{{i + 1},{f + 1}}}"
    if first:
        gain, bias = spot.norm_of(f"{attention.residual}.norm")
        formula = rf"\hat{{x}}_i = \mathrm{{norm}}(x_i), \quad {latex.norm_formula(model)}"
        stream_in = attention.stream[i]
        numbers = told(cell, lambda more: [latex.norm_numbers(model, stream_in, f, gain, bias, more)], value)
    else:
        formula, numbers = r"\hat{x}_i = x_i", f"{cell} = x_{{{i + 1},{f + 1}}} = {number(value)}"
    return Stage(
        key="input",
        title="What goes in",
        sentence=sentence,
        shape=spot.shape("Q", "D"),
        panels=tuple(panels),
        formula=formula,
        numbers=numbers,
        sources=(vector_strip(f"residual stream of “{spot.queries[i]}”", attention.stream[i]),),
        result=value,
    )


ENTERING = (tokens, embedding, positions, plain, entering)

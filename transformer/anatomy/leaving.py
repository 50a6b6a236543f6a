"""The stages after an attention: joined heads, residual and norm, feed-forward, the whole stack."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from transformer.anatomy import latex
from transformer.anatomy.cells import linear
from transformer.anatomy.latex import Digits, Shown, at, number, told
from transformer.anatomy.masking import masked_map
from transformer.anatomy.panels import Cell, Panel, Stage, numbered, vector_strip
from transformer.anatomy.spot import Spot

ACTIVATIONS = {"relu": r"\mathrm{ReLU}", "leaky_relu": r"\mathrm{LeakyReLU}", "gelu": r"\mathrm{GELU}"}
ADDED = {
    "pre": "{x}_i + {a}_i",
    "post": r"\mathrm{{norm}}({x}_i + {a}_i)",
    "branch": r"{x}_i + \mathrm{{norm}}({a}_i)",
}
"""The stream x and what a part gives, a, by where the norm stands."""
WHY_ADDED = {
    "pre": "The attention output is added to the residual stream; norms are applied only to the input of "
    "each part (pre-norm).",
    "post": "The attention output is added to the residual stream, and the sum is normalised, as in the "
    "paper (post-norm).",
    "branch": "The attention output is normalised and then added to the residual stream, which itself is "
    "never normalised.",
}


def heads(spot: Spot) -> Stage:
    """The outputs of all heads, concatenated and projected."""
    attention, model, i, f = spot.attention, spot.model, spot.row, spot.feature
    n, d_head = model.n_heads, model.d_head
    weights, bias = spot.weights_of(f"{attention.module}.to_output", f)
    off = spot.trace.interventions.heads_off_at(spot.site)
    lost = f" (switched off: {', '.join(str(h + 1) for h in off)})" if off else ""
    side_by_side = replace(
        spot.of_queries("concatenated heads", attention.joined, "value", feature=""),
        off=tuple((h * d_head, (h + 1) * d_head) for h in off),
    )
    maps = [masked_map(spot, f"head {h + 1}", attention.weights[h], "weights", h) for h in range(n)]
    return Stage(
        key="heads",
        sentence=f"The outputs of all {n} heads{lost} are concatenated, {n} × {d_head} = {model.d_model} "
        "numbers, and multiplied by an output matrix."
        if n > 1
        else f"The output of the one head{lost} is multiplied by an output matrix.",
        shape=spot.shape("Q", "D"),
        panels=(spot.of_queries("projected", attention.output), side_by_side, *maps),
        formula=r"a_i = [\,o_i^{(1)}; \dots; o_i^{(H)}\,] \, W_O" + (" + b_O" if bias is not None else ""),
        cell=linear(
            f"a{at(i, f)}",
            float(attention.output[i, f]),
            vector_strip(f"concatenated heads of “{spot.query}”", attention.joined[i], "value"),
            f"weights of feature {f + 1}",
            weights,
            bias,
        ),
    )


def residual(spot: Spot) -> Stage:
    """The residual connection of the attention, and its norm."""
    part, placement, i, f = spot.attention, spot.model.norm_placement, spot.row, spot.feature
    stream, output, normed = part.stream[i], part.output[i], part.normed[i]
    shown = {"residual stream before": part.stream, "attention output": part.output}
    if placement == "post":
        shown["sum, before the norm"] = part.stream + part.output
    if placement == "branch":
        shown["normalised attention output"] = part.normed

    def forms(digits: Digits) -> list[Shown]:
        here = digits(float(stream[f]))
        if placement == "branch":
            norm = spot.norm(digits, part.norm, output)
            return [here + norm.within(r"\Big(", r"\Big)"), here + digits(float(normed[f]))]
        total = here + digits(float(output[f]))
        return [total if placement == "pre" else spot.norm(digits, part.norm, stream + output, total)]

    formula = "x'_i = " + ADDED[placement].format(x="x", a="a")
    if placement != "pre":
        formula += rf", \quad {latex.norm_formula(spot.model)}"
    value = float(part.after[i, f])
    return Stage(
        key="residual",
        sentence=WHY_ADDED[placement],
        shape=spot.shape("Q", "D"),
        panels=(
            spot.of_queries("residual stream after", part.after),
            *(spot.of_queries(name, values) for name, values in shown.items()),
        ),
        formula=formula,
        cell=Cell(
            numbers=told(f"x'{at(i, f)}", forms, value),
            sources=tuple(vector_strip(name, values[i]) for name, values in shown.items()),
            result=value,
        ),
    )


def feed_forward(spot: Spot) -> Stage:
    """The feed-forward network of the layer."""
    model, i, f = spot.model, spot.row, spot.feature
    part = spot.stack.layers[int(spot.site.split(".")[1])]
    before = "After the cross-attention of this layer, each" if spot.axes.kind == "decoder" else "Each"
    x = r"\hat{x}'_i" if model.norm_placement == "pre" else "x'_i"
    added = ADDED[model.norm_placement].format(x="x'", a="f")
    n_active = int((part.hidden[i] > 0).sum())
    return Stage(
        key="feed_forward",
        sentence=f"{before} position passes separately through a linear map to {model.d_ff} features, an "
        f"activation and a linear map back to {model.d_model}; for {spot.query_token}, {n_active} of "
        f"{model.d_ff} hidden features are above zero.",
        shape=spot.shape("Q", "D"),
        panels=(
            spot.of_queries("feed-forward output", part.output),
            spot.of_queries("hidden, after the activation", part.hidden, feature=""),
            spot.of_queries("residual stream after the layer", part.after),
        ),
        formula=rf"h_i = {ACTIVATIONS[model.activation]}({x} W_1 + b_1), \quad f_i = h_i W_2 + b_2, \quad "
        f"x''_i = {added}",
        cell=linear(
            f"f{at(i, f)}",
            float(part.output[i, f]),
            vector_strip(f"hidden features of “{spot.query}”", part.hidden[i]),
            f"weights of feature {f + 1}",
            *spot.weights_of(f"{part.module}.narrow", f),
        ),
    )


def stack(spot: Spot) -> Stage:
    """One token's vector on its way through all layers."""
    found, model, i, f = spot.stack, spot.model, spot.row, spot.feature
    n = len(found.layers)
    streams = [found.entered[i], *(layer.after[i] for layer in found.layers)]
    rows = ["input", *(f"after layer {layer + 1}" for layer in range(n))]
    last, value = streams[-1], float(found.output[i, f])
    cell, x = rf"\mathrm{{out}}{at(i, f)}", f"x_i^{{({n})}}"
    if model.final_norm:
        streams.append(found.output[i])
        rows.append("after the final norm")
        formula = rf"\mathrm{{out}}_i = \mathrm{{norm}}({x}), \quad {latex.norm_formula(model)}"
        norm = f"{spot.stack_name}_norm"
        numbers = told(cell, lambda digits: [spot.norm(digits, norm, last)], value)
    else:
        formula = rf"\mathrm{{out}}_i = {x}"
        numbers = rf"{cell} = x{at(i, f)}^{{({n})}} = {number(value)}"
    reader = "logits are computed from" if spot.axes.writes else "decoder's cross-attention reads"
    return Stage(
        key="stack",
        sentence=f"The vector of {spot.query_token} after each layer; the {reader} the last row.",
        shape=f"(rows, D) = ({len(rows)}, {model.d_model})",
        panels=(
            Panel(
                name=f"the {spot.stack_name}'s residual stream of {spot.query_token}",
                values=np.stack(streams),
                rows=tuple(rows),
                columns=numbered(model.d_model),
                axes=("", "feature"),
                column_title="feature",
            ),
        ),
        formula=formula,
        cell=Cell(numbers=numbers, sources=(vector_strip(f"after layer {n}", last),), result=value),
    )

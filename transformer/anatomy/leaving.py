"""The stages behind an attention: the heads joined, residual and norm, feed-forward, the whole stack."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from transformer.anatomy import latex
from transformer.anatomy.latex import Shown, number, shown, told
from transformer.anatomy.masking import masked_map
from transformer.anatomy.panels import Array, Panel, Stage, linear_strips, numbered, vector_strip
from transformer.anatomy.spot import Spot

ACTIVATIONS = {"relu": r"\mathrm{ReLU}", "leaky_relu": r"\mathrm{LeakyReLU}", "gelu": r"\mathrm{GELU}"}


def heads(spot: Spot) -> Stage:
    """What all heads read, made one vector again."""
    attention, model, i = spot.attention, spot.model, spot.row
    f, n = spot.feature(model.d_model), model.n_heads
    value = float(attention.projected[i, f])
    weight, bias = spot.linear(f"{attention.module}.to_output", f)
    off = spot.trace.interventions.heads_off_at(spot.site)
    lost = f" (switched off and so all zeros: {', '.join(str(h + 1) for h in off)})" if off else ""
    maps = [masked_map(spot, f"head {h + 1}", attention.weights[h], "weights", h) for h in range(n)]
    return Stage(
        key="heads",
        title="Heads joined",
        sentence=f"All {n} heads{lost} have looked in their own way; what they read is put side by side, "
        f"{n} × {model.d_head} = {model.d_model} numbers, and one more matrix mixes it."
        if n > 1
        else f"The one head's{lost} reading goes through one more matrix.",
        shape=spot.shape("Q", "D"),
        panels=(
            spot.of_queries("projected", attention.projected),
            replace(
                spot.of_queries("heads side by side", attention.joined, "value", feature=""),
                off=tuple((h * model.d_head, (h + 1) * model.d_head) for h in off),
            ),
            *maps,
        ),
        formula=r"a_i = [\,o_i^{(1)}; \dots; o_i^{(H)}\,] \, W_O" + (" + b_O" if bias is not None else ""),
        numbers=told(
            f"a_{{{i + 1},{f + 1}}}",
            lambda more: [latex.products(attention.joined[i], weight, bias, more)],
            value,
        ),
        sources=linear_strips(
            (f"heads side by side of “{spot.queries[i]}”", attention.joined[i], "value"),
            f"the weights of feature {f + 1}",
            weight,
            bias,
        ),
        result=value,
    )


def _added(
    spot: Spot, stream: Array, branch: Array, normed: Array, norm: str, x: str, a: str
) -> tuple[str, Callable[[int], list[Shown]]]:
    """Formula and numbers of a residual connection at the focused cell.

    Args:
        stream: (D,), the residual stream before it.
        branch: (D,), what the branch gives.
        normed: (D,), what the norm gives.
        norm: the norm's place in the parameters.
        x: what the stream is called.
        a: what the branch is called.
    """
    model, f = spot.model, spot.feature(spot.model.d_model)
    gain, bias = spot.norm_of(norm)

    def plain(more: int) -> list[Shown]:
        return [latex.added(float(stream[f]), float(branch[f]), more)]

    def sum_normed(more: int) -> list[Shown]:
        return [latex.norm_numbers(model, stream + branch, f, gain, bias, more, plain(more)[0])]

    def normed_added(more: int) -> list[Shown]:
        here, inside = shown(float(stream[f]), more), latex.norm_numbers(model, branch, f, gain, bias, more)
        text = rf"{here.text} + \Big({inside.text}\Big)"
        whole = Shown(text, here.value + inside.value, here.exact + inside.exact)
        return [whole, latex.added(float(stream[f]), float(normed[f]), more)]

    if model.norm_placement == "pre":
        return f"{x}_i + {a}_i", plain
    if model.norm_placement == "post":
        return rf"\mathrm{{norm}}({x}_i + {a}_i), \quad {latex.norm_formula(model)}", sum_normed
    return rf"{x}_i + \mathrm{{norm}}({a}_i), \quad {latex.norm_formula(model)}", normed_added


def residual(spot: Spot) -> Stage:
    """What was read is added to what was there."""
    attention, model, i = spot.attention, spot.model, spot.row
    f = spot.feature(model.d_model)
    value = float(attention.after[i, f])
    formula, numbers = _added(
        spot,
        attention.stream[i],
        attention.projected[i],
        attention.normed[i],
        f"{attention.residual}.norm",
        "x",
        "a",
    )
    panels = [
        spot.of_queries("residual stream behind it", attention.after),
        spot.of_queries("residual stream before it", attention.stream),
        spot.of_queries("what attention gives", attention.projected),
    ]
    sources = [
        vector_strip("residual stream before it", attention.stream[i]),
        vector_strip("what attention gives", attention.projected[i]),
    ]
    why = {
        "pre": "What attention gives is added to the residual stream, which such sums alone change: norms "
        "stand only on the way into each part.",
        "post": "What attention gives is added to the residual stream, and the sum is normalised, as in the "
        "paper.",
        "branch": "What attention gives is normalised and then added to the residual stream, which itself is "
        "never normalised.",
    }
    if model.norm_placement == "branch":
        panels.append(spot.of_queries("its norm, which is added", attention.normed))
        sources.append(vector_strip("its norm, which is added", attention.normed[i]))
    if model.norm_placement == "post":
        total = attention.stream + attention.projected
        panels.append(spot.of_queries("their sum, before the norm", total))
        sources.append(vector_strip("their sum, before the norm", total[i]))
    return Stage(
        key="residual",
        title="Residual and norm",
        sentence=why[model.norm_placement],
        shape=spot.shape("Q", "D"),
        panels=tuple(panels),
        formula=f"x'_i = {formula}",
        numbers=told(f"x'_{{{i + 1},{f + 1}}}", numbers, value),
        sources=tuple(sources),
        result=value,
    )


def feed_forward(spot: Spot) -> Stage:
    """Each position thinks for itself."""
    part, model, i = spot.feed_forward, spot.model, spot.row
    f, d_ff = spot.feature(model.d_model), model.d_ff
    value = float(part.output[i, f])
    weight, bias = spot.linear(f"{part.module}.narrow", f)
    total, _ = _added(
        spot, part.stream[i], part.output[i], part.normed[i], f"{part.residual}.norm", "x'", "f"
    )
    before = "Behind the cross-attention of this layer, each" if spot.axes.kind == "decoder" else "Each"
    x = r"\hat{x}'_i" if model.norm_placement == "pre" else "x'_i"
    active = (
        f"{int((part.hidden[i] > 0).sum())} of {d_ff} hidden features are above zero for {spot.query_token}"
    )
    return Stage(
        key="feed_forward",
        title="Feed-forward",
        sentence=f"{before} position is worked on by itself: widened to {d_ff} features, bent by an "
        f"activation, and narrowed again to {model.d_model}; {active}.",
        shape=spot.shape("Q", "D"),
        panels=(
            spot.of_queries("what it gives", part.output),
            spot.of_queries("hidden, after the activation", part.hidden, feature=""),
            spot.of_queries("residual stream behind the layer", part.after),
        ),
        formula=rf"h_i = {ACTIVATIONS[model.activation]}({x} W_1 + b_1), \quad f_i = h_i W_2 + b_2, \quad "
        rf"x''_i = {total.split(', ')[0]}",
        numbers=told(
            f"f_{{{i + 1},{f + 1}}}", lambda more: [latex.products(part.hidden[i], weight, bias, more)], value
        ),
        sources=linear_strips(
            (f"hidden features of “{spot.queries[i]}”", part.hidden[i], "plain"),
            f"the weights of feature {f + 1}",
            weight,
            bias,
        ),
        result=value,
    )


def stack(spot: Spot) -> Stage:
    """One token's vector on its way through all layers."""
    found, model, i = spot.stack, spot.model, spot.row
    f, name = spot.feature(model.d_model), spot.stack_name
    streams = [found.entered[i], *(layer.after[i] for layer in found.layers)]
    rows = ["as it enters", *(f"behind layer {n + 1}" for n in range(len(found.layers)))]
    last, out = streams[-1], rf"\mathrm{{out}}_{{{i + 1},{f + 1}}}"
    value, n = float(found.output[i, f]), len(found.layers)
    if model.final_norm:
        streams.append(found.output[i])
        rows.append("behind the final norm")
        gain, bias = spot.norm_of(f"{name}_norm")
        formula = rf"\mathrm{{out}}_i = \mathrm{{norm}}(x_i^{{({n})}}), \quad {latex.norm_formula(model)}"
        numbers = told(out, lambda more: [latex.norm_numbers(model, last, f, gain, bias, more)], value)
    else:
        formula = rf"\mathrm{{out}}_i = x_i^{{({n})}}"
        numbers = rf"{out} = x_{{{i + 1},{f + 1}}}^{{({n})}} = {number(value)}"
    goes = "the logits are made of" if spot.axes.writes else "the decoder's cross-attention reads"
    return Stage(
        key="stack",
        title="Through the stack",
        sentence=f"Layer by layer the vector of {spot.query_token} changes; its last row here is "
        f"what {goes}.",
        shape=f"(rows, D) = ({len(rows)}, {model.d_model})",
        panels=(
            Panel(
                name=f"the {name}'s residual stream of {spot.query_token}",
                values=np.stack(streams),
                rows=tuple(rows),
                columns=numbered(model.d_model),
                axes=("", "feature"),
                column_title="feature",
            ),
        ),
        formula=formula,
        numbers=numbers,
        sources=(vector_strip(f"behind layer {n}", last),),
        result=value,
    )


LEAVING = (heads, residual, feed_forward, stack)

"""Explanations of the cells of attention and feed-forward parts."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from transformer.anatomy import latex
from transformer.anatomy.cell import Cell, Explained, products
from transformer.anatomy.latex import Digits, Shown, at, number, text
from transformer.shared.attention_info import OPEN, REASONS

ACTIVATIONS: dict[str, tuple[str, Callable[[float], float]]] = {
    "relu": (r"\mathrm{ReLU}", lambda x: max(x, 0.0)),
    "leaky_relu": (r"\mathrm{LeakyReLU}", lambda x: x if x > 0 else 0.01 * x),
    "gelu": (r"\mathrm{GELU}", lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2),
}
ADDED = {
    "pre": "{x}_i + {a}_i",
    "post": r"\mathrm{{norm}}({x}_i + {a}_i)",
    "branch": r"{x}_i + \mathrm{{norm}}({a}_i)",
}
"""The sum of the stream x and the output a of a box, by `norm_placement`."""


def _stream(cell: Cell) -> Explained:
    return cell.said(f"x{cell.here}", "x_i", "The residual stream before this box.")


def _input(cell: Cell) -> Explained:
    part = cell.part
    return cell.said(
        rf"\hat{{x}}{cell.here}",
        rf"\hat{{x}}_i = \mathrm{{norm}}(x_i), \quad {latex.norm_formula(cell.trace.config.model)}",
        "Each position’s vector is standardised before the box reads it.",
        lambda digits: [cell.norm(digits, part.norm, part.stream[cell.row])],
    )


def _memory(cell: Cell) -> Explained:
    return cell.said(f"m{cell.here}", "m_j", "The encoder’s output, from which keys and values are made.")


def _projected(cell: Cell, part: str, symbol: str, says: str) -> Explained:
    attention, model = cell.attention, cell.trace.config.model
    source, name = (attention.reads, r"\hat{x}_i") if part == "query" else (attention.memory, r"\hat{x}_j")
    if part != "query" and cell.box.key_side != cell.box.side:
        name = "m_j"
    elif model.norm_placement != "pre":
        name = name.replace(r"\hat{x}", "x")
    index, bias = "i" if part == "query" else "j", f" + b_{symbol}" if model.qkv_bias else ""
    output = cell.head * model.d_head + cell.column
    named, forms = cell.linear(
        f"{part[0]}{cell.here}", f"{attention.module}.to_{part}", output, source[cell.row]
    )
    formula = f"{part[0]}_{index} = {name} W_{symbol}{bias}"
    return cell.said(named, formula, f"A learned matrix makes {says}.", forms)


def _scores(cell: Cell) -> Explained:
    i, j, h = cell.row, cell.column, cell.head
    attention = cell.attention
    return cell.said(
        rf"q{at(i)} \cdot k{at(j)}",
        r"(Q K^\top)_{ij} = q_i \cdot k_j = \sum_f q_{i,f} \, k_{j,f}",
        "Each query is multiplied with every key: the better they match, the higher the score.",
        partial(products, left=attention.query[h, i], right=attention.key[h, j]),
    )


def _scale(cell: Cell) -> Explained:
    i, j, model = cell.row, cell.column, cell.trace.config.model
    product = float((cell.attention.query[cell.head] @ cell.attention.key[cell.head].T)[i, j])
    width = model.score_width
    symbol, why = {
        "sqrt_d_head": (
            "d_{head}",
            f"√{width}, the root of a head’s width, so that the softmax does not saturate",
        ),
        "sqrt_d_model": (
            "d_{model}",
            f"√{width}, the root of the model’s width, so that the softmax stays soft",
        ),
        "none": ("1", "1: this model does not scale them, and its softmax saturates sooner"),
    }[model.score_scale]
    return cell.said(
        rf"s{cell.here} = \frac{{q{at(i)} \cdot k{at(j)}}}{{\sqrt{{{width}}}}}",
        rf"s_{{ij}} = \frac{{q_i \cdot k_j}}{{\sqrt{{{symbol}}}}}",
        f"Each score is divided by {why}.",
        lambda digits: [digits(product) / digits(math.sqrt(width))],
    )


_FILLS = {"-inf": (r"-\infty", "minus infinity"), "-1e9": ("-10^9", "a large negative number")}
"""By `mask_fill`: the score of a blocked cell in LaTeX, and in words."""


def _mask(cell: Cell) -> Explained:
    fill, elsewhere = _FILLS[cell.trace.config.model.mask_fill]
    why = REASONS[cell.code] if cell.code else "may be read"
    return Explained(
        sentence=f"The mask is added to the scores: 0 where a position may be read, {elsewhere} elsewhere.",
        formula=rf"m_{{ij}} = \begin{{cases}} 0 & \text{{where }} i \text{{ may read }} j \\ "
        rf"{fill} & \text{{elsewhere}} \end{{cases}}",
        numbers=rf"m{cell.here} = {fill if cell.code else 0} \quad {text(f'({why})')}",
        result=float(cell.code),
    )


def _masked(cell: Cell) -> Explained:
    score = cell.value
    fills = {"-inf": r"(-\infty) = -\infty", "-1e9": r"(-10^9) \approx -10^9"}
    end = f"0 = {number(score)}" if not cell.code else fills[cell.trace.config.model.mask_fill]
    return Explained(
        sentence="Scores plus mask: the softmax sees only what may be read.",
        formula=r"\tilde{s}_{ij} = s_{ij} + m_{ij}",
        numbers=rf"\tilde{{s}}{cell.here} = {number(score)} + {end}",
        result=None if cell.code else score,
    )


def _weights(cell: Cell) -> Explained:
    formula = r"w_{ij} = \frac{e^{\tilde{s}_{ij}}}{\sum_{j'} e^{\tilde{s}_{ij'}}}"
    sentence = "The softmax makes each row of scores a row of weights that add up to 1."
    if cell.code:
        fill, _ = _FILLS[cell.trace.config.model.mask_fill]
        zero = rf"w{cell.here} = \frac{{e^{{{fill}}}}}{{\dots}} = 0"
        return Explained(sentence=sentence, formula=formula, numbers=zero, result=None)
    assert cell.table.codes is not None
    open_to = cell.table.codes[cell.head, cell.row] == OPEN
    scores = cell.attention.scores[cell.head, cell.row][open_to]
    place = int(open_to[: cell.column].sum())  # among the open cells
    return cell.said(f"w{cell.here}", formula, sentence, lambda digits: latex.share(digits, scores, place))


def _mixed(cell: Cell) -> Explained:
    attention, h, i = cell.attention, cell.head, cell.row
    off = " The head is switched off: zeros replace this." if h in cell.box.off else ""
    weights = np.where(attention.mask[h, i], attention.weights[h, i], np.float32(0))
    return cell.said(
        f"o{cell.here}",
        r"o_i = \sum_j w_{ij} \, v_j",
        f"The mean of the values, weighted by the row of weights.{off}",
        partial(
            products,
            left=weights[attention.mask[h, i]],
            right=attention.value[h, attention.mask[h, i], cell.column],
        ),
    )


def _joined(cell: Cell) -> Explained:
    d_head, f = cell.trace.config.model.d_head, cell.column
    head, inside = f // d_head, f % d_head
    off = " That head is switched off." if head in cell.box.off else ""
    return cell.said(
        f"c{cell.here} = o^{{({head + 1})}}{at(cell.row, inside)}",
        r"c_i = [\,o_i^{(1)}; \dots; o_i^{(H)}\,]",
        f"The outputs of all heads side by side; this feature is of head {head + 1}.{off}",
    )


def _heads(cell: Cell) -> Explained:
    attention, bias = cell.attention, " + b_O" if cell.trace.config.model.output_bias else ""
    name, forms = cell.linear(
        f"a{cell.here}", f"{attention.module}.to_output", cell.column, attention.joined[cell.row]
    )
    return cell.said(name, f"a_i = c_i W_O{bias}", "One more matrix mixes the heads.", forms)


def _residual(cell: Cell) -> Explained:
    part, placement, f = cell.part, cell.trace.config.model.norm_placement, cell.column
    stream, output, normed = part.stream[cell.row], part.output[cell.row], part.normed[cell.row]
    symbol = "a" if cell.box.kind == "attention" else "f"

    def forms(digits: Digits) -> list[Shown]:
        here = digits(float(stream[f]))
        if placement == "branch":
            norm = cell.norm(digits, part.norm, output)
            return [here + norm.within(r"\Big(", r"\Big)"), here + digits(float(normed[f]))]
        total = here + digits(float(output[f]))
        return [total if placement == "pre" else cell.norm(digits, part.norm, stream + output, total)]

    formula = "x'_i = " + ADDED[placement].format(x="x", a=symbol)
    if placement != "pre":
        formula += rf", \quad {latex.norm_formula(cell.trace.config.model)}"
    sentence = {
        "pre": "The box adds to the residual stream; the norm stands before the box.",
        "post": "The box adds to the residual stream, and the sum is normalised, as in the paper.",
        "branch": "What the box gives is normalised and added to the residual stream.",
    }[placement]
    return cell.said(f"x'{cell.here}", formula, sentence, forms)


def _hidden(cell: Cell) -> Explained:
    part = cell.part
    symbol, bend = ACTIVATIONS[cell.trace.config.model.activation]
    name, forms = cell.linear(f"h{cell.here}", f"{part.module}.widen", cell.column, part.reads[cell.row])
    x = r"\hat{x}" if cell.trace.config.model.norm_placement == "pre" else "x"
    return cell.said(
        name,
        rf"h_i = {symbol}({x}_i W_1 + b_1)",
        "Each position by itself is widened, and an activation bends each feature.",
        lambda digits: [form.within(f"{symbol}(", ")", bend) for form in forms(digits)],
    )


def _narrowed(cell: Cell) -> Explained:
    part = cell.part
    assert hasattr(part, "hidden")
    name, forms = cell.linear(f"f{cell.here}", f"{part.module}.narrow", cell.column, part.hidden[cell.row])
    return cell.said(name, "f_i = h_i W_2 + b_2", "The hidden features are narrowed again.", forms)


LAYERS: dict[str, Callable[[Cell], Explained]] = {
    "stream": _stream,
    "input": _input,
    "memory": _memory,
    "query": partial(_projected, part="query", symbol="Q", says="a query, what a position looks for"),
    "key": partial(_projected, part="key", symbol="K", says="a key, by which a position is found"),
    "value": partial(_projected, part="value", symbol="V", says="a value, what a position hands over"),
    "scores": _scores,
    "scale": _scale,
    "mask": _mask,
    "masked": _masked,
    "weights": _weights,
    "mixed": _mixed,
    "joined": _joined,
    "heads": _heads,
    "residual": _residual,
    "hidden": _hidden,
    "narrowed": _narrowed,
}
"""Functions that explain the cells of a table, by the table's key."""

"""The derivation of one number of a forward pass: its formula with symbols and with its own numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from transformer.anatomy import latex
from transformer.anatomy.boxes import Box, Table, boxes, plain_weights, scaled_embedding
from transformer.anatomy.latex import Digits, Shown, at, broken_formula, broken_numbers, number, text, told
from transformer.axes import OPEN, REASONS
from transformer.errors import InputError
from transformer.insight.scores import Array

if TYPE_CHECKING:
    from transformer.anatomy.passes import AttentionPass, FeedForwardPass, ForwardTrace

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
SINUSOID = (
    r"p_{i,2k+1} = \sin\frac{i - 1}{10000^{2k/d_{model}}}, \quad "
    r"p_{i,2k+2} = \cos\frac{i - 1}{10000^{2k/d_{model}}}"
)
"""Section 3.5 of the paper, which counts positions and features from 0; here they count from 1."""


@dataclass(frozen=True, kw_only=True)
class Explained:
    """The explanation of one cell of a table."""

    title: str = ""
    """The box, the head where there are several, and the table."""
    sentence: str
    formula: str
    """LaTeX, with symbols. Positions and features are counted from 1."""
    numbers: str
    """LaTeX, the formula with its numbers, ending with the value."""
    result: float | None
    """The value; None where the cell is blocked."""


@dataclass(frozen=True, kw_only=True)
class _Cell:
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
        """Why the cell is blocked; OPEN if it is not."""
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
        """An explanation of the cell: `forms` compute its value; without them, the value is only stated."""
        value = self.value if value is None else value
        numbers = f"{name} = {number(value)}" if forms is None else told(name, forms, value)
        return Explained(sentence=sentence, formula=formula, numbers=numbers, result=value)

    def linear(self, name: str, module: str, output: int, vector: Array) -> tuple[str, partial[list[Shown]]]:
        """Name and forms of one output of a linear map."""
        parameters = self.trace.parameters
        bias = parameters.get(f"{module}.bias")
        return name, partial(
            _products,
            left=vector,
            right=parameters[f"{module}.weight"][output],
            bias=None if bias is None else float(bias[output]),
        )

    def norm(self, digits: Digits, norm: str, x: Array, made_of: Shown | None = None) -> Shown:
        """The cell's feature of a vector, (D,), after a norm."""
        gain, bias = (self.trace.parameters[f"{norm}.{name}"] for name in ("weight", "bias"))
        return latex.norm_numbers(digits, self.trace.config.model, x, self.column, gain, bias, made_of)


def _products(digits: Digits, left: Array, right: Array, bias: float | None = None) -> list[Shown]:
    return [latex.products(digits, left, right, bias)]


def explained(trace: ForwardTrace, box: str, table: str, head: int, row: int, column: int) -> Explained:
    """Explain how one number was computed.

    Args:
        box: the name of one of `boxes`.
        table: the key of one of its tables.
        head: counted from 0, like row and column; too large an index means the last one.

    Raises:
        InputError: there is no such box or table.
    """
    found = next((one for one in boxes(trace) if one.name == box), None)
    place = None if found is None else next((one for one in found.tables if one.key == table), None)
    if found is None or place is None:
        raise InputError(f"This model has no {table!r} in {box!r}; choose a cell of the picture.")
    n_heads = len(place.values) if place.values.ndim == 3 else 1
    *_, rows, columns = place.values.shape
    cell = _Cell(
        trace=trace,
        box=found,
        table=place,
        head=min(head, n_heads - 1),
        row=min(row, rows - 1),
        column=min(column, columns - 1),
    )
    made = EXPLAINERS[table](cell)
    of_head = f", head {cell.head + 1}" if n_heads > 1 else ""
    return replace(
        made,
        title=f"{found.title}{of_head} · {place.name}",
        formula=broken_formula(made.formula),
        numbers=broken_numbers(made.numbers),
    )


# Embedding.


def _tokens(cell: _Cell) -> Explained:
    return Explained(
        sentence="The model reads each token as its number in the vocabulary.",
        formula=r"t_i = \mathrm{id}(\text{token}_i)",
        numbers=rf"t{at(cell.row)} = \mathrm{{id}}({text(cell.token)}) = {cell.value:.0f}",
        result=cell.value,
    )


def _embedding(cell: _Cell) -> Explained:
    stack, d_model = cell.trace.stacks[cell.box.lane], cell.trace.config.model.d_model
    name = f"e{cell.here} = E[{text(cell.token)}]{at(cell.column)}"
    if not stack.scaled:
        return cell.said(name, "e_i = E[t_i]", "The token’s row of the learned table.")
    raw = float(stack.embedded[cell.row, cell.column])
    return cell.said(
        rf"{name} \cdot \sqrt{{{d_model}}}",
        r"e_i = E[t_i] \, \sqrt{d_{model}}",
        f"The token’s row of the learned table, times √{d_model}, so that positions do not outweigh it.",
        lambda digits: [digits(raw) * digits(math.sqrt(d_model))],
    )


def _sinusoid(cell: _Cell) -> str:
    """One cell of the sinusoid table, without its value."""
    i, f = cell.row, cell.column
    wave = r"\cos" if f % 2 else r"\sin"
    return rf"{wave}\frac{{{i}}}{{10000^{{{f - f % 2}/{cell.trace.config.model.d_model}}}}}"


def _added(cell: _Cell) -> Explained:
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


def _likeness(cell: _Cell) -> Explained:
    i, j, model = cell.row, cell.column, cell.trace.config.model
    table = cell.trace.stacks[cell.box.lane].positions
    formula = r"p_i \cdot p_j = \sum_f p_{i,f} \, p_{j,f}"
    sentence = "The dot product of two positions says how alike their vectors are."
    if model.positions == "sinusoid" and model.d_model % 2 == 0:
        formula += r" = \sum_k \cos\frac{i - j}{10000^{2k/d_{model}}}"
        sentence = "The dot product of two positions depends only on the distance between them."
    forms = partial(_products, left=table[i], right=table[j])
    return cell.said(rf"p{at(i)} \cdot p{at(j)}", formula, sentence, forms)


def _positions(cell: _Cell) -> Explained:
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


def _plain(cell: _Cell) -> Explained:
    i, j = cell.row, cell.column
    x = cell.trace.stacks[cell.box.lane].entered
    products = x.astype(np.float64) @ x.T.astype(np.float64)
    return cell.said(
        f"w'{at(i, j)}",
        r"w'_{ij} = \frac{e^{x_i \cdot x_j}}{\sum_{j'} e^{x_i \cdot x_{j'}}}",
        "For comparison, not a part of the model: attention without a learned matrix, scale or mask.",
        lambda digits: latex.share(digits, products[i], j),
        float(plain_weights(x)[i, j]),
    )


# Attention and feed-forward.


def _stream(cell: _Cell) -> Explained:
    return cell.said(f"x{cell.here}", "x_i", "The residual stream before this box.")


def _input(cell: _Cell) -> Explained:
    part = cell.part
    return cell.said(
        rf"\hat{{x}}{cell.here}",
        rf"\hat{{x}}_i = \mathrm{{norm}}(x_i), \quad {latex.norm_formula(cell.trace.config.model)}",
        "Each position’s vector is standardised before the box reads it.",
        lambda digits: [cell.norm(digits, part.norm, part.stream[cell.row])],
    )


def _memory(cell: _Cell) -> Explained:
    return cell.said(f"m{cell.here}", "m_j", "The encoder’s output, from which keys and values are made.")


def _projected(cell: _Cell, part: str, symbol: str, says: str) -> Explained:
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


def _scores(cell: _Cell) -> Explained:
    i, j, h = cell.row, cell.column, cell.head
    attention = cell.attention
    return cell.said(
        rf"q{at(i)} \cdot k{at(j)}",
        r"(Q K^\top)_{ij} = q_i \cdot k_j = \sum_f q_{i,f} \, k_{j,f}",
        "Each query is multiplied with every key: the better they match, the higher the score.",
        partial(_products, left=attention.query[h, i], right=attention.key[h, j]),
    )


def _scale(cell: _Cell) -> Explained:
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


def _mask(cell: _Cell) -> Explained:
    fill = r"-\infty" if cell.trace.config.model.mask_fill == "-inf" else "-10^9"
    why = REASONS[cell.code] if cell.code else "may be read"
    return Explained(
        sentence="The mask is added to the scores: 0 where a position may be read, minus infinity elsewhere.",
        formula=rf"m_{{ij}} = \begin{{cases}} 0 & \text{{where }} i \text{{ may read }} j \\ "
        rf"{fill} & \text{{elsewhere}} \end{{cases}}",
        numbers=rf"m{cell.here} = {fill if cell.code else 0} \quad {text(f'({why})')}",
        result=float(cell.code),
    )


def _masked(cell: _Cell) -> Explained:
    score = cell.value
    fills = {"-inf": r"(-\infty) = -\infty", "-1e9": r"(-10^9) \approx -10^9"}
    end = f"0 = {number(score)}" if not cell.code else fills[cell.trace.config.model.mask_fill]
    return Explained(
        sentence="Scores plus mask: the softmax sees only what may be read.",
        formula=r"\tilde{s}_{ij} = s_{ij} + m_{ij}",
        numbers=rf"\tilde{{s}}{cell.here} = {number(score)} + {end}",
        result=None if cell.code else score,
    )


def _weights(cell: _Cell) -> Explained:
    formula = r"w_{ij} = \frac{e^{\tilde{s}_{ij}}}{\sum_{j'} e^{\tilde{s}_{ij'}}}"
    sentence = "The softmax makes each row of scores a row of weights that add up to 1."
    if cell.code:
        zero = rf"w{cell.here} = \frac{{e^{{-\infty}}}}{{\dots}} = 0"
        return Explained(sentence=sentence, formula=formula, numbers=zero, result=None)
    assert cell.table.codes is not None
    open_to = cell.table.codes[cell.head, cell.row] == OPEN
    scores = cell.attention.scores[cell.head, cell.row][open_to]
    place = int(open_to[: cell.column].sum())  # among the open cells
    return cell.said(f"w{cell.here}", formula, sentence, lambda digits: latex.share(digits, scores, place))


def _mixed(cell: _Cell) -> Explained:
    attention, h, i = cell.attention, cell.head, cell.row
    off = " The head is switched off: zeros replace this." if h in cell.box.off else ""
    weights = np.where(attention.mask[h, i], attention.weights[h, i], np.float32(0))
    return cell.said(
        f"o{cell.here}",
        r"o_i = \sum_j w_{ij} \, v_j",
        f"The mean of the values, weighted by the row of weights.{off}",
        partial(
            _products,
            left=weights[attention.mask[h, i]],
            right=attention.value[h, attention.mask[h, i], cell.column],
        ),
    )


def _joined(cell: _Cell) -> Explained:
    d_head, f = cell.trace.config.model.d_head, cell.column
    head, inside = f // d_head, f % d_head
    off = " That head is switched off." if head in cell.box.off else ""
    return cell.said(
        f"c{cell.here} = o^{{({head + 1})}}{at(cell.row, inside)}",
        r"c_i = [\,o_i^{(1)}; \dots; o_i^{(H)}\,]",
        f"The outputs of all heads side by side; this feature is of head {head + 1}.{off}",
    )


def _heads(cell: _Cell) -> Explained:
    attention, bias = cell.attention, " + b_O" if cell.trace.config.model.output_bias else ""
    name, forms = cell.linear(
        f"a{cell.here}", f"{attention.module}.to_output", cell.column, attention.joined[cell.row]
    )
    return cell.said(name, f"a_i = c_i W_O{bias}", "One more matrix mixes the heads.", forms)


def _residual(cell: _Cell) -> Explained:
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


def _hidden(cell: _Cell) -> Explained:
    part = cell.part
    symbol, bend = ACTIVATIONS[cell.trace.config.model.activation]
    name, forms = cell.linear(f"h{cell.here}", f"{part.module}.widen", cell.column, part.reads[cell.row])
    x = r"\hat{x}" if cell.trace.config.model.norm_placement == "pre" else "x"
    return cell.said(
        name,
        rf"h_i = {symbol}({x}_i W_1 + b_1)",
        "Each position by itself is widened, and an activation bends each feature.",
        lambda digits: [one.within(f"{symbol}(", ")", bend) for one in forms(digits)],
    )


def _narrowed(cell: _Cell) -> Explained:
    part = cell.part
    assert hasattr(part, "hidden")
    name, forms = cell.linear(f"f{cell.here}", f"{part.module}.narrow", cell.column, part.hidden[cell.row])
    return cell.said(name, "f_i = h_i W_2 + b_2", "The hidden features are narrowed again.", forms)


# Output.


def _stack(cell: _Cell) -> Explained:
    last = cell.trace.stacks[cell.box.lane].layers[-1].after[cell.row]
    norm = f"{cell.box.lane}_norm"
    return cell.said(
        rf"\mathrm{{out}}{cell.here}",
        rf"\mathrm{{out}}_i = \mathrm{{norm}}(x_i), \quad {latex.norm_formula(cell.trace.config.model)}",
        "The final norm of the residual stream.",
        lambda digits: [cell.norm(digits, norm, last)],
    )


def _named(symbol: str, cell: _Cell) -> str:
    """A symbol with the cell's position and the token of its column as its index."""
    return f"{symbol}_{{{cell.row + 1},{text(cell.trace.vocabulary[cell.column])}}}"


def _logits(cell: _Cell) -> Explained:
    output = cell.trace.stacks[cell.box.lane].output[cell.row]
    name, forms = cell.linear(_named("z", cell), "to_logits", cell.column, output)
    sentence = "A last matrix makes a number for every token that can be written."
    return cell.said(name, r"z_i = \mathrm{out}_i W + b", sentence, forms)


def _probabilities(cell: _Cell) -> Explained:
    row, right = cell.row, cell.trace.expected[cell.row]
    best = cell.trace.predicted[row]
    verdict = f"“{right}” is right." if right else "Nothing is to be written here."
    return cell.said(
        _named("p", cell),
        r"p_{i,t} = \frac{e^{z_{i,t}}}{\sum_{t'} e^{z_{i,t'}}}",
        f"The softmax makes logits probabilities: here “{best}” is the most probable; {verdict}",
        lambda digits: latex.share(digits, cell.trace.logits[row], cell.column),
    )


EXPLAINERS: dict[str, Callable[[_Cell], Explained]] = {
    "tokens": _tokens,
    "embedding": _embedding,
    "added": _added,
    "likeness": _likeness,
    "positions": _positions,
    "plain": _plain,
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
    "stack": _stack,
    "logits": _logits,
    "probabilities": _probabilities,
}
"""Key of a table to the function that explains its cells."""

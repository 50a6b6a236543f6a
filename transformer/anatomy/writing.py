"""The last two stages: logits and probabilities of the next token."""

from __future__ import annotations

import numpy as np

from transformer.anatomy import latex
from transformer.anatomy.cells import linear, softmax_share
from transformer.anatomy.panels import Array, Panel, Stage, strip, vector_strip
from transformer.anatomy.spot import Spot

MOST_NAMED = 3
"""Tokens that the last stage names."""


def _written(spot: Spot) -> tuple[int, int]:
    """The row of the logits that is explained, and its token: the right one, or the most probable."""
    trace = spot.trace
    row = spot.row if spot.axes.writes else 0
    return row, trace.vocabulary.index(trace.expected[row] or trace.predicted[row])


def _over_vocabulary(
    spot: Spot, name: str, values: Array, role: str, hover_rows: tuple[str, ...] = ()
) -> Panel:
    """A number for each position and each token that can be written, (T, V), the right tokens marked."""
    trace = spot.trace
    return Panel(
        name=name,
        values=values,
        rows=trace.rows("tgt"),
        columns=trace.vocabulary,
        role=role,
        axes=("row" if spot.axes.writes else "", ""),
        row_title="reads → should write",
        column_title="next token",
        hover_rows=hover_rows,
        marked=tuple((i, trace.vocabulary.index(to)) for i, to in enumerate(trace.expected) if to),
    )


def _name_of(symbol: str, row: int, token: str) -> str:
    """A cell in the row of a position and the column of a token."""
    return f"{symbol}_{{{row + 1},{latex.text(token)}}}"


def logits(spot: Spot) -> Stage:
    """The logits of every row."""
    trace = spot.trace
    row, token = _written(spot)
    output = trace.stacks["decoder" if "decoder" in trace.stacks else "encoder"].output[row]
    name = trace.vocabulary[token]
    return Stage(
        key="logits",
        sentence=f"{'A' if spot.axes.writes else 'In the decoder, a'} learned matrix turns the output of the "
        "stack into one number per token of the vocabulary.",
        shape=spot.shape("T", "V"),
        panels=(_over_vocabulary(spot, "logits", trace.logits, "scores"),),
        formula=r"z_i = \mathrm{out}_i W + b",
        cell=linear(
            _name_of("z", row, name),
            float(trace.logits[row, token]),
            vector_strip(f"output of the stack for “{trace.tgt_tokens[row]}”", output),
            f"weights of “{name}”",
            *spot.weights_of("to_logits", token),
        ),
    )


def _verdict(spot: Spot, row: int) -> str:
    """The most probable next tokens of one row, and which is right."""
    trace = spot.trace
    likeliest = np.argsort(-trace.probabilities[row], kind="stable")[:MOST_NAMED]
    named = [f"“{trace.vocabulary[k]}” {trace.probabilities[row, k]:.1%}" for k in likeliest]
    said = f"Most probable after “{trace.tgt_tokens[row]}” (position {row + 1}): {', '.join(named)}"
    right, first = trace.expected[row], trace.vocabulary[likeliest[0]]
    if not right:
        return f"{said}; no output is expected here."
    if right == first:
        return f"{said}; “{right}” is right ✓."
    share = trace.probabilities[row, trace.vocabulary.index(right)]
    return f"{said}; “{right}” ({share:.1%}) would be right ✗."


def probabilities(spot: Spot) -> Stage:
    """The probabilities of every row."""
    trace = spot.trace
    row, token = _written(spot)
    verdicts = tuple(_verdict(spot, i) for i in range(len(trace.tgt_tokens)))
    z = trace.logits[row]
    return Stage(
        key="probabilities",
        sentence=("" if spot.axes.writes else "Decoder: ") + verdicts[row],
        shape=spot.shape("T", "V"),
        panels=(_over_vocabulary(spot, "probabilities", trace.probabilities, "probabilities", verdicts),),
        formula=r"p_{i,t} = \frac{e^{z_{i,t}}}{\sum_{t'} e^{z_{i,t'}}}",
        cell=softmax_share(
            _name_of("p", row, trace.vocabulary[token]),
            float(trace.probabilities[row, token]),
            z,
            token,
            strip(f"logits after “{trace.tgt_tokens[row]}”", z, trace.vocabulary, "scores", "token"),
        ),
    )

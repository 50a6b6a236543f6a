"""The last two stages: a number for every token that could come next, and how likely that makes each."""

from __future__ import annotations

import numpy as np

from transformer.anatomy import latex
from transformer.anatomy.latex import told
from transformer.anatomy.panels import Array, Panel, Stage, linear_strips, strip
from transformer.anatomy.spot import Spot

MOST_NAMED = 3
"""Tokens that the last stage names."""


def _written(spot: Spot) -> tuple[int, int]:
    """Which row of the logits is explained, and which token of it: the right one, or the likeliest."""
    trace = spot.trace
    row = spot.row if spot.axes.writes else 0
    return row, trace.vocabulary.index(trace.expected[row] or trace.predicted[row])


def _over_vocabulary(
    spot: Spot, name: str, values: Array, role: str, hover_rows: tuple[str, ...] = ()
) -> Panel:
    """A number for each position and each token that can be written, (T, V), the right tokens marked."""
    trace = spot.trace
    pairs = list(zip(trace.tgt_tokens, trace.expected, strict=True))
    return Panel(
        name=name,
        values=values,
        rows=tuple(f"{read} → {to}" if to else read for read, to in pairs),
        columns=trace.vocabulary,
        role=role,
        axes=("row" if spot.axes.writes else "", ""),
        row_title="after reading → writes",
        column_title="token that may be written",
        hover_rows=hover_rows,
        marked=tuple((i, trace.vocabulary.index(to)) for i, (_, to) in enumerate(pairs) if to),
    )


GOES_ON = (
    "The encoder writes nothing itself: its output goes to the decoder's cross-attention as keys and values, "
    "and "
)


def logits(spot: Spot) -> Stage:
    """A number for every token that could come next."""
    trace = spot.trace
    row, token = _written(spot)
    out = trace.stacks["decoder" if "decoder" in trace.stacks else "encoder"].output[row]
    weight, bias = spot.linear("to_logits", token)
    value, name = float(trace.logits[row, token]), trace.vocabulary[token]
    does = "a last matrix turns the output of the stack into one number for every token that can be written"
    return Stage(
        key="logits",
        title="Logits",
        sentence=f"{does[0].upper()}{does[1:]}." if spot.axes.writes else f"{GOES_ON}there {does}.",
        shape=spot.shape("T", "V"),
        panels=(_over_vocabulary(spot, "logits", trace.logits, "scores"),),
        formula=r"z_i = \mathrm{out}_i W + b",
        numbers=told(
            f"z_{{{row + 1},{latex.text(name)}}}",
            lambda more: [latex.products(out, weight, bias, more)],
            value,
        ),
        sources=linear_strips(
            (f"output of the stack for “{trace.tgt_tokens[row]}”", out, "plain"),
            f"the weights of “{name}”",
            weight,
            bias,
        ),
        result=value,
    )


def _verdict(spot: Spot, row: int) -> str:
    """The likeliest next tokens of one row, and which is right."""
    trace = spot.trace
    likeliest = np.argsort(-trace.probabilities[row], kind="stable")[:MOST_NAMED]
    named = [f"“{trace.vocabulary[k]}” {trace.probabilities[row, k]:.1%}" for k in likeliest]
    said = f"after “{trace.tgt_tokens[row]}” (position {row + 1}) the likeliest are {', '.join(named)}"
    right, first = trace.expected[row], trace.vocabulary[likeliest[0]]
    if not right:
        return f"{said}, but nothing is to be written here"
    if right == first:
        return f"{said}, and “{right}” is right ✓"
    share = trace.probabilities[row, trace.vocabulary.index(right)]
    return f"{said}, but “{right}” ({share:.1%}) would be right ✗"


def probabilities(spot: Spot) -> Stage:
    """How likely every token is to come next."""
    trace = spot.trace
    row, token = _written(spot)
    value, verdicts = (
        float(trace.probabilities[row, token]),
        [_verdict(spot, i) for i in range(len(trace.tgt_tokens))],
    )
    upper = tuple(f"{text[0].upper()}{text[1:]}." for text in verdicts)
    z, name = trace.logits[row], latex.text(trace.vocabulary[token])
    return Stage(
        key="probabilities",
        title="Probabilities",
        sentence=upper[row] if spot.axes.writes else f"{GOES_ON}{verdicts[row]}.",
        shape=spot.shape("T", "V"),
        panels=(_over_vocabulary(spot, "probabilities", trace.probabilities, "probabilities", upper),),
        formula=r"p_{i,t} = \frac{e^{z_{i,t}}}{\sum_{t'} e^{z_{i,t'}}}",
        numbers=told(f"p_{{{row + 1},{name}}}", lambda more: latex.share(z, token, more), value),
        sources=(strip(f"logits after “{trace.tgt_tokens[row]}”", z, trace.vocabulary, "scores", "token"),),
        result=value,
    )


WRITING = (logits, probabilities)

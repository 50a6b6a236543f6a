"""A forward pass as the boxes of a picture: each box with its tables of numbers, packed for a browser."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.insight.scores import Array
from transformer.shared.attention_info import BY_HAND, FUTURE, OPEN, PADDING, AttentionInfo
from transformer.shared.interventions import PAD

if TYPE_CHECKING:
    from transformer.anatomy.passes import AttentionPass, FeedForwardPass, ForwardTrace, StackPass

MOST_WRITTEN = 3
"""Number of tokens that the logit lens lists at each position."""
CHANGEABLE_SETTINGS = {
    "norm_placement": ("pre", "post", "branch"),
    "score_scale": ("sqrt_d_head", "sqrt_d_model", "none"),
}
"""Settings that may be changed for a trained model, with their values: the same weights fit all of them."""


@dataclass(frozen=True, eq=False)
class Table:
    """A table of numbers in a box, or one per head."""

    key: str
    name: str
    values: Array
    """(rows, columns), or (H, rows, columns)."""
    rows: str
    """What the rows are: a side (src, tgt or seq), or "key" for tokens of `Box.key_side`."""
    columns: str
    """What the columns are: "key" as for `rows`, "feature", "input feature", "head feature", "value feature",
    "joined feature", "hidden" or "token"; empty for the ids of tokens."""
    role: str = "plain"
    """query, key, value, weights, probabilities, scores, mask (codes), ids or plain."""
    made_of: tuple[str, ...] = ()
    """Keys of the tables of the same box from which it is computed."""
    codes: Array | None = None
    """(H, rows, columns), the codes of `mask_codes`; None for tables to which no mask applies."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Box:
    """One part of the model."""

    name: str
    """encoder.embedding, the name of an attention's site, decoder.0.feed_forward or decoder.output."""
    kind: str
    """embedding, attention, feed_forward or output."""
    title: str
    sentence: str
    """What it does, in one or two sentences."""
    side: str
    """The side that its stack reads: src, tgt or seq."""
    key_side: str = ""
    """The side of its keys, in an attention or an embedding; empty in other boxes."""
    off: tuple[int, ...] = ()
    """Heads that are switched off, counted from 0."""
    tables: tuple[Table, ...]

    @property
    def lane(self) -> str:
        """The stack that contains the box: encoder or decoder."""
        return self.name.split(".")[0]


def arranged(config: RunConfig, asked: Mapping[str, str]) -> RunConfig:
    """The configuration of a run with a visitor's changes to `CHANGEABLE_SETTINGS`.

    Args:
        asked: new values by name of the setting; other names are ignored.

    Raises:
        InputError: a value is none of those in `CHANGEABLE_SETTINGS`.
    """
    changes = {name: asked[name] for name in CHANGEABLE_SETTINGS if name in asked}
    for name, value in changes.items():
        if value not in CHANGEABLE_SETTINGS[name]:
            raise InputError(f"{name} is {value!r}; choose one of {', '.join(CHANGEABLE_SETTINGS[name])}.")
    return config.with_changes(**changes)


def mask_codes(trace: ForwardTrace, site: str) -> Array:
    """(H, Q, S) int, why each cell is blocked: `BY_HAND` where only an intervention blocks it, `OPEN` where
    nothing does."""
    axes, open_to = trace.axes[site], trace.attentions[site].mask
    rows, columns = np.indices(open_to.shape[1:])
    padding = (np.array(trace.tokens(axes.key)) == PAD) & axes.padding
    codes = FUTURE * ((columns > rows) & axes.causal) + PADDING * padding
    assert not (open_to & (codes != OPEN)).any()
    return np.where((codes == OPEN) & ~open_to, BY_HAND, codes)


def boxes(trace: ForwardTrace) -> tuple[Box, ...]:
    """Every box of a model in the order of its forward pass."""
    all_boxes = []
    for stack_name, stack in trace.stacks.items():
        sites = [site for site in trace.axes if site.split(".")[0] == stack_name]
        side = trace.axes[sites[0]].query
        all_boxes.append(_embedding(trace, stack_name, stack, side))
        for layer, part in enumerate(stack.layers):
            all_boxes += [
                _attention(trace, site, trace.axes[site], trace.attentions[site])
                for site in sites
                if int(site.split(".")[1]) == layer
            ]
            all_boxes.append(_feed_forward(trace, f"{stack_name}.{layer}.feed_forward", part, side))
        writes = any(trace.axes[site].writes for site in sites)
        all_boxes.append(_output(trace, stack_name, stack, side, writes))
    return tuple(all_boxes)


def scaled_embedding(trace: ForwardTrace, stack: StackPass) -> Array:
    """(Q, D), the token vectors of one stack, multiplied by √d_model if the stack scales them."""
    root = np.float32(math.sqrt(trace.config.model.d_model) if stack.scaled else 1.0)
    return stack.embedded * root


def plain_weights(x: Array) -> Array:
    """(Q, Q) float64, attention without learned matrix, scale or mask: the softmax of plain dot products."""
    products = x.astype(np.float64) @ x.T.astype(np.float64)
    powers = np.exp(products - products.max(axis=1, keepdims=True))
    weights: Array = powers / powers.sum(axis=1, keepdims=True)
    return weights


def _embedding(trace: ForwardTrace, name: str, stack: StackPass, side: str) -> Box:
    positions, added = trace.config.model.positions, stack.positions
    embedded, ids = scaled_embedding(trace, stack), np.array(trace.ids(side), dtype=np.float32)
    title = "embedded and scaled" if stack.scaled else "embedded"
    tables = [
        Table("tokens", "id", ids[:, None], side, "", "ids"),
        Table("embedding", title, embedded, side, "feature", made_of=("tokens",)),
    ]
    made_of: tuple[str, ...] = ("embedding",)
    if positions != "none":
        made_of = ("embedding", "added")
        likeness = added @ added.T
        tables += [
            Table("added", "position p", added, side, "feature"),
            Table("likeness", "positions: p pᵀ", likeness, side, "key", "scores", ("added",)),
        ]
    plain = plain_weights(stack.entered).astype(np.float32)
    tables += [
        Table("positions", "x: sum", stack.entered, side, "feature", made_of=made_of),
        Table("plain", "comparison: softmax(x xᵀ)", plain, side, "key", "weights", ("positions",)),
    ]
    how = {
        "none": "Nothing is added for the position.",
        "sinusoid": "A vector of sines and cosines is added for its position.",
        "learned": "A learned vector is added for its position.",
    }
    return Box(
        name=f"{name}.embedding",
        kind="embedding",
        title="Embedding",
        sentence=f"Each token becomes a learned vector of {trace.config.model.d_model} numbers. "
        f"{how[positions]}",
        side=side,
        key_side=side,
        tables=tuple(tables),
    )


def _read(trace: ForwardTrace, part: AttentionPass | FeedForwardPass, side: str) -> list[Table]:
    """The stream before a part, and its norm in a pre-norm model; the part reads the last of these tables."""
    tables = [Table("stream", "stream", part.stream, side, "feature")]
    if trace.config.model.norm_placement == "pre":
        tables.append(Table("input", "norm", part.reads, side, "input feature", made_of=("stream",)))
    return tables


def _attention(trace: ForwardTrace, site: str, axes: AttentionInfo, part: AttentionPass) -> Box:
    model, codes, side = trace.config.model, mask_codes(trace, site), axes.query
    cross, n = axes.kind == "cross", model.n_heads
    products = np.asarray(part.query @ part.key.swapaxes(1, 2))
    tables = _read(trace, part, side)
    reads = keys_from = (tables[-1].key,)
    if cross:
        tables.append(Table("memory", "encoder", part.memory, "key", "input feature"))
        keys_from = ("memory",)
    blocked = codes.astype(np.float32)
    scaled = f"Q Kᵀ / √{model.score_width}"
    tables += [
        Table("query", "Q", part.query, side, "head feature", "query", reads),
        Table("key", "K", part.key, "key", "head feature", "key", keys_from),
        Table("value", "V", part.value, "key", "value feature", "value", keys_from),
        Table("scores", "Q Kᵀ", products, side, "key", "scores", ("query", "key")),
        Table("scale", scaled, part.scores, side, "key", "scores", ("scores",)),
        Table("mask", "mask", blocked, side, "key", "mask", codes=codes),
        Table("masked", "masked", part.scores, side, "key", "scores", ("scale", "mask"), codes),
        Table("weights", "softmax: weights", part.weights, side, "key", "weights", ("masked",), codes),
        Table("mixed", "weights × V", part.mixed, side, "value feature", "value", ("weights", "value")),
        Table("joined", "joined", part.joined, side, "joined feature", "value", ("mixed",)),
        Table("heads", "output", part.output, side, "feature", made_of=("joined",)),
        Table("residual", "after", part.after, side, "feature", made_of=("stream", "heads")),
    ]
    where = "the encoder’s output" if cross else "the positions that it may attend to"
    hidden = [what for what, on in (("later tokens", axes.causal), ("[PAD]", axes.padding)) if on]
    masks = f" The mask blocks {' and '.join(hidden)}." if hidden else ""
    return Box(
        name=site,
        kind="attention",
        title=f"{'Cross' if cross else 'Self'}-attention {int(site.split('.')[1]) + 1}",
        sentence=f"{n} head{'s' if n > 1 else ''}: each position takes a weighted mean of the values of "
        f"{where}.{masks}",
        side=side,
        key_side=axes.key,
        off=tuple(trace.interventions.heads_off_at(site)),
        tables=tuple(tables),
    )


def _feed_forward(trace: ForwardTrace, name: str, part: FeedForwardPass, side: str) -> Box:
    model = trace.config.model
    tables, activation = _read(trace, part, side), model.activation.replace("_", " ")
    reads = (tables[-1].key,)
    tables += [
        Table("hidden", f"widened, {activation}", part.hidden, side, "hidden", made_of=reads),
        Table("narrowed", "narrowed", part.output, side, "feature", made_of=("hidden",)),
        Table("residual", "after", part.after, side, "feature", made_of=("stream", "narrowed")),
    ]
    return Box(
        name=name,
        kind="feed_forward",
        title=f"Feed-forward {int(name.split('.')[1]) + 1}",
        sentence=f"Each position by itself: {model.d_model} features are widened to {model.d_ff}, pass a "
        f"{activation}, and are narrowed to {model.d_model}.",
        side=side,
        tables=tuple(tables),
    )


def _output(trace: ForwardTrace, name: str, stack: StackPass, side: str, writes: bool) -> Box:
    final = trace.config.model.final_norm
    tables = [Table("stream", "stream", stack.layers[-1].after, side, "feature")]
    if final:
        tables.append(Table("stack", "final norm", stack.output, side, "input feature", made_of=("stream",)))
    if writes:
        reads, shares = (tables[-1].key,), trace.probabilities
        tables += [
            Table("logits", "logits", trace.logits, side, "token", "scores", reads),
            Table("probabilities", "softmax", shares, side, "token", "probabilities", ("logits",)),
        ]
    norm = "The final norm, and then a" if final else "A"
    return Box(
        name=f"{name}.output",
        kind="output",
        title="Next token" if writes else "Encoder’s output",
        sentence=f"{norm} linear map to a logit for each of the {len(trace.vocabulary)} tokens; the softmax "
        "makes them probabilities."
        if writes
        else "Every cross-attention makes its keys and values from this.",
        side=side,
        tables=tuple(tables),
    )


# Data for the browser.


def packed(trace: ForwardTrace, step: int, **more: Any) -> bytes:
    """A line of JSON, followed by the numbers of all tables as float32, little-endian.

    Args:
        more: further entries of the line of JSON.
    """
    all_boxes = boxes(trace)
    sides = {side: trace.tokens(side) for box in all_boxes for side in (box.side, box.key_side) if side}
    writing = next(box for box in reversed(all_boxes) if box.kind == "output").side
    arrays: list[Array] = []

    def placed(array: Array) -> list[int]:
        arrays.append(array)
        return list(array.shape)

    head = {
        "step": step,
        "tokens": sides,
        "rows": sides | {writing: trace.rows(writing)},
        "writing": writing,
        "expected": trace.expected,
        "hasAnswer": trace.has_answer,
        "vocabulary": trace.vocabulary,
        "boxes": [
            {
                "name": box.name,
                "kind": box.kind,
                "lane": box.lane,
                "title": box.title,
                "sentence": box.sentence,
                "side": box.side,
                "keySide": box.key_side,
                "off": box.off,
                "lens": _lens(trace, box.name),
                "tables": [
                    {
                        "key": table.key,
                        "name": table.name,
                        "role": table.role,
                        "rows": table.rows,
                        "columns": table.columns,
                        "madeOf": table.made_of,
                        "coded": table.codes is not None,
                        "shape": placed(table.values),
                    }
                    for table in box.tables
                ],
            }
            for box in all_boxes
        ],
    }
    return with_numbers(head | more, arrays)


def with_numbers(head: Mapping[str, Any], arrays: Iterable[Array]) -> bytes:
    """A line of JSON, followed by the numbers of these arrays as float32, little-endian."""
    line = json.dumps(head, separators=(",", ":"), ensure_ascii=False).encode()
    return b"\n".join([line, b"".join(array.astype("<f4").tobytes() for array in arrays)])


def _lens(trace: ForwardTrace, name: str) -> list[list[list[float]]]:
    """For each position, [id, probability] of the likeliest tokens if the model ended after this box.

    Empty for a box without a logit lens.
    """
    probabilities = trace.written_after.get(name)
    return [] if probabilities is None else [list(_likeliest(row)) for row in probabilities]


def _likeliest(row: Array) -> Iterator[list[float]]:
    for token in np.argsort(-row, kind="stable")[:MOST_WRITTEN]:
        yield [int(token), round(float(row[token]), 5)]

"""The stages inside one head: from queries, keys and values to the weighted sum."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from transformer.anatomy import latex
from transformer.anatomy.latex import Shown, shown, told
from transformer.anatomy.masking import mask, mask_codes, masked, masked_map
from transformer.anatomy.panels import (
    Array,
    Panel,
    Stage,
    linear_strips,
    numbered,
    product_strips,
)
from transformer.anatomy.spot import Spot
from transformer.insight.blocking import OPEN


def _one(spot: Spot, name: str, vector: Array, role: str) -> Panel:
    """The query, key or value of one token, (K,)."""
    return Panel(
        name=name,
        values=vector[None],
        rows=(name.split()[0],),
        columns=numbered(len(vector)),
        role=role,
        axes=("", "feature"),
        column_title="feature",
    )


def projections(spot: Spot) -> Stage:
    """Three views of what goes in."""
    attention, model, i, j = spot.attention, spot.model, spot.row, spot.column
    f, h = spot.feature(model.d_head), spot.head
    q, k, v = attention.query[h], attention.key[h], attention.value[h]
    value = float(q[i, f])
    weight, bias = spot.linear(f"{attention.module}.to_query", h * model.d_head + f)
    source = "m" if spot.cross else r"\hat{x}"
    parts = [
        rf"{small}_{at} = {x}_{at} W_{big}" + (f" + b_{big}" if model.qkv_bias else "")
        for small, big, at, x in (
            ("q", "Q", "i", r"\hat{x}"),
            ("k", "K", "j", source),
            ("v", "V", "j", source),
        )
    ]
    where = r", \quad m = \text{the encoder's output}" if spot.cross else ""
    return Stage(
        key="qkv",
        title="Query, key and value",
        sentence=f"Three learned matrices turn what goes in into a query (what {spot.query_token} looks "
        f"for), a key (what {spot.key_token} offers to be found by) and a value (what it hands over).",
        shape=f"K = {model.d_head}",
        panels=(
            _one(spot, f"query of {spot.query_token}", q[i], "query"),
            _one(spot, f"key of {spot.key_token}", k[j], "key"),
            _one(spot, f"value of {spot.key_token}", v[j], "value"),
        ),
        formula=r", \quad ".join(parts) + where,
        numbers=told(
            f"q_{{{i + 1},{f + 1}}}",
            lambda more: [latex.products(attention.reads[i], weight, bias, more)],
            value,
        ),
        sources=linear_strips(
            (f"what “{spot.queries[i]}” brings in", attention.reads[i], "plain"),
            f"the weights of query feature {f + 1}",
            weight,
            bias,
        ),
        result=value,
    )


def _unscaled(spot: Spot) -> Array:
    """(Q, S), the dot products of this head."""
    return np.asarray(spot.attention.query[spot.head] @ spot.attention.key[spot.head].T)


def _dot_product(spot: Spot) -> tuple[str, tuple[Panel, ...], float]:
    """Numbers, sources and value of the focused query's product with the focused key."""
    i, j = spot.row, spot.column
    q, k = spot.attention.query[spot.head][i], spot.attention.key[spot.head][j]
    value = float(_unscaled(spot)[i, j])
    cell = rf"q_{{{i + 1}}} \cdot k_{{{j + 1}}}"
    numbers = told(cell, lambda more: [latex.products(q, k, more=more)], value)
    sources = product_strips(
        (f"query of {spot.query_token}", q, "query"),
        (f"key of {spot.key_token}", k, "key"),
        numbered(spot.model.d_head),
        "feature",
    )
    return numbers, sources, value


def scores_row(spot: Spot) -> Stage:
    """One query held against every key."""
    i = spot.row
    numbers, sources, value = _dot_product(spot)
    row = Panel(
        name=f"scores of {spot.query_token}",
        values=_unscaled(spot)[i : i + 1],
        rows=(spot.rows[i],),
        columns=spot.keys,
        role="scores",
        axes=("", "column"),
        column_title="key",
    )
    keys = spot.of_keys("all keys", spot.attention.key[spot.head], "key")
    return Stage(
        key="scores_row",
        title="One query against every key",
        sentence=f"The query of {spot.query_token} is multiplied with every key, feature by feature, and "
        "added up: the better the two match, the higher the score.",
        shape=spot.shape("S"),
        panels=(row, keys),
        formula=r"q_i \cdot k_j = \sum_f q_{i,f} \, k_{j,f} \quad \text{for all } j",
        numbers=numbers,
        sources=sources,
        result=value,
    )


def scores(spot: Spot) -> Stage:
    """Every query held against every key."""
    numbers, sources, value = _dot_product(spot)
    return Stage(
        key="scores",
        title="All scores",
        sentence="The same for every query at once is one product of two matrices: a row per query, a column "
        "per key.",
        shape=spot.shape("Q", "S"),
        panels=(spot.map("query · key", _unscaled(spot), "scores"),),
        formula=r"Q K^\top, \quad (Q K^\top)_{ij} = q_i \cdot k_j",
        numbers=numbers,
        sources=sources,
        result=value,
    )


def scale(spot: Spot) -> Stage:
    """Scores kept from growing with the width."""
    model, i, j = spot.model, spot.row, spot.column
    whole = model.score_scale == "sqrt_d_model"
    width, symbol = (model.d_model, "d_{model}") if whole else (model.d_head, "d_{head}")
    product, scaled = _unscaled(spot), spot.attention.scores[spot.head]
    value = float(scaled[i, j])
    cell = rf"s_{{{i + 1},{j + 1}}} = \frac{{q_{{{i + 1}}} \cdot k_{{{j + 1}}}}}{{\sqrt{{{width}}}}}"

    def divided(more: int) -> list[Shown]:
        return [latex.divided(shown(float(product[i, j]), more), shown(math.sqrt(width), more))]

    after = "the whole width, which keeps attention soft" if whole else "the width of a head"
    return Stage(
        key="scale",
        title="Scaled",
        sentence=f"Every score is divided by √{width}, the root of {after}: longer sums would grow larger, "
        "and the softmax would see only the largest.",
        shape=spot.shape("Q", "S"),
        panels=(spot.map("scaled scores", scaled, "scores"),),
        formula=rf"s_{{ij}} = \frac{{q_i \cdot k_j}}{{\sqrt{{{symbol}}}}}",
        numbers=told(cell, divided, value),
        sources=(spot.score_strip(f"scores of {spot.query_token} before", product[i]),),
        result=value,
    )


def weights(spot: Spot) -> Stage:
    """Scores made into shares."""
    i, j, codes = spot.row, spot.column, mask_codes(spot, spot.head)
    open_to = codes == OPEN
    found = spot.attention.weights[spot.head]
    row = np.where(open_to[i], spot.attention.scores[spot.head, i], np.float32("nan"))
    w = f"w_{{{i + 1},{j + 1}}}"
    if open_to[i, j]:
        at = int(open_to[i, :j].sum())  # among those that are open
        numbers = told(w, lambda more: latex.share(row[open_to[i]], at, more), float(found[i, j]))
    else:
        numbers = rf"{w} = \frac{{e^{{-\infty}}}}{{\dots}} = 0"
    strongest = int(np.nanargmax(np.where(open_to[i], found[i], np.nan)))
    return Stage(
        key="weights",
        title="Softmax",
        sentence="The softmax makes each row of scores a row of weights that add up to 1: "
        f"{spot.query_token} looks most at “{spot.keys[strongest]}” (position {strongest + 1}), "
        f"with {found[i, strongest]:.0%}.",
        shape=spot.shape("Q", "S"),
        panels=(masked_map(spot, "weights", found, "weights"),),
        formula=r"w_{ij} = \frac{e^{\tilde{s}_{ij}}}{\sum_{j'} e^{\tilde{s}_{ij'}}}",
        numbers=numbers,
        sources=(spot.score_strip(f"masked scores of {spot.query_token}", row, codes[i]),),
        result=float(found[i, j]) if open_to[i, j] else None,
    )


def mixed(spot: Spot) -> Stage:
    """What this head read."""
    attention, h, i = spot.attention, spot.head, spot.row
    f, codes = spot.feature(spot.model.d_head), mask_codes(spot, h)[i]
    open_to = codes == OPEN
    row, column = attention.weights[h, i], attention.value[h, :, f]
    value = float(attention.mixed[h, i, f])
    return Stage(
        key="mixed",
        title="Weighted sum of values",
        sentence=f"Each row now takes that much of every value: what this head has read for "
        f"{spot.query_token} is a mean of the values, weighted by where it looks."
        + (" The head is switched off: zeros go on in place of this." if spot.is_off(h) else ""),
        shape=spot.shape("Q", "K"),
        panels=(
            replace(
                spot.of_queries("what the head read", attention.mixed[h], "value"),
                off=((0, spot.model.d_head),) if spot.is_off(h) else (),
            ),
            masked_map(spot, "weights", attention.weights[h], "weights"),
            spot.of_keys("values", attention.value[h], "value"),
        ),
        formula=r"o_i = \sum_j w_{ij} \, v_j",
        numbers=told(
            f"o_{{{i + 1},{f + 1}}}",
            lambda more: [latex.products(row[open_to], column[open_to], more=more)],
            value,
        ),
        sources=product_strips(
            (f"weights of {spot.query_token}", np.where(open_to, row, np.float32("nan")), "weights"),
            (f"feature {f + 1} of every value", column, "value"),
            spot.keys,
            "key",
            codes,
        ),
        result=value,
    )


ATTENDING = (projections, scores_row, scores, scale, mask, masked, weights, mixed)

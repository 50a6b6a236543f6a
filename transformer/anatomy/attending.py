"""The stages inside one head: from queries, keys and values to the weighted sum."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from transformer.anatomy.cells import inner_product, linear, softmax_share
from transformer.anatomy.latex import at, told
from transformer.anatomy.masking import mask_codes, masked_map
from transformer.anatomy.panels import Array, Cell, Panel, Stage, strip, vector_strip
from transformer.anatomy.spot import Spot
from transformer.insight.blocking import OPEN


def projections(spot: Spot) -> Stage:
    """Three views of what goes in."""
    attention, d_head, i, j = spot.attention, spot.model.d_head, spot.row, spot.column
    f, h = spot.head_feature, spot.head
    source = "m" if spot.cross else r"\hat{x}"
    bias = (" + b_Q", " + b_K", " + b_V") if spot.model.qkv_bias else ("", "", "")
    vectors = {
        "query": (attention.query[h, i], spot.query_token),
        "key": (attention.key[h, j], spot.key_token),
        "value": (attention.value[h, j], spot.key_token),
    }
    return Stage(
        key="qkv",
        sentence=f"Three learned matrices turn what goes in into a query (what {spot.query_token} looks "
        f"for), a key (what {spot.key_token} offers to be found by) and a value (what it hands over).",
        shape=spot.shape("K"),
        panels=tuple(
            replace(vector_strip(f"{role} of {token}", vector, role), rows=(role,))
            for role, (vector, token) in vectors.items()
        ),
        formula=rf"q_i = \hat{{x}}_i W_Q{bias[0]}, \quad k_j = {source}_j W_K{bias[1]}, \quad "
        rf"v_j = {source}_j W_V{bias[2]}"
        + (r", \quad m = \text{the encoder's output}" if spot.cross else ""),
        cell=linear(
            f"q{at(i, f)}",
            float(attention.query[h, i, f]),
            vector_strip(f"what “{spot.query}” brings in", attention.reads[i]),
            f"the weights of query feature {f + 1}",
            *spot.weights_of(f"{attention.module}.to_query", h * d_head + f),
        ),
    )


def _products(spot: Spot) -> Array:
    """(Q, S), the dot products of this head's queries and keys."""
    return np.asarray(spot.attention.query[spot.head] @ spot.attention.key[spot.head].T)


def _dot_product(spot: Spot) -> Cell:
    """The focused query's product with the focused key."""
    i, j = spot.row, spot.column
    return inner_product(
        rf"q{at(i)} \cdot k{at(j)}",
        float(_products(spot)[i, j]),
        vector_strip(f"query of {spot.query_token}", spot.attention.query[spot.head, i], "query"),
        vector_strip(f"key of {spot.key_token}", spot.attention.key[spot.head, j], "key"),
    )


def scores_row(spot: Spot) -> Stage:
    """One query held against every key."""
    i = spot.row
    row = Panel(
        name=f"scores of {spot.query_token}",
        values=_products(spot)[i : i + 1],
        rows=(spot.rows[i],),
        columns=spot.keys,
        role="scores",
        axes=("", "column"),
        column_title="key",
    )
    return Stage(
        key="scores_row",
        sentence=f"The query of {spot.query_token} is multiplied with every key, feature by feature, and "
        "added up: the better the two match, the higher the score.",
        shape=spot.shape("S"),
        panels=(row, spot.of_keys("all keys", spot.attention.key[spot.head], "key")),
        formula=r"q_i \cdot k_j = \sum_f q_{i,f} \, k_{j,f} \quad \text{for all } j",
        cell=_dot_product(spot),
    )


def scores(spot: Spot) -> Stage:
    """Every query held against every key."""
    return Stage(
        key="scores",
        sentence="The same for every query at once is one product of two matrices: a row per query, a column "
        "per key.",
        shape=spot.shape("Q", "S"),
        panels=(spot.map("query · key", _products(spot), "scores"),),
        formula=r"Q K^\top, \quad (Q K^\top)_{ij} = q_i \cdot k_j",
        cell=_dot_product(spot),
    )


def scale(spot: Spot) -> Stage:
    """Scores kept from growing with the width."""
    model, i, j = spot.model, spot.row, spot.column
    if model.score_scale == "sqrt_d_model":
        width, symbol = model.d_model, "d_{model}"
        after = "the whole width, which keeps attention soft"
    else:
        width, symbol, after = model.d_head, "d_{head}", "the width of a head"
    products, scaled = _products(spot), spot.attention.scores[spot.head]
    value = float(scaled[i, j])
    numbers = told(
        rf"s{at(i, j)} = \frac{{q{at(i)} \cdot k{at(j)}}}{{\sqrt{{{width}}}}}",
        lambda digits: [digits(float(products[i, j])) / digits(math.sqrt(width))],
        value,
    )
    return Stage(
        key="scale",
        sentence=f"Every score is divided by √{width}, the root of {after}: longer sums would grow larger, "
        "and the softmax would see only the largest.",
        shape=spot.shape("Q", "S"),
        panels=(spot.map("scaled scores", scaled, "scores"),),
        formula=rf"s_{{ij}} = \frac{{q_i \cdot k_j}}{{\sqrt{{{symbol}}}}}",
        cell=Cell(
            numbers=numbers,
            sources=(spot.score_strip(f"scores of {spot.query_token} before", products[i]),),
            result=value,
        ),
    )


def weights(spot: Spot) -> Stage:
    """Scores made into shares."""
    i, j, codes = spot.row, spot.column, mask_codes(spot, spot.head)[spot.row]
    open_to, found = codes == OPEN, spot.attention.weights[spot.head]
    scores = np.where(open_to, spot.attention.scores[spot.head, i], np.float32("nan"))
    source = spot.score_strip(f"masked scores of {spot.query_token}", scores, codes)
    if open_to[j]:
        place = int(open_to[:j].sum())  # among those that are open
        cell = softmax_share(f"w{at(i, j)}", float(found[i, j]), scores[open_to], place, source)
    else:
        numbers = rf"w{at(i, j)} = \frac{{e^{{-\infty}}}}{{\dots}} = 0"
        cell = Cell(numbers=numbers, sources=(source,), result=None)
    strongest = int(np.nanargmax(np.where(open_to, found[i], np.nan)))
    return Stage(
        key="weights",
        sentence="The softmax makes each row of scores a row of weights that add up to 1: "
        f"{spot.query_token} looks most at “{spot.keys[strongest]}” (position {strongest + 1}), "
        f"with {found[i, strongest]:.0%}.",
        shape=spot.shape("Q", "S"),
        panels=(masked_map(spot, "weights", found, "weights"),),
        formula=r"w_{ij} = \frac{e^{\tilde{s}_{ij}}}{\sum_{j'} e^{\tilde{s}_{ij'}}}",
        cell=cell,
    )


def mixed(spot: Spot) -> Stage:
    """What this head read."""
    attention, h, i, f = spot.attention, spot.head, spot.row, spot.head_feature
    codes = mask_codes(spot, h)[i]
    row = np.where(codes == OPEN, attention.weights[h, i], np.float32("nan"))
    read = spot.of_queries("what the head read", attention.mixed[h], "value")
    said = ""
    if spot.is_off(h):
        read = replace(read, off=((0, spot.model.d_head),))
        said = " The head is switched off: zeros go on in place of this."
    return Stage(
        key="mixed",
        sentence=f"Each row now takes that much of every value: what this head has read for "
        f"{spot.query_token} is a mean of the values, weighted by where it looks.{said}",
        shape=spot.shape("Q", "K"),
        panels=(
            read,
            masked_map(spot, "weights", attention.weights[h], "weights"),
            spot.of_keys("values", attention.value[h], "value"),
        ),
        formula=r"o_i = \sum_j w_{ij} \, v_j",
        cell=inner_product(
            f"o{at(i, f)}",
            float(attention.mixed[h, i, f]),
            strip(f"weights of {spot.query_token}", row, spot.keys, "weights", "key", codes),
            strip(f"feature {f + 1} of every value", attention.value[h, :, f], spot.keys, "value", "key"),
        ),
    )

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
    """Query, key and value."""
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
        sentence=f"Three learned matrices compute a query (what {spot.query_token} looks for), a key (what "
        f"{spot.key_token} offers) and a value (what it passes on).",
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
            vector_strip(f"input of “{spot.query}”", attention.reads[i]),
            f"weights of query feature {f + 1}",
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
    """The scores of one query."""
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
        sentence=f"Each score is the dot product of the query of {spot.query_token} and one key: the better "
        "they match, the higher the score.",
        shape=spot.shape("S"),
        panels=(row, spot.of_keys("keys", spot.attention.key[spot.head], "key")),
        formula=r"q_i \cdot k_j = \sum_f q_{i,f} \, k_{j,f} \quad \text{for all } j",
        cell=_dot_product(spot),
    )


def scores(spot: Spot) -> Stage:
    """The scores of all queries."""
    return Stage(
        key="scores",
        sentence="One matrix product computes all scores: a row per query, a column per key.",
        shape=spot.shape("Q", "S"),
        panels=(spot.map("query · key", _products(spot), "scores"),),
        formula=r"Q K^\top, \quad (Q K^\top)_{ij} = q_i \cdot k_j",
        cell=_dot_product(spot),
    )


def scale(spot: Spot) -> Stage:
    """Scores divided by the root of the width."""
    model, i, j = spot.model, spot.row, spot.column
    if model.score_scale == "sqrt_d_model":
        width, symbol = model.d_model, "d_{model}"
        after = "the width of the model"
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
        sentence=f"Every score is divided by √{width}, the root of {after}, so that scores do not grow "
        "with the width and saturate the softmax.",
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
    """The softmax of each row of scores."""
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
        sentence="The softmax turns each row of scores into weights that add up to 100%; the highest weight "
        f"of {spot.query_token} is {found[i, strongest]:.0%}, on “{spot.keys[strongest]}” (position "
        f"{strongest + 1}).",
        shape=spot.shape("Q", "S"),
        panels=(masked_map(spot, "weights", found, "weights"),),
        formula=r"w_{ij} = \frac{e^{\tilde{s}_{ij}}}{\sum_{j'} e^{\tilde{s}_{ij'}}}",
        cell=cell,
    )


def mixed(spot: Spot) -> Stage:
    """The weighted sum of the values."""
    attention, h, i, f = spot.attention, spot.head, spot.row, spot.head_feature
    codes = mask_codes(spot, h)[i]
    row = np.where(codes == OPEN, attention.weights[h, i], np.float32("nan"))
    read = spot.of_queries("output of the head", attention.mixed[h], "value")
    said = ""
    if spot.is_off(h):
        read = replace(read, off=((0, spot.model.d_head),))
        said = " The head is switched off: the next stage gets zeros instead."
    return Stage(
        key="mixed",
        sentence=f"The output of this head for {spot.query_token} is the mean of the values, weighted by its "
        f"row of weights.{said}",
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

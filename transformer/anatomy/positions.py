"""The chapter on positions: the table that is added, how alike its rows are, and how far they have moved."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from transformer.anatomy import latex
from transformer.anatomy.breaking import laid_out
from transformer.anatomy.entering import sinusoid_formula, sinusoid_numbers
from transformer.anatomy.latex import Shown, number, shown, told
from transformer.anatomy.panels import Array, Focus, Panel, Stage, numbered, product_strips, vector_strip
from transformer.config import RunConfig

LEARNED = "learned_positions.weight"
"""The learned table among a snapshot's weights."""


def position_table(config: RunConfig, weights: Mapping[str, Array]) -> Array | None:
    """(max_len, D) float32, what is added for each position; None where nothing is.

    Args:
        weights: of a snapshot.
    """
    model = config.model
    if model.positions == "none":
        return None
    if model.positions == "learned":
        return np.asarray(weights[LEARNED], dtype=np.float32)
    position = np.arange(model.max_len, dtype=np.float64)[:, None]  # (max_len, 1)
    pair = np.arange(model.d_model) // 2 * 2  # 2k of each feature
    angle = position / 10_000.0 ** (pair / model.d_model)  # (max_len, D)
    waves = np.where(np.arange(model.d_model) % 2, np.cos(angle), np.sin(angle))
    return waves.astype(np.float32)


def positions(
    config: RunConfig,
    weights_now: Mapping[str, Array],
    focus: Focus = Focus(),  # noqa: B008 - it is frozen
    *,
    tables: Mapping[int, Array] | None = None,
) -> tuple[Stage, ...]:
    """The stages of this chapter: the table, how alike positions are, and, where it is learned, its movement.

    Args:
        weights_now: of the snapshot that is looked at.
        focus: row and column are two positions, feature is one of the table's columns.
        tables: step to the learned table of that snapshot, in any order; movement is measured from the first.
    """
    table = position_table(config, weights_now)
    if table is None:
        return (_nothing(config),)
    row = min(focus.row, len(table) - 1)
    column = min(row + 1 if focus.column is None else focus.column, len(table) - 1)
    at = Focus(row, column, min(focus.feature, table.shape[1] - 1))
    found = [_table(config, table, at), _likeness(config, table, at)]
    if config.model.positions == "learned" and tables:
        found.append(_moved(table, {step: tables[step] for step in sorted(tables)}, at))
    return tuple(replace(laid_out(stage), focus=at) for stage in found)


def _panel(name: str, values: Array) -> Panel:
    """A vector for each position, (positions, D)."""
    return Panel(
        name=name,
        values=values,
        rows=numbered(len(values)),
        columns=numbered(values.shape[1]),
        axes=("row", "feature"),
        row_title="position",
        column_title="feature",
    )


def _shape(table: Array) -> str:
    return f"(positions, D) = ({len(table)}, {table.shape[1]})"


def _nothing(config: RunConfig) -> Stage:
    zeros = np.zeros((config.model.max_len, config.model.d_model), dtype=np.float32)
    return Stage(
        key="table",
        title="No positions",
        sentence="This model adds nothing for the position, so without a causal mask it could not tell a "
        "word from the same letters in another order.",
        shape=_shape(zeros),
        panels=(_panel("what is added: nothing", zeros),),
        formula="p_i = 0",
        numbers="p_{i} = 0",
        result=0.0,
    )


def _table(config: RunConfig, table: Array, at: Focus) -> Stage:
    i, f, value = at.row, at.feature, float(table[at.row, at.feature])
    if config.model.positions == "sinusoid":
        sentence = (
            "Each pair of features is a sine and a cosine that turn with the position, fast at the left and "
            "more and more slowly to the right, so that every position has its own pattern."
        )
        formula, wave = sinusoid_formula(), sinusoid_numbers(i, f, config.model.d_model)
        angle = i / 10_000 ** ((f - f % 2) / config.model.d_model)
        name = r"\cos" if f % 2 else r"\sin"
        turn = math.cos if f % 2 else math.sin

        def waved(more: int) -> list[Shown]:
            one = shown(angle, more)
            return [Shown(f"{name}({one.text})", turn(one.value), turn(one.exact))]

        numbers = told(f"p_{{{i + 1},{f + 1}}} = {wave}", waved, value)
    else:
        sentence = "Each position has a vector of its own that training moves like any other weight."
        formula, numbers = "p_i = P[i]", f"p_{{{i + 1},{f + 1}}} = P[{i + 1}]_{{{f + 1}}} = {number(value)}"
    return Stage(
        key="table",
        title="The vector of each position",
        sentence=sentence,
        shape=_shape(table),
        panels=(_panel("what is added for each position", table),),
        formula=formula,
        numbers=numbers,
        sources=(vector_strip(f"the vector of position {i + 1}", table[i]),),
        result=value,
    )


def _likeness(config: RunConfig, table: Array, at: Focus) -> Stage:
    i, j, names = at.row, at.column or 0, numbered(len(table))
    products = table @ table.T
    value = float(products[i, j])
    if config.model.positions == "sinusoid":
        sentence = (
            "The dot product of two positions depends only on how far apart they are, which is why the "
            "stripes run along the diagonal."
        )
        formula = r"p_i \cdot p_j = \sum_f p_{i,f} \, p_{j,f} = \sum_k \cos\frac{i - j}{10000^{2k/d_{model}}}"
        if table.shape[1] % 2:  # an odd width ends with a sine alone
            formula = r"p_i \cdot p_j = \sum_f p_{i,f} \, p_{j,f}"
            sentence = "The dot product of two positions says how alike their vectors are."
    else:
        sentence = "The dot product of two positions says how alike training has made their vectors."
        formula = r"p_i \cdot p_j = \sum_f p_{i,f} \, p_{j,f}"
    return Stage(
        key="likeness",
        title="How alike positions are",
        sentence=sentence,
        shape=f"(positions, positions) = ({len(table)}, {len(table)})",
        panels=(
            Panel(
                name="dot products of positions",
                values=products,
                rows=names,
                columns=names,
                role="scores",
                axes=("row", "column"),
                row_title="position",
                column_title="position",
            ),
        ),
        formula=formula,
        numbers=told(
            rf"p_{{{i + 1}}} \cdot p_{{{j + 1}}}",
            lambda more: [latex.products(table[i], table[j], more=more)],
            value,
        ),
        sources=product_strips(
            (f"the vector of position {i + 1}", table[i], "plain"),
            (f"the vector of position {j + 1}", table[j], "plain"),
            numbered(table.shape[1]),
            "feature",
        ),
        result=value,
    )


def _moved(table: Array, tables: Mapping[int, Array], at: Focus) -> Stage:
    """How far each position's vector has moved since the first snapshot, at each of them and now."""
    first_step, i = next(iter(tables)), at.row
    first = np.asarray(tables[first_step], dtype=np.float32)
    everyone = np.stack([*(np.asarray(t, dtype=np.float32) for t in tables.values()), table])
    distances = np.linalg.norm(everyone - first, axis=2).T  # (positions, snapshots)
    squares, value = (table[i] - first[i]) ** 2, float(distances[i, -1])

    def rooted(more: int) -> list[Shown]:
        terms = []
        for a, b in zip(table[i].tolist(), first[i].tolist(), strict=True):
            left, right = shown(a, more), shown(b, more)
            text = f"({left.text} - {latex.factor(b, more)})^2"
            terms.append(Shown(text, (left.value - right.value) ** 2, (a - b) ** 2))
        total = latex.summed(terms, more)
        return [
            Shown(rf"\sqrt{{{one.text}}}", math.sqrt(one.value), math.sqrt(one.exact))
            for one in (total, shown(total.exact, more))
        ]

    return Stage(
        key="moved",
        title="How far positions have moved",
        sentence=f"Training has moved each position's vector away from where it was at step {first_step:,}; "
        "positions that no word reaches hardly move.",
        shape=f"(positions, snapshots) = {distances.shape}",
        panels=(
            Panel(
                name="distance from the first snapshot",
                values=distances,
                rows=numbered(len(distances)),
                columns=(*(f"{step:,}" for step in tables), "now"),
                role="distances",
                axes=("row", ""),
                row_title="position",
                column_title="step",
            ),
            _panel(f"the table at step {first_step:,}", first),
            _panel("how it differs now", table - first),
        ),
        formula=r"d_i = \lVert p_i^{\text{now}} - p_i^{\text{first}} \rVert "
        r"= \sqrt{\textstyle\sum_f (p_{i,f}^{\text{now}} - p_{i,f}^{\text{first}})^2}",
        numbers=told(f"d_{{{i + 1}}}", rooted, value) if math.isfinite(value) else rf"d_{{{i + 1}}} = \infty",
        sources=(
            vector_strip(f"position {i + 1} now", table[i]),
            vector_strip(f"position {i + 1} at step {first_step:,}", first[i]),
            vector_strip("squares of the differences", squares),
        ),
        result=value if math.isfinite(value) else None,
    )

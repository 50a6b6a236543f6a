"""The chapter on positions: the table, the similarity of its rows, and their change in training."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from transformer.anatomy.cells import inner_product
from transformer.anatomy.entering import SINUSOID, sinusoid_numbers
from transformer.anatomy.latex import Digits, Shown, at, number, root, summed, told
from transformer.anatomy.line_breaks import laid_out
from transformer.anatomy.panels import (
    POSITION_STAGES,
    Array,
    Cell,
    Focus,
    Panel,
    Stage,
    numbered,
    vector_strip,
)
from transformer.config import ModelConfig, RunConfig

LEARNED = "learned_positions.weight"
"""The learned table among a snapshot's weights."""


def position_table(config: RunConfig, weights: Mapping[str, Array]) -> Array | None:
    """(max_len, D) float32, the position vectors; None if the model has none.

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


def position_stages(model: ModelConfig) -> dict[str, str]:
    """Key to title of the stages of a model's chapter on positions."""
    keys = {"none": ["nothing"], "sinusoid": ["table", "likeness"], "learned": ["table", "likeness", "moved"]}
    return {key: POSITION_STAGES[key] for key in keys[model.positions]}


def positions(
    config: RunConfig,
    weights_now: Mapping[str, Array],
    focus: Focus = Focus(),  # noqa: B008 - it is frozen
    *,
    tables: Mapping[int, Array] | None = None,
) -> tuple[Stage, ...]:
    """The stages of this chapter; the change during training only if `tables` are given.

    Args:
        weights_now: of the snapshot that is looked at.
        focus: row and column are two positions, feature is one of the table's columns.
        tables: step to the learned table of that snapshot, in any order; movement is measured from the first.
    """
    table = position_table(config, weights_now)
    if table is None:
        return (_nothing(config.model),)
    row = min(focus.row, len(table) - 1)
    column = min(row + 1 if focus.column is None else focus.column, len(table) - 1)
    settled = Focus(row, column, min(focus.feature, table.shape[1] - 1))
    found = [_table(config.model, table, row, settled.feature), _likeness(config.model, table, row, column)]
    if config.model.positions == "learned" and tables:
        found.append(_moved(table, {step: tables[step] for step in sorted(tables)}, row))
    return tuple(laid_out(stage, settled) for stage in found)


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


def _nothing(model: ModelConfig) -> Stage:
    zeros = np.zeros((model.max_len, model.d_model), dtype=np.float32)
    return Stage(
        key="nothing",
        sentence="This model adds no position vectors: without a causal mask, it cannot distinguish "
        "different orders of the same letters.",
        shape=f"(positions, D) = {zeros.shape}",
        panels=(_panel("position vectors (all zero)", zeros),),
        formula="p_i = 0",
        cell=Cell(numbers="p_{i} = 0", result=0.0),
    )


def _table(model: ModelConfig, table: Array, i: int, f: int) -> Stage:
    value = float(table[i, f])
    if model.positions == "sinusoid":
        sentence = (
            "Each pair of features is a sine and a cosine of the position, with a frequency that falls from "
            "left to right."
        )
        angle = i / 10_000 ** ((f - f % 2) / model.d_model)
        name, wave = (r"\cos(", math.cos) if f % 2 else (r"\sin(", math.sin)
        formula = SINUSOID
        numbers = told(
            f"p{at(i, f)} = {sinusoid_numbers(i, f, model.d_model)}",
            lambda digits: [digits(angle).within(name, ")", wave)],
            value,
        )
    else:
        sentence = "Each position has a learned vector."
        formula, numbers = "p_i = P[i]", f"p{at(i, f)} = P[{i + 1}]{at(f)} = {number(value)}"
    return Stage(
        key="table",
        sentence=sentence,
        shape=f"(positions, D) = {table.shape}",
        panels=(_panel("position vectors", table),),
        formula=formula,
        cell=Cell(
            numbers=numbers,
            sources=(vector_strip(f"vector of position {i + 1}", table[i]),),
            result=value,
        ),
    )


def _likeness(model: ModelConfig, table: Array, i: int, j: int) -> Stage:
    products, names = table @ table.T, numbered(len(table))
    formula = r"p_i \cdot p_j = \sum_f p_{i,f} \, p_{j,f}"
    sentence = "The dot product of two position vectors measures their similarity."
    if model.positions != "learned" and table.shape[1] % 2 == 0:  # an odd width ends with a sine alone
        sentence = "The dot product of two position vectors depends only on the distance of the positions."
        formula += r" = \sum_k \cos\frac{i - j}{10000^{2k/d_{model}}}"
    return Stage(
        key="likeness",
        sentence=sentence,
        shape=f"(positions, positions) = {products.shape}",
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
        cell=inner_product(
            rf"p{at(i)} \cdot p{at(j)}",
            float(products[i, j]),
            vector_strip(f"vector of position {i + 1}", table[i]),
            vector_strip(f"vector of position {j + 1}", table[j]),
        ),
    )


def _moved(table: Array, tables: Mapping[int, Array], i: int) -> Stage:
    """The distance of each position vector from its value in the first snapshot, by step."""
    first_step = next(iter(tables))
    first = np.asarray(tables[first_step], dtype=np.float32)
    everyone = np.stack([*(np.asarray(t, dtype=np.float32) for t in tables.values()), table])
    distances = np.linalg.norm(everyone - first, axis=2).T  # (positions, snapshots)
    value = float(distances[i, -1])

    def forms(digits: Digits) -> list[Shown]:
        pairs = zip(table[i].tolist(), first[i].tolist(), strict=True)
        squares = [(digits(now) - digits(then)).within("(", ")^2", lambda x: x**2) for now, then in pairs]
        total = summed(digits, squares)
        return [root(total), root(digits(total.exact))]

    return Stage(
        key="moved",
        sentence=f"The distance of each position vector from its value at step {first_step:,}; positions "
        "that no word reaches hardly move.",
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
            _panel("difference now", table - first),
        ),
        formula=r"d_i = \lVert p_i^{\text{now}} - p_i^{\text{first}} \rVert "
        r"= \sqrt{\textstyle\sum_f (p_{i,f}^{\text{now}} - p_{i,f}^{\text{first}})^2}",
        cell=Cell(
            numbers=told(f"d{at(i)}", forms, value) if math.isfinite(value) else rf"d{at(i)} = \infty",
            sources=(
                vector_strip(f"position {i + 1} now", table[i]),
                vector_strip(f"position {i + 1} at step {first_step:,}", first[i]),
                vector_strip("squares of the differences", (table[i] - first[i]) ** 2),
            ),
            result=value if math.isfinite(value) else None,
        ),
    )

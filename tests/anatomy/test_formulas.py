"""Formulas of the stages: every printed number gives the printed result."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from tests.anatomy.conftest import BASES, by_key, every_stage, opened, softmax
from tests.anatomy.formulas import assert_holds, printed
from transformer.anatomy.line_breaks import LONGEST, width
from transformer.anatomy.panels import Focus
from transformer.anatomy.positions import position_table, positions
from transformer.anatomy.stages import stages


def explained(walk, axes):
    """The row of the logits that is explained, and which token of it."""
    row = min(walk.focus.row, len(walk.passed.tgt_tokens) - 1) if axes.writes else 0
    return row, walk.passed.vocabulary.index(walk.passed.expected[row] or walk.passed.predicted[row])


def focused(walk, axes, stage):
    """The number of the main panel that is explained."""
    panel = stage.panels[0]
    if stage.key in ("logits", "probabilities"):
        return panel.values[explained(walk, axes)]
    focus = walk.focus
    places = {"row": focus.row, "column": focus.column, "feature": focus.feature}
    places[""] = -1 if stage.key == "stack" else 0
    return panel.values[
        tuple(min(places[at], n - 1) for at, n in zip(panel.axes, panel.values.shape, strict=True))
    ]


def test_formulas_end_with_the_focused_cell_and_balance_their_braces(walk):
    for axes, stage in every_stage(walk):
        cell, value = stage.cell, focused(walk, axes, stage)
        for formula in (stage.formula, cell.numbers):
            plain = formula.replace(r"\{", "").replace(r"\}", "")
            assert plain.count("{") == plain.count("}"), formula
            assert not re.search(r"[\x00-\x1f]", formula), "an escape that was no LaTeX"
        if cell.result is None:
            assert stage.key in ("masked", "weights")
            assert np.isnan(value)
            assert re.search(r"(\\infty|= 0|10\^9)$", cell.numbers)
            continue
        assert cell.result == pytest.approx(float(value))
        if not (stage.key == "mask" and cell.result):  # then it is written as what the mask adds
            shown, half = printed(cell.numbers)
            assert abs(shown - cell.result) <= half + 1e-6 * abs(cell.result), cell.numbers


@pytest.mark.parametrize("name", BASES)
def test_no_line_of_a_formula_is_too_long_for_half_a_page(name, made):
    passed, _ = opened(made, name)
    for site in passed.axes:
        for stage in stages(passed, site, 0, Focus(2, 1, 5)):
            for formula in (stage.formula, stage.cell.numbers):
                inside = re.sub(r"\\(begin|end)\{(aligned|gathered)\}", "", formula)
                lines = [inside] if "cases" in inside else inside.split(r" \\ ")
                assert max(map(width, lines)) <= LONGEST + 4, formula


def test_every_formula_of_numbers_holds_to_the_last_digit_that_it_shows(walk):
    config, weights, held = walk.passed.config, walk.snapshot.weights, 0
    for _, stage in every_stage(walk):
        if stage.cell.result is not None and stage.key not in ("tokens", "mask"):
            held += assert_holds(stage.cell.numbers)
    tables = {3: position_table(config, weights) * 0.9} if config.model.positions == "learned" else {}
    for stage in positions(config, weights, walk.focus, tables=tables):
        held += assert_holds(stage.cell.numbers)
    assert held > 10 * len(walk.found)


def test_the_sources_of_a_cell_give_its_value_by_the_arithmetic_that_the_formula_names(walk, truth):
    passed, focus, model = walk.passed, walk.focus, walk.passed.config.model
    reference = truth(passed, walk.snapshot)
    f = min(focus.feature, model.d_model - 1)
    width = model.d_model if model.score_scale == "sqrt_d_model" else model.d_head
    for site, found in walk.found.items():
        stack, axes, norm = site.split(".")[0], passed.axes[site], passed.attentions[site].norm
        j = min(focus.column, len(passed.tokens(axes.key)) - 1)
        given = {key: [panel.values[0] for panel in stage.cell.sources] for key, stage in found.items()}
        results = {key: stage.cell.result for key, stage in found.items()}
        for key in ("qkv", "scores_row", "scores", "mixed", "heads", "feed_forward", "logits"):
            left, right, product = given[key]
            np.testing.assert_allclose(left * right, product, rtol=1e-6)
            assert np.nansum(product) == pytest.approx(results[key], rel=1e-4, abs=1e-4)
        stream, gives, *between = given["residual"]
        values = {
            "embedding": given["embedding"][0][f]
            * (model.d_model**0.5 if passed.stacks[stack].scaled else 1),
            "positions": sum(vector[f] for vector in given["positions"]),
            "plain": softmax(given["plain"][0])[j],
            "input": given["input"][0][f],
            "scale": given["scale"][0][j] / math.sqrt(width),
            "masked": given["masked"][0][j],
            "weights": softmax(given["weights"][0])[j],
            "stack": given["stack"][0][f],
            "probabilities": softmax(given["probabilities"][0])[explained(walk, axes)[1]],
        }
        if model.norm_placement == "pre":
            values["input"] = reference.norm(norm, given["input"][0])[f]
            values["residual"] = stream[f] + gives[f]
        elif model.norm_placement == "post":
            values["residual"] = reference.norm(norm, stream + gives)[f]
        else:
            values["residual"] = stream[f] + reference.norm(norm, gives)[f]
        assert len(between) == (model.norm_placement != "pre")
        if model.final_norm:
            values["stack"] = reference.norm(f"{stack}_norm", given["stack"][0])[f]
        for key, value in values.items():
            if results[key] is not None:
                assert value == pytest.approx(results[key], rel=1e-4, abs=1e-4), key


def formulas(made, name, site, **changes):
    passed, _ = opened(made, name, **changes)
    return {key: stage.formula for key, stage in by_key(stages(passed, site, 0, Focus(1, 1, 1))).items()}


@pytest.mark.parametrize(
    ("changes", "stage", "then"),
    [
        ({"norm_placement": "post"}, "residual", r"x'_i = \mathrm{norm}(x_i + a_i)"),
        ({"norm_placement": "branch"}, "residual", r"x'_i = x_i + \mathrm{norm}(a_i)"),
        ({"norm_placement": "post"}, "input", r"\hat{x}_i = x_i"),
        ({"norm_placement": "branch"}, "feed_forward", r"x''_i = x'_i + \mathrm{norm}(f_i)"),
        ({"score_scale": "sqrt_d_model"}, "scale", r"\sqrt{d_{model}}"),
        ({"norm": "scalar"}, "input", r"\mathrm{std}(x) + \epsilon"),
        ({"positions": "learned"}, "positions", "P[i]"),
        ({"positions": "none"}, "positions", "x_i = e_i"),
        ({"embedding_scale": "encoder"}, "embedding", "x_i = E[t_i]"),
        ({"qkv_bias": False}, "qkv", r"q_i = \hat{x}_i W_Q, "),
        ({"output_bias": False}, "heads", "W_O"),
        ({"mask_fill": "-1e9"}, "mask", "-10^9"),
        ({"final_norm": False}, "stack", r"\mathrm{out}_i = x_i^{(2)}"),
        ({"activation": "gelu"}, "feed_forward", r"\mathrm{GELU}"),
    ],
    ids=lambda value: next(iter(value.items())) if isinstance(value, dict) else None,
)
def test_each_setting_changes_the_formula_of_its_stage(changes, stage, then, made):
    site = "decoder.1.cross"
    before, after = formulas(made, "default", site), formulas(made, "default", site, **changes)
    assert then in after[stage]
    assert before[stage] != after[stage]

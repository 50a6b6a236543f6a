"""Explanations of cells: the printed numbers give the printed result."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.anatomy.conftest import BASES, opened
from tests.anatomy.formulas import assert_holds, printed
from transformer.anatomy.boxes import boxes
from transformer.anatomy.explained import EXPLAINERS, explained
from transformer.anatomy.latex import LONGEST, width
from transformer.errors import InputError
from transformer.shared.interventions import Block, Interventions

CELLS = ((0, 0, 0), (1, 2, 5), (1, 3, 1), (99, 99, 99))
"""Head, row and column."""


def every_cell(passed):
    """Yield some cells of every table: the key of the table, the explanation and the displayed number."""
    for box in boxes(passed):
        for table in box.tables:
            for places in CELLS:
                shape = table.values.shape
                at = tuple(min(i, n - 1) for i, n in zip(places[3 - len(shape) :], shape, strict=True))
                head = min(places[0], passed.config.model.n_heads - 1)
                blocked = table.codes is not None and table.codes[(head, *at[-2:])]
                found = explained(passed, box.name, table.key, *places)
                yield table.key, found, None if blocked else table.values[at]


@pytest.mark.parametrize("name", BASES)
def test_formulas_end_with_the_cell_s_number_and_hold_to_the_last_digit_and_fit_the_page(name, made):
    passed, _ = opened(made, name)
    held = 0
    for key, found, value in every_cell(passed):
        for formula in (found.formula, found.numbers):
            plain = formula.replace(r"\{", "").replace(r"\}", "")
            assert plain.count("{") == plain.count("}"), formula
            assert not re.search(r"[\x00-\x1f]", formula), "an escape that was no LaTeX"
            inside = re.sub(r"\\(begin|end)\{(aligned|gathered)\}", "", formula)
            lines = [inside] if "cases" in inside else inside.split(r" \\[0.4em] ")
            assert max(map(width, lines)) <= 2 * LONGEST, formula
        assert found.sentence[0].isupper() or found.sentence[0] == "“"
        assert found.sentence.endswith(".")
        if key == "mask":
            continue
        if value is None:
            assert found.result is None
            assert re.search(r"(\\infty|= 0|10\^9)$", found.numbers)
            continue
        assert found.result == pytest.approx(float(value), rel=1e-5)
        shown, half = printed(found.numbers)
        assert abs(shown - found.result) <= half + 1e-6 * abs(found.result), found.numbers
        if key not in ("tokens", "masked"):
            held += assert_holds(found.numbers)
    assert held > 4 * len(boxes(passed))


def test_every_table_has_its_formula(made):
    tables = {table.key for name in BASES for box in boxes(opened(made, name)[0]) for table in box.tables}
    assert tables == EXPLAINERS.keys()


def test_the_explanation_of_a_blocked_cell_names_the_mask_that_blocks_it(made):
    taken = Interventions(blocked=(Block(site="decoder.0.self", head=1, row=3, column=2),))
    passed, _ = opened(made, "default", taken)

    def mask(site, row, column):
        return explained(passed, site, "mask", 1, row, column).numbers

    assert mask("decoder.0.self", 3, 2) == r"m_{4,3} = -\infty \quad \text{(blocked by hand)}"
    assert mask("decoder.0.self", 2, 3).endswith(r"= -\infty \quad \text{(blocked: causal mask)}")
    assert mask("decoder.0.cross", 3, 7).endswith(r"= -\infty \quad \text{(blocked: padding mask)}")
    assert mask("decoder.0.self", 3, 1).endswith(r"= 0 \quad \text{(may be read)}")
    weights = explained(passed, "decoder.0.self", "weights", 1, 3, 2)
    assert weights.result is None
    assert weights.numbers.endswith("= 0")


def test_the_explanation_of_a_switched_off_head_states_that_it_is_switched_off(made):
    passed, _ = opened(made, "default", Interventions(ablated=(("decoder.0.cross", 1),)))
    assert "switched off" in explained(passed, "decoder.0.cross", "mixed", 1, 0, 0).sentence
    assert "switched off" not in explained(passed, "decoder.0.cross", "mixed", 0, 0, 0).sentence
    assert "switched off" in explained(passed, "decoder.0.cross", "joined", 0, 0, 9).sentence


def test_a_table_that_does_not_exist_is_refused(made):
    passed, _ = opened(made, "bloem")
    for box, table in (("decoder.0.self", "weights"), ("encoder.0", "memory"), ("", "")):
        with pytest.raises(InputError, match="choose a cell of its picture"):
            explained(passed, box, table, 0, 0, 0)


def test_a_softmax_is_taken_over_open_cells_alone(made):
    passed, _ = opened(made, "default")
    scores = passed.attentions["decoder.0.self"].scores[1, 2, :3].astype(np.float64)
    found = explained(passed, "decoder.0.self", "weights", 1, 2, 1)
    assert found.result == pytest.approx(float(np.exp(scores[1]) / np.exp(scores).sum()), rel=1e-4)


@pytest.mark.parametrize(
    ("changes", "box", "table", "then"),
    [
        ({"norm_placement": "post"}, "cross", "residual", r"x'_i = \mathrm{norm}(x_i + a_i)"),
        ({"norm_placement": "branch"}, "cross", "residual", r"x'_i = x_i + \mathrm{norm}(a_i)"),
        ({"norm_placement": "post"}, "cross", "query", "q_i = x_i W_Q"),
        ({"norm_placement": "branch"}, "feed_forward", "residual", r"x'_i = x_i + \mathrm{norm}(f_i)"),
        ({"score_scale": "sqrt_d_model"}, "cross", "scale", r"\sqrt{d_{model}}"),
        ({"score_scale": "none"}, "cross", "scale", r"\sqrt{1}"),
        ({"norm": "scalar"}, "cross", "input", r"\mathrm{std}(x) + \epsilon"),
        ({"positions": "learned"}, "embedding", "positions", "P[i]"),
        ({"positions": "none"}, "embedding", "positions", "x_i = e_i"),
        ({"embedding_scale": "encoder"}, "embedding", "embedding", "e_i = E[t_i]"),
        ({"qkv_bias": False}, "cross", "key", "k_j = m_j W_K"),
        ({"output_bias": False}, "cross", "heads", "a_i = c_i W_O"),
        ({"mask_fill": "-1e9"}, "cross", "mask", "-10^9"),
        ({"activation": "gelu"}, "feed_forward", "hidden", r"\mathrm{GELU}"),
    ],
    ids=lambda value: next(iter(value.items())) if isinstance(value, dict) else None,
)
def test_each_setting_changes_the_formula_of_its_table(changes, box, table, then, made):
    name = "decoder.embedding" if box == "embedding" else f"decoder.1.{box}"
    before = explained(opened(made, "default")[0], name, table, 0, 1, 1).formula if table != "input" else ""
    after = explained(opened(made, "default", **changes)[0], name, table, 0, 1, 1).formula
    assert then in after
    assert before != after

"""Stages show the numbers of the real forward pass, and formulas that really give them."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.anatomy.conftest import BASES, softmax
from transformer.anatomy import latex
from transformer.anatomy.breaking import LONGEST, broken_formula, broken_numbers, width
from transformer.anatomy.panels import Panel
from transformer.anatomy.stages import STAGES, Focus, chapters, position_table, positions, stages
from transformer.anatomy.trace import trace
from transformer.interventions import Block, Interventions
from transformer.model.positions import sinusoid

ROOT = Path(__file__).parents[2]
ORDER = (
    "tokens embedding positions plain input qkv scores_row scores scale mask masked weights mixed heads "
    "residual feed_forward stack logits probabilities"
).split()
BESIDE = ("playground", "ox")
FOCI = (Focus(), Focus(2, 1, 5), Focus(1, 3, 2), Focus(99, 99, 999))


def by_key(found):
    return {stage.key: stage for stage in found}


def opened(made, name, *taken, **changes):
    config, snapshot = made(name, *taken, **changes)
    return trace(config, snapshot, "frog", BESIDE), snapshot


def main(stage):
    return stage.panels[0].values


@pytest.mark.parametrize("name", BASES)
def test_every_cell_of_every_stage_is_that_of_an_independent_forward_pass(name, made, truth, near):
    passed, snapshot = opened(made, name)
    expected = truth(passed, snapshot)
    for site, axes in passed.axes.items():
        numbers, stack = expected.sites[site], site.split(".")[0]
        whole = expected.stacks[stack]
        layer = whole["layers"][int(site.split(".")[1])]
        keys_from = expected.stacks["encoder"]["output"] if axes.kind == "cross" else whole["entered"]
        for head in range(passed.config.model.n_heads):
            found = by_key(stages(passed, site, head, Focus(2, 1, 5)))
            assert list(found) == ORDER
            ids = passed.src_ids if axes.query == "src" else passed.tgt_ids
            near(main(found["tokens"]), np.array([ids]))
            near(main(found["embedding"]), whole["embedded"])
            near(main(found["positions"]), whole["entered"])
            plain = softmax(whole["entered"] @ keys_from.T)
            near(found["plain"].panels[0].values, plain)
            near(found["plain"].panels[1].values, plain @ keys_from)
            near(main(found["input"]), numbers["reads"])
            if axes.kind == "cross":
                near(found["input"].panels[-1].values, numbers["memory"])
            for panel, part, at in zip(
                found["qkv"].panels, ("query", "key", "value"), (2, 1, 1), strict=True
            ):
                assert panel.role == part
                near(panel.values, numbers[part][head, at : at + 1])
            near(main(found["scores_row"]), numbers["products"][head, 2:3])
            near(main(found["scores"]), numbers["products"][head])
            near(main(found["scale"]), numbers["scores"][head])
            assert np.array_equal(main(found["mask"]) == 0, numbers["mask"][head])
            near(main(found["masked"]), numbers["masked"][head])
            near(main(found["weights"]), numbers["weights"][head])
            np.testing.assert_allclose(np.nansum(main(found["weights"]), axis=1), 1.0, atol=1e-6)
            near(main(found["mixed"]), numbers["mixed"][head])
            projected, joined, *maps = found["heads"].panels
            near(projected.values, numbers["projected"])
            near(joined.values, numbers["joined"])
            for panel, weights in zip(maps, numbers["weights"], strict=True):
                near(panel.values, weights)
            near(main(found["residual"]), numbers["after"])
            for panel, part in zip(found["feed_forward"].panels, ("output", "hidden", "after"), strict=True):
                near(panel.values, layer[part])
            streams = [whole["entered"][2], *(one["after"][2] for one in whole["layers"])]
            streams += [whole["output"][2]] if passed.config.model.final_norm else []
            near(main(found["stack"]), np.stack(streams))
            near(main(found["logits"]), expected.logits)
            near(main(found["probabilities"]), expected.probabilities)


def printed(numbers):
    """The value that a formula ends with, and half a unit of its last digit."""
    numbers = numbers.removesuffix(r" \end{aligned}")
    found = re.search(
        r"(?:=|\\approx) (-?[\d.]+)(?: \\cdot 10\^\{(-?\d+)\})?(?: \\quad .*)?$|10\^\{(-?\d+)\}$", numbers
    )
    assert found, numbers
    if found[3]:
        return 10.0 ** int(found[3]), 0.005 * 10.0 ** int(found[3])
    exponent = int(found[2] or 0)
    decimals = len(found[1].partition(".")[2])
    return float(found[1]) * 10.0**exponent, 0.501 * 10.0 ** (exponent - decimals)


def test_the_reader_of_formulas_reads_them():
    assert printed(r"a = \frac{1}{2} \approx -0.512")[0] == -0.512
    assert printed(r"a = 2 \cdot 10^{3} \approx 1.25 \cdot 10^{-4}")[0] == pytest.approx(1.25e-4)
    assert printed(r"m = 0 \quad \text{(open)}")[0] == 0


def indexed(stage, focus):
    """The focused cell of the main panel, by what its axes stand for."""
    panel = stage.panels[0]
    places = {"row": focus.row, "column": focus.column, "feature": focus.feature, "": 0}
    row, column = (min(places[a], n - 1) for a, n in zip(panel.axes, panel.values.shape, strict=True))
    return panel.values[row, column]


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("focus", FOCI, ids=lambda f: f"{f.row},{f.column},{f.feature}")
def test_formulas_end_with_the_focused_cell_and_balance_their_braces(name, focus, made):
    passed, _ = opened(made, name)
    for site, axes in passed.axes.items():
        for stage in stages(passed, site, 1, focus):
            for formula in (stage.formula, stage.numbers):
                plain = formula.replace(r"\{", "").replace(r"\}", "")
                assert plain.count("{") == plain.count("}"), formula
                assert not re.search(r"[\x00-\x1f]", formula), "an escape that was no LaTeX"
            if stage.result is None:
                assert stage.key in ("masked", "weights")
                assert np.isnan(indexed(stage, focus))
                assert re.search(r"(\\infty|= 0|10\^9)$", stage.numbers)
                continue
            if stage.key == "stack":
                cell = stage.panels[0].values[-1, min(focus.feature, passed.config.model.d_model - 1)]
            elif stage.key in ("logits", "probabilities"):
                row = min(focus.row, len(passed.tgt_tokens) - 1) if axes.writes else 0
                token = passed.expected[row] or passed.predicted[row]
                cell = stage.panels[0].values[row, passed.vocabulary.index(token)]
            else:
                cell = indexed(stage, focus)
            assert stage.result == pytest.approx(float(cell))
            if not (stage.key == "mask" and stage.result):  # then it is written as what the mask adds
                value, half = printed(stage.numbers)
                assert abs(value - stage.result) <= half + 1e-6 * abs(stage.result), stage.numbers


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("focus", FOCI, ids=lambda f: f"{f.row},{f.column},{f.feature}")
def test_the_sources_of_a_cell_give_its_value_by_the_arithmetic_that_the_formula_names(
    name, focus, made, truth
):
    passed, snapshot = opened(made, name)
    model, reference = passed.config.model, truth(passed, snapshot)
    sums = ["qkv", "scores_row", "scores", "mixed", "heads", "feed_forward", "logits"]
    for site, axes in passed.axes.items():
        stack = site.split(".")[0]
        f = min(focus.feature, model.d_model - 1)
        j = min(focus.column, len(passed.src_tokens if axes.key == "src" else passed.tgt_tokens) - 1)
        found = by_key(stages(passed, site, 1, focus))
        for key in sums:
            left, right, product = (panel.values[0] for panel in found[key].sources)
            np.testing.assert_allclose(left * right, product, rtol=1e-6)
            assert np.nansum(product) == pytest.approx(found[key].result, rel=1e-4, abs=1e-4)
        given = {key: [panel.values[0] for panel in stage.sources] for key, stage in found.items()}
        root = math.sqrt(model.d_model) if passed.stacks[stack].scaled else 1.0
        values = {
            "embedding": given["embedding"][0][f] * root,
            "positions": sum(vector[f] for vector in given["positions"]),
            "plain": softmax(given["plain"][0])[j],
            "input": given["input"][0][f],
            "scale": given["scale"][0][j]
            / math.sqrt(model.d_model if model.score_scale == "sqrt_d_model" else model.d_head),
            "masked": given["masked"][0][j],
            "weights": softmax(given["weights"][0])[j],
            "stack": given["stack"][0][f],
        }
        residual = passed.attentions[site].residual
        if model.norm_placement == "pre":
            values["input"] = reference.norm(f"{residual}.norm", given["input"][0])[f]
        if model.final_norm:
            values["stack"] = reference.norm(f"{stack}_norm", given["stack"][0])[f]
        stream, gives, *between = given["residual"]
        values["residual"] = {
            "pre": lambda s, g: s + g,
            "post": lambda s, g, name=residual: reference.norm(f"{name}.norm", s + g),
            "branch": lambda s, g, name=residual: s + reference.norm(f"{name}.norm", g),
        }[model.norm_placement](stream, gives)[f]
        assert len(between) == (model.norm_placement != "pre")
        for key, value in values.items():
            if found[key].result is not None:
                assert value == pytest.approx(found[key].result, rel=1e-4, abs=1e-4), key
        row = min(focus.row, len(passed.tgt_tokens) - 1) if axes.writes else 0
        token = passed.vocabulary.index(passed.expected[row] or passed.predicted[row])
        shares = softmax(given["probabilities"][0])
        assert shares[token] == pytest.approx(found["probabilities"].result, rel=1e-4)


NAMED = re.compile(r"\\underbrace\{((?:[^{}]|\{[^{}]*\})*)\}_\{\\text\{(?:bias|\d+ more)\}\}")
"""A bias, or the sum of the terms that are not shown."""


def grouped(text, start):
    """What stands between the brace at `start` and the one that closes it, and the place behind that."""
    depth = 0
    for i in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if not depth:
            return text[start + 1 : i], i + 1
    raise AssertionError(text)


def evaluated(text):
    """The number that a formula of numbers alone stands for."""
    text = NAMED.sub(r"\1", text).replace(r"\Big", "").replace(r"+ \dots", "")  # too small to count
    while (at := text.find(r"\frac")) >= 0:
        above, middle = grouped(text, at + 5)
        below, end = grouped(text, middle)
        text = f"{text[:at]}(({above})/({below})){text[end:]}"
    for latex_name, python in (
        (r"\cdot", "*"),
        ("e^", "exp"),
        ("10000^", "10000**"),
        ("10^", "10**"),
        (")^2", ")**2"),
    ):
        text = text.replace(latex_name, python)
    code = text.replace("\\", "").replace("{", "(").replace("}", ")")
    return eval(code, {"exp": math.exp, "sqrt": math.sqrt, "sin": math.sin, "cos": math.cos})


def test_the_evaluator_of_formulas_evaluates_them():
    assert evaluated(r"2 \cdot \frac{4 - (-2)}{\sqrt{9 + 10^{-9}}} + (-1)") == pytest.approx(3)
    assert evaluated(r"\frac{e^{1}}{e^{0} + e^{1}} + \underbrace{(-0.500)}_{\text{bias}}") == pytest.approx(
        math.e / (1 + math.e) - 0.5
    )
    assert evaluated(r"1 + \underbrace{(-2.5 \cdot 10^{-1})}_{\text{14 more}}") == 0.75
    assert evaluated(r"0.500 + \cos\frac{3}{10000^{4/32}}") == pytest.approx(
        0.5 + math.cos(3 / 10_000 ** (1 / 8))
    )


def flowing(numbers):
    """A formula as one line."""
    for sign in (r"\begin{aligned} ", r" \end{aligned}", r"\quad "):
        numbers = numbers.replace(sign, "")
    return numbers.replace(r" \\ &", " ").replace("&", "")


def assert_holds(numbers):
    """From its printed numbers, every form of the formula gives the printed value to its last digit."""
    text = flowing(numbers)
    parts = re.split(r" = | \\approx ", text)
    forms = [part for part in parts[1:-1] if not re.search(r"[_\[]|\\mathrm|\\text", NAMED.sub(r"\1", part))]
    value, half = printed(text)
    for form in forms:
        assert abs(evaluated(form) - value) <= half, numbers
    return len(forms)


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("focus", FOCI, ids=lambda f: f"{f.row},{f.column},{f.feature}")
def test_every_formula_of_numbers_holds_to_the_last_digit_that_it_shows(name, focus, made):
    passed, snapshot = opened(made, name)
    held = 0
    for site in passed.axes:
        for stage in stages(passed, site, 1, focus):
            if stage.result is not None and stage.key not in ("tokens", "mask"):
                held += assert_holds(stage.numbers)
    moved = (
        {3: position_table(passed.config, snapshot.weights)}
        if passed.config.model.positions == "learned"
        else {}
    )
    tables = {step: table * 0.9 for step, table in moved.items()}
    for stage in positions(passed.config, snapshot.weights, focus, tables=tables):
        held += assert_holds(stage.numbers)
    assert held > 10 * len(passed.axes)


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


def test_the_numbers_of_the_post_norm_are_those_of_the_sum():
    # x = (1, 2, 3), a = (1, 1, 1): the sum is (2, 3, 4), its mean 3, its variance 2/3.
    model, total = BASES["bloem"].model, latex.added(1.0, 1.0)
    shown = latex.norm_numbers(model, np.array([2.0, 3.0, 4.0]), 0, np.ones(3), np.zeros(3), made_of=total)
    assert shown.text == r"1 \cdot \frac{(1 + 1) - 3}{\sqrt{0.667 + 10^{-5}}} + 0"
    assert shown.exact == pytest.approx(-1 / math.sqrt(2 / 3 + 1e-5))
    assert shown.value == pytest.approx(-1 / math.sqrt(0.667 + 1e-5))


def test_long_sums_show_their_largest_terms_and_the_sum_of_the_others():
    ones = np.ones(4)
    assert latex.products(ones[:2], -ones[:2]).text == r"1 \cdot (-1) + 1 \cdot (-1)"
    five = latex.products(np.array([1.0, -7, 3, 4, 2]), np.ones(5), bias=0.5)
    assert five.text == (
        r"(-7) \cdot 1 + 4 \cdot 1 + \underbrace{6}_{\text{3 more}} + \underbrace{0.500}_{\text{bias}}"
    )
    assert five.value == five.exact == 3.5


def test_numbers_get_more_digits_until_their_formula_holds():
    # Printed with three decimals it would be 1.352 + 0.120, which is 1.472.
    text = latex.told("x", lambda more: [latex.added(1.3524, 0.1203, more)], 1.4727)
    assert text == r"x = 1.3524 + 0.1203 \approx 1.473"
    # -0.005 times 5.657 would be -0.028.
    text = latex.told("x", lambda more: [latex.multiplied(-0.0046, 32**0.5, more)], -0.0046 * 32**0.5)
    assert_holds(text)
    assert text.endswith(r"\approx -0.026")


@pytest.mark.parametrize("name", BASES)
def test_a_row_alone_opens_on_the_cell_that_it_looks_at_most(name, made, truth):
    passed, snapshot = opened(made, name)
    expected = truth(passed, snapshot)
    for site in passed.axes:
        weights = np.nan_to_num(expected.sites[site]["weights"][1])
        for row in (1, 3):
            found = by_key(stages(passed, site, 1, Focus(row, None, 2)))["weights"]
            assert found.focus == Focus(row, int(weights[row].argmax()), 2)
            assert found.result == pytest.approx(weights[row].max(), rel=1e-4)


def test_long_formulas_are_broken_so_that_their_value_is_not_cut_off():
    short = r"s_{1,2} = \frac{3}{4} \approx 0.750"
    assert broken_numbers(short) == short
    fraction = r"\frac{e^{1.234}}{e^{1.234} + e^{2.345} + \dots + e^{3.456}}"
    assert width(fraction) < 24
    two = rf"w = {fraction} = {fraction} \approx 0.512"
    assert broken_numbers(two) == (
        rf"\begin{{aligned}} w &= {fraction} \\ &= {fraction} \approx 0.512 \end{{aligned}}"
    )
    start, end = r"q = 1.234 \cdot (-1.234) + 1.234 \cdot (-1.234) + \dots", r" + 1.234 \cdot (-1.234)"
    assert broken_numbers(rf"{start}{end} \approx -9.999") == (
        rf"\begin{{aligned}} {start.replace('=', '&=')} \\ &\quad{end} \approx -9.999 \end{{aligned}}"
    )
    statement = r"x = \mathrm{norm}(a + b + c + d + e + f + g + h + i)"
    assert broken_formula(rf"{statement}, \quad {statement}") == (
        rf"\begin{{gathered}} {statement} \\ {statement} \end{{gathered}}"
    )
    assert broken_formula(r"x = a, \quad y = b") == r"x = a, \quad y = b"


def test_a_stage_made_alone_is_the_one_among_all_and_no_other_is_made(made, monkeypatch):
    passed, _ = opened(made, next(iter(BASES)))
    site, focus = next(iter(passed.axes)), Focus(2, 1, 5)
    (alone,) = stages(passed, site, 0, focus, only=["scale"])
    among = {stage.key: stage for stage in stages(passed, site, 0, focus)}
    assert list(among) == list(STAGES)
    assert (alone.formula, alone.numbers) == (among["scale"].formula, among["scale"].numbers)
    monkeypatch.setattr("transformer.anatomy.stages._MAKERS", {"scale": None, "heads": lambda spot: alone})
    assert stages(passed, site, 0, focus, only=["heads"])[0].key == "scale"


@pytest.mark.parametrize("name", BASES)
def test_no_line_of_a_formula_is_too_long_for_half_a_page(name, made):
    passed, _ = opened(made, name)
    for site in passed.axes:
        for stage in stages(passed, site, 0, Focus(2, 1, 5)):
            for formula in (stage.formula, stage.numbers):
                inside = re.sub(r"\\(begin|end)\{(aligned|gathered)\}", "", formula)
                lines = [inside] if "cases" in inside else inside.split(r" \\ ")
                assert max(map(width, lines)) <= LONGEST + 4, formula


def test_a_steep_softmax_is_written_less_its_largest_exponent():
    both = [one.text for one in latex.share(np.array([0.0, 1.0]), 1)]
    assert both == [r"\frac{e^{1}}{e^{0} + e^{1}}", r"\frac{2.718}{3.718}"]
    steep = " = ".join(one.text for one in latex.share(np.array([900.0, 901.0]), 0))
    assert steep == r"\frac{e^{900 - 901}}{e^{900 - 901} + e^{901 - 901}} = \frac{0.368}{1.368}"


@pytest.mark.parametrize("scores", [[7.9574, 3.3952, -0.1332], [22.37444, 23.11749, 21.2]])
def test_the_powers_of_a_softmax_are_those_of_its_scores_as_printed(scores):
    first, second = (one.text for one in latex.share(np.array(scores), 0))
    above, below = re.fullmatch(r"\\frac\{([\d.]+)\}\{([\d.]+)\}", second).groups()
    powers = [math.exp(eval(power)) for power in re.findall(r"e\^\{([^}]+)\}", first)]
    assert latex.number(powers[0]) == above
    assert latex.number(sum(powers[1:])) == below


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (8.0, "8"), (-1.23456, "-1.235"), (12.346, "12.35"), (-123.46, "-123.5")]
    + [(1.5e-5, r"1.50 \cdot 10^{-5}"), (1e-6, "10^{-6}"), (-math.inf, r"-\infty")],
)
def test_numbers_have_as_many_digits_as_their_size_needs(value, shown):
    assert latex.number(value) == shown


@pytest.mark.parametrize("token", ["a_b", "50%", "{x}", "#1", "a^b", "x\\y", "~", "好"])
def test_any_token_can_stand_in_a_formula(token):
    shown = latex.text(token)
    inside = shown.removeprefix(r"\text{").removesuffix("}")
    bare = re.sub(r"\\(text\w+\{\}|[{}$&#_%])", "", inside)
    assert not set(bare) & set("{}$&#_%^~\\")


def test_masks_are_told_apart_and_said_in_words(made):
    taken = Interventions(blocked=(Block(site="decoder.0.self", head=1, row=3, column=2),))
    passed, _ = opened(made, "default", taken)
    # [SOS] g o r f [PAD]...: row i looks at columns 0 to i, and no column beyond 4 is a letter.
    assert passed.tgt_tokens[:6] == ("[SOS]", "g", "o", "r", "f", "[PAD]")
    n = len(passed.tgt_tokens)
    codes = np.array([[1 * (j > i) + 2 * (j > 4) for j in range(n)] for i in range(n)])
    for head in range(2):
        stage = by_key(stages(passed, "decoder.0.self", head, Focus(3, 2)))["mask"]
        codes[3, 2] = 4 * head
        assert np.array_equal(stage.panels[0].values, codes)
        assert stage.panels[0].hover_rows[1] == (
            "“g” (position 2) may look at [SOS] g; not at o r f (it lies in the future); "
            "not at [PAD] ×6 (it lies in the future and is padding)."
        )
    assert stage.result == 4
    assert stage.numbers == r"m_{4,3} = -\infty \quad \text{(blocked by hand)}"
    assert "not at o (by hand)" in stage.panels[0].hover_rows[3]
    assert stage.sentence.startswith(
        "The mask of this attention hides the future, [PAD] and what was blocked by hand: “r”"
    )
    cross = by_key(stages(passed, "decoder.0.cross", 0, Focus(3, 7)))
    assert cross["mask"].numbers.endswith(r"= -\infty \quad \text{(blocked: it is padding)}")
    assert cross["weights"].result is None
    assert cross["weights"].numbers.endswith("= 0")


def test_an_open_attention_says_that_nothing_is_hidden(made):
    passed, _ = opened(made, "bloem")
    found = by_key(stages(passed, "encoder.0", 0, Focus()))
    assert not main(found["mask"]).any()
    assert found["mask"].sentence.startswith("Nothing is hidden here: the word is read as a whole")
    assert found["masked"].sentence.startswith("The mask hides nothing here")
    passed, _ = opened(made, "default", Interventions(masks=(("causal", False), ("padding", False))))
    crossed, own = (by_key(stages(passed, f"decoder.0.{kind}", 0, Focus())) for kind in ("cross", "self"))
    assert "before the first letter is written" in crossed["mask"].sentence
    assert "without a causal mask" in own["mask"].sentence


def test_a_head_that_was_switched_off_is_named_and_all_zeros(made):
    passed, _ = opened(made, "default", Interventions(ablated=(("decoder.0.cross", 1),)))
    found = by_key(stages(passed, "decoder.0.cross", 1, Focus()))
    stage = found["heads"]
    assert "switched off and so all zeros: 2" in stage.sentence
    assert not stage.panels[1].values[:, 8:16].any()
    n_keys = len(found["weights"].panels[0].columns)
    everything = ((0, n_keys),)
    assert [panel.off for panel in stage.panels[1:]] == [
        ((8, 16),),
        *(everything if head == 1 else () for head in range(passed.config.model.n_heads)),
    ]
    assert (found["weights"].panels[0].off, found["scores"].panels[0].off) == (everything, ())
    assert found["mixed"].panels[0].off == ((0, 8),)
    assert found["mixed"].sentence.endswith("zeros go on in place of this.")
    other = by_key(stages(passed, "decoder.0.cross", 0, Focus()))
    assert not any(panel.off for key in ("weights", "mixed") for panel in other[key].panels)


def test_it_is_said_where_queries_keys_and_values_come_from(made):
    passed, _ = opened(made, "default")
    cross = by_key(stages(passed, "decoder.1.cross", 0, Focus()))["input"]
    assert "Queries are made of the norm of the residual stream in decoder layer 2" in cross.sentence
    assert "keys and values of the encoder's output" in cross.sentence
    assert cross.panels[-1].axes == ("column", "feature")
    own = by_key(stages(passed, "encoder.0", 0, Focus()))["input"]
    assert own.sentence.startswith("Queries, keys and values are all made of the norm of")


def test_an_encoder_that_does_not_write_says_where_its_output_goes(made):
    passed, _ = opened(made, "default")
    for site, goes in (("encoder.1", True), ("decoder.1.self", False), ("decoder.0.cross", False)):
        last = stages(passed, site, 0, Focus(4, 0, 0))[-2:]
        assert all(
            ("goes to the decoder's cross-attention as keys and values" in s.sentence) is goes for s in last
        )
    alone, _ = opened(made, "bloem")
    assert "keys and values" not in stages(alone, "encoder.1", 0, Focus())[-1].sentence


def test_probabilities_name_the_likeliest_and_mark_the_right_token(half_trained):
    from transformer.recording.weights import Snapshot

    weights = {name: w.numpy().copy() for name, w in half_trained.model.state_dict().items()}
    passed = trace(half_trained.config, Snapshot(step=130, source=weights), "ox")
    stage = by_key(stages(passed, "decoder.0.cross", 0, Focus(0)))["probabilities"]
    named = re.findall(r"“([^”]+)” ([\d.]+)%", stage.sentence)
    row = passed.probabilities[0]
    assert [token for token, _ in named[:3]] == [passed.vocabulary[i] for i in np.argsort(-row)[:3]]
    assert [float(share) for _, share in named[:3]] == [round(100 * v, 1) for v in np.sort(row)[::-1][:3]]
    assert "“x” is right ✓" in stage.sentence
    assert stage.panels[0].marked == tuple(
        (i, passed.vocabulary.index(token)) for i, token in enumerate(("x", "o", "[EOS]"))
    )


def test_every_stage_has_one_sentence_and_a_shape(made):
    for name in BASES:
        passed, _ = opened(made, name)
        for site in passed.axes:
            for stage in stages(passed, site, 0, Focus(1, 1, 1)):
                assert not re.search(r"[.!?] [A-Z]", stage.sentence), stage.sentence
                assert stage.sentence.endswith(".")
                assert stage.sentence[0].isupper()
                sizes = tuple(map(int, re.findall(r"\d+", stage.shape)))
                shape = stage.panels[0].values.shape
                if stage.key == "tokens":
                    assert sizes[0] == shape[1]
                else:
                    assert sizes in (shape, shape[1:])


def test_chapters_are_the_kinds_of_attention_in_the_order_of_the_pass_and_positions(made):
    def kinds(name):
        return chapters({axes.kind for axes in opened(made, name)[0].axes.values()})

    assert kinds("default") == ["encoder", "decoder", "cross", "positions"]
    assert kinds("bloem") == ["encoder", "positions"]
    assert kinds("decoder alone") == ["sequence", "positions"]


def test_what_is_not_there_cannot_be_shown(made):
    passed, _ = opened(made, "bloem")
    with pytest.raises(ValueError, match=r"no attention 'decoder.0.self'; choose one of encoder.0"):
        stages(passed, "decoder.0.self", 0, Focus())
    with pytest.raises(ValueError, match="no head 4; choose one from 0 to 3"):
        stages(passed, "encoder.0", 4, Focus())
    with pytest.raises(ValueError, match="points before the first cell"):
        stages(passed, "encoder.0", 0, Focus(row=-1))
    with pytest.raises(ValueError, match=r"x has shape \(1, 2\), but its labels need \(1, 1\)"):
        Panel(name="x", values=np.zeros((1, 2)), rows=("",), columns=("",))


@pytest.mark.parametrize("width", [32, 7])
def test_the_position_table_is_the_models(width, made):
    heads = 4 if width == 32 else 1
    config, snapshot = made("default", d_model=width, n_heads=heads)
    table = position_table(config, snapshot.weights)
    assert torch.allclose(torch.from_numpy(table), sinusoid(config.model.max_len, width), atol=1e-6)
    learned, snapshot = made("bloem")
    found = position_table(learned, snapshot.weights)
    assert np.array_equal(found, snapshot.weights["learned_positions.weight"])


@pytest.mark.parametrize("name", ["default", "bloem"])
def test_likeness_is_the_dot_product_of_two_positions(name, made, near):
    config, snapshot = made(name)
    table = position_table(config, snapshot.weights)
    _, likeness = positions(config, snapshot.weights, Focus(3, 5, 4))
    near(main(likeness), np.einsum("pf,qf->pq", table, table))
    assert likeness.result == pytest.approx(float((table[3] * table[5]).sum()), rel=1e-5)
    left, right, product = (panel.values[0] for panel in likeness.sources)
    assert product.sum() == pytest.approx((left * right).sum(), rel=1e-5)
    value, half = printed(likeness.numbers)
    assert abs(value - likeness.result) <= half


def test_a_sinusoid_is_written_with_its_position_and_its_pair_of_features(made):
    config, snapshot = made("default")
    table = positions(config, snapshot.weights, Focus(3, 0, 5))[0]
    assert table.numbers.startswith(r"p_{4,6} = \cos\frac{3}{10000^{4/32}} = \cos(0.9487) \approx 0.583")
    assert table.result == pytest.approx(math.cos(3 / 10_000 ** (4 / 32)), abs=1e-6)


def test_learned_positions_have_moved_by_the_length_of_the_difference(made):
    config, snapshot = made("bloem", d_model=32)
    now = position_table(config, snapshot.weights)
    first, middle = now.copy(), now.copy()
    first[2] -= 3.0  # of 32 features
    middle[2] += 1.0
    moved = positions(config, snapshot.weights, Focus(2), tables={50: middle, 0: first})[-1]
    assert moved.key == "moved"
    assert moved.panels[0].columns == ("0", "50", "now")
    expected = np.zeros((len(now), 3))
    expected[2] = 0, 4 * math.sqrt(32), 3 * math.sqrt(32)
    np.testing.assert_allclose(main(moved), expected, atol=1e-5)
    assert moved.result == pytest.approx(3 * math.sqrt(32), rel=1e-6)
    assert math.sqrt(moved.sources[2].values.sum()) == pytest.approx(moved.result, rel=1e-6)
    value, half = printed(moved.numbers)
    assert abs(value - moved.result) <= half


def test_without_positions_there_is_one_stage_that_says_so(made):
    config, snapshot = made("no positions")
    (stage,) = positions(config, snapshot.weights, Focus(99, 99, 99))
    assert position_table(config, snapshot.weights) is None
    assert "adds nothing for the position" in stage.sentence
    assert not main(stage).any()


def test_stages_can_be_imported_without_torch():
    code = "import sys, transformer.anatomy.stages; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "False"

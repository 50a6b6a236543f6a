"""Formulas with numbers: they hold to the last digit, and are broken into lines that fit the page."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from tests.anatomy.conftest import BASES
from tests.anatomy.formulas import assert_holds, evaluated, printed
from transformer.anatomy import latex
from transformer.anatomy.latex import Digits, broken_formula, broken_numbers, width


def test_the_parser_reads_and_evaluates_formulas():
    assert printed(r"a = \frac{1}{2} \approx -0.512")[0] == -0.512
    assert printed(r"a = 2 \cdot 10^{3} \approx 1.25 \cdot 10^{-4}")[0] == pytest.approx(1.25e-4)
    assert printed(r"m = 0 \quad \text{(open)}")[0] == 0
    assert evaluated(r"2 \cdot \frac{4 - (-2)}{\sqrt{9 + 10^{-9}}} + (-1)") == pytest.approx(3)
    assert evaluated(r"\frac{e^{1}}{e^{0} + e^{1}} + \underbrace{(-0.500)}_{\text{bias}}") == pytest.approx(
        math.e / (1 + math.e) - 0.5
    )
    assert evaluated(r"1 + \underbrace{(-2.5 \cdot 10^{-1})}_{\text{14 more}}") == 0.75
    assert evaluated(r"0.500 + \cos\frac{3}{10000^{4/32}}") == pytest.approx(
        0.5 + math.cos(3 / 10_000 ** (1 / 8))
    )


def test_the_formula_of_a_post_norm_uses_the_numbers_of_the_sum():
    # x = (1, 2, 3), a = (1, 1, 1): the sum is (2, 3, 4), its mean 3, its variance 2/3.
    one = Digits()(1.0)
    x, gain, bias = np.array([2.0, 3.0, 4.0]), np.ones(3), np.zeros(3)
    shown = latex.norm_numbers(Digits(), BASES["bloem"].model, x, 0, gain, bias, made_of=one + one)
    assert shown.text == r"1 \cdot \frac{(1 + 1) - 3}{\sqrt{0.667 + 10^{-5}}} + 0"
    assert shown.exact == pytest.approx(-1 / math.sqrt(2 / 3 + 1e-5))
    assert shown.value == pytest.approx(-1 / math.sqrt(0.667 + 1e-5))


def test_long_sums_show_their_largest_terms_and_the_sum_of_the_others():
    ones = np.ones(4)
    assert latex.products(Digits(), ones[:2], -ones[:2]).text == r"1 \cdot (-1) + 1 \cdot (-1)"
    five = latex.products(Digits(), np.array([1.0, -7, 3, 4, 2]), np.ones(5), bias=0.5)
    assert five.text == (
        r"(-7) \cdot 1 + 4 \cdot 1 + \underbrace{6}_{\text{3 more}} + \underbrace{0.500}_{\text{bias}}"
    )
    assert five.value == five.exact == 3.5


def test_numbers_get_more_digits_until_their_formula_holds():
    # Printed with three decimals it would be 1.352 + 0.120, which is 1.472.
    text = latex.equation("x", lambda digits: [digits(1.3524) + digits(0.1203)], 1.4727)
    assert text == r"x = 1.3524 + 0.1203 \approx 1.473"
    # -0.005 times 5.657 would be -0.028.
    text = latex.equation("x", lambda digits: [digits(-0.0046) * digits(32**0.5)], -0.0046 * 32**0.5)
    assert assert_holds(text) == 1
    assert text.endswith(r"\approx -0.026")


def test_a_softmax_of_large_scores_is_written_relative_to_the_largest_exponent():
    both = [one.text for one in latex.share(Digits(), np.array([0.0, 1.0]), 1)]
    assert both == [r"\frac{e^{1}}{e^{0} + e^{1}}", r"\frac{2.718}{3.718}"]
    steep = " = ".join(one.text for one in latex.share(Digits(), np.array([900.0, 901.0]), 0))
    assert steep == r"\frac{e^{900 - 901}}{e^{900 - 901} + e^{901 - 901}} = \frac{0.368}{1.368}"


@pytest.mark.parametrize("scores", [[7.9574, 3.3952, -0.1332], [22.37444, 23.11749, 21.2]])
def test_the_powers_of_a_softmax_are_computed_from_its_printed_scores(scores):
    first, second = (one.text for one in latex.share(Digits(), np.array(scores), 0))
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
def test_any_token_can_appear_in_a_formula(token):
    shown = latex.text(token)
    inside = shown.removeprefix(r"\text{").removesuffix("}")
    bare = re.sub(r"\\(text\w+\{\}|[{}$&#_%])", "", inside)
    assert not set(bare) & set("{}$&#_%^~\\")


def test_long_formulas_are_broken_so_that_their_value_is_not_cut_off():
    short = r"s_{1,2} = \frac{3}{4} \approx 0.750"
    assert broken_numbers(short) == short
    fraction = r"\frac{e^{1.234}}{e^{1.234} + e^{2.345} + \dots + e^{3.456}}"
    assert width(fraction) < 24
    two = rf"w = {fraction} = {fraction} \approx 0.512"
    assert broken_numbers(two) == (
        rf"\begin{{aligned}} w &= {fraction} \\[0.4em] &= {fraction} \approx 0.512 \end{{aligned}}"
    )
    start, end = r"q = 1.234 \cdot (-1.234) + 1.234 \cdot (-1.234) + \dots", r" + 1.234 \cdot (-1.234)"
    assert broken_numbers(rf"{start}{end} \approx -9.999") == (
        rf"\begin{{aligned}} {start.replace('=', '&=')} \\[0.4em] &\quad{end} \approx -9.999 \end{{aligned}}"
    )
    statement = r"x = \mathrm{norm}(a + b + c + d + e + f + g + h + i)"
    assert broken_formula(rf"{statement}, \quad {statement}") == (
        rf"\begin{{gathered}} {statement} \\[0.4em] {statement} \end{{gathered}}"
    )
    assert broken_formula(r"x = a, \quad y = b") == r"x = a, \quad y = b"

"""Formulas with numbers put in: LaTeX that holds to the last digit that is printed.

A number is printed with few digits, so a sum of printed numbers may miss the printed result. Each formula
therefore knows what it gives when computed from its printed numbers, and is printed with more digits until
that is the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from transformer.anatomy.panels import Array
from transformer.config import ModelConfig

TERMS = 2
"""Terms of a long sum that are shown, the largest; the others stand there as their sum."""
_NOTHING = 1e-12
"""Share of the first term below which all others together stand there as dots."""
STEEP = 20.0
"""Larger exponents are shown less the largest of them, as every softmax computes them."""
_MORE, _LESS = 7, 3
"""Digits that may be added to the numbers of a formula, or taken from its result."""
_SPECIAL = {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}


@dataclass(frozen=True)
class Shown:
    """A formula of numbers."""

    text: str
    """LaTeX."""
    value: float
    """What it gives when computed from the numbers as they are printed."""
    exact: float
    """What it gives when computed from the numbers themselves."""


def _digits(x: float, more: int) -> str:
    """Three decimals, or as many as its size needs, as Python writes them."""
    size = abs(x)
    if math.isinf(x) or (x == int(x) and size < 1e5):
        return repr(x) if math.isinf(x) else str(int(x))
    if size >= 1e5 or size < 1e-3:
        return f"{x:.{max(2 + more, 0)}e}"
    decimals = 1 if size >= 100 else 2 if size >= 10 else 3
    return f"{x:.{max(decimals + more, 0)}f}"


def _level(x: float, more: int) -> str:
    """A number of a difference: both have as many decimals, whatever their sizes."""
    return str(int(x)) if x == int(x) else f"{x:.{1 + more}f}"


def number(x: float, more: int = 0) -> str:
    """Three decimals, or as many as its size needs.

    Args:
        more: digits beyond that; below 0, fewer.
    """
    if math.isinf(x):
        return r"-\infty" if x < 0 else r"\infty"
    mantissa, e, exponent = _digits(x, more).partition("e")
    if not e:
        return mantissa
    times = "" if float(mantissa) == 1.0 else rf"{mantissa} \cdot "
    return rf"{times}10^{{{int(exponent)}}}"


def shown(x: float, more: int = 0) -> Shown:
    """A number by itself."""
    return Shown(number(x, more), float(_digits(x, more)), float(x))


def factor(x: float, more: int = 0) -> str:
    """A number that may stand behind a sign or a dot."""
    text = number(x, more)
    return f"({text})" if text.startswith("-") or "cdot" in text else text


def told(cell: str, forms: Callable[[int], Sequence[Shown]], value: float) -> str:
    """A cell, what it is computed from in one or more forms, and its value: each holds to its last digit.

    Args:
        forms: of so many more digits than `number` prints.
    """
    for less in range(_LESS):
        result = number(value, -less)
        for more in range(_MORE):
            made = forms(more)
            if all(number(form.value, -less) == result for form in made):
                return " = ".join([cell, *(form.text for form in made)]) + rf" \approx {result}"
    made = forms(_MORE)  # beyond what float32 can tell apart
    return " = ".join([cell, *(form.text for form in made)]) + rf" \approx {number(value)}"


def text(token: str) -> str:
    """A token in a formula."""
    safe = "".join(_SPECIAL.get(c, f"\\{c}" if c in "{}$&#_%" else c) for c in token)
    return rf"\text{{{safe}}}"


def summed(terms: Sequence[Shown], more: int = 0, last: Shown | None = None) -> Shown:
    """Terms with plus signs between them: all where they are few, else the largest and the sum of the rest.

    Args:
        last: a term of its own at the end, such as a bias.
    """
    kept = list(terms)
    if len(terms) > TERMS + 1:
        largest = sorted(sorted(range(len(terms)), key=lambda i: -abs(terms[i].exact))[:TERMS])
        rest = shown(math.fsum(term.exact for i, term in enumerate(terms) if i not in largest), more)
        alone = factor(rest.exact, more) if rest.exact < 0 else rest.text
        if abs(rest.exact) < _NOTHING * abs(terms[largest[0]].exact):
            alone, rest = "", shown(0.0)
        others = rf"\underbrace{{{alone}}}_{{\text{{{len(terms) - TERMS} more}}}}" if alone else r"\dots"
        kept = [*(terms[i] for i in largest), Shown(others, rest.value, rest.exact)]
    kept += [last] if last else []
    return Shown(
        " + ".join(term.text for term in kept),
        math.fsum(term.value for term in kept),
        math.fsum(term.exact for term in kept),
    )


def added(left: float, right: float, more: int = 0) -> Shown:
    """The sum of two numbers."""
    a, b = shown(left, more), shown(right, more)
    return Shown(f"{a.text} + {factor(right, more)}", a.value + b.value, a.exact + b.exact)


def multiplied(left: float, right: float, more: int = 0) -> Shown:
    """The product of two numbers."""
    a, b = shown(left, more), shown(right, more)
    return Shown(rf"{factor(left, more)} \cdot {factor(right, more)}", a.value * b.value, a.exact * b.exact)


def divided(above: Shown, below: Shown) -> Shown:
    """One formula over another."""
    return Shown(
        rf"\frac{{{above.text}}}{{{below.text}}}", above.value / below.value, above.exact / below.exact
    )


def products(left: Array, right: Array, bias: float | None = None, more: int = 0) -> Shown:
    """The sum of the products of two vectors, (n,) each, and a bias."""
    pairs = [multiplied(a, b, more) for a, b in zip(left.tolist(), right.tolist(), strict=True)]
    last = None
    if bias is not None:
        text = rf"\underbrace{{{factor(bias, more)}}}_{{\text{{bias}}}}"
        last = Shown(text, shown(bias, more).value, bias)
    return summed(pairs, more, last)


def share(scores: Array, at: int, more: int = 0) -> tuple[Shown, Shown]:
    """The softmax of one of some scores, (n,), with the scores and with their powers of e."""
    wide = scores.astype(np.float64)
    highest = float(wide.max())
    steep = max(highest, -float(wide.min())) > STEEP

    def power(score: float) -> Shown:
        if not steep:
            one = shown(score, more)
            return Shown(f"e^{{{one.text}}}", math.exp(one.value), math.exp(one.exact))
        left, right = _level(score, more), _level(highest, more)
        less = f"({right})" if right.startswith("-") else right
        return Shown(
            f"e^{{{left} - {less}}}", math.exp(float(left) - float(right)), math.exp(score - highest)
        )

    powers = [power(score) for score in wide.tolist()]
    total = summed(powers, more)
    # The powers are those of the scores as they are printed: who recalculates finds the same.
    return divided(powers[at], total), divided(shown(powers[at].value, more), shown(total.value, more))


def norm_formula(model: ModelConfig) -> str:
    """What the norm does to a vector."""
    if model.norm == "scalar":  # the unbiased deviation, and one gain and bias for all
        return r"\mathrm{norm}(x) = \gamma \, \frac{x - \overline{x}}{\mathrm{std}(x) + \epsilon} + \beta"
    standardised = r"\frac{x - \overline{x}}{\sqrt{\mathrm{var}(x) + \epsilon}}"
    return rf"\mathrm{{norm}}(x) = \gamma \odot {standardised} + \beta"


def norm_numbers(
    model: ModelConfig,
    x: Array,
    at: int,
    gain: Array,
    bias: Array,
    more: int = 0,
    made_of: Shown | None = None,
) -> Shown:
    """The norm of one feature of a vector, (D,).

    Args:
        gain: (D,), or (1,) where there is one for all.
        bias: like the gain.
        made_of: what stands for that feature, where it was a sum itself.
    """
    wide = x.astype(np.float64)
    one, mean = shown(float(wide[at]), more), shown(float(wide.mean()), more)
    if made_of is not None:
        one = Shown(f"({made_of.text})", made_of.value, made_of.exact)
    eps = shown(model.norm_eps, more)
    scalar = model.norm == "scalar"
    spread = shown(float(wide.std(ddof=1) if scalar else wide.var()), more)
    below = Shown(f"{spread.text} + {eps.text}", spread.value + eps.value, spread.exact + eps.exact)
    if not scalar:
        below = Shown(rf"\sqrt{{{below.text}}}", math.sqrt(below.value), math.sqrt(below.exact))
    above = Shown(f"{one.text} - {factor(mean.exact, more)}", one.value - mean.value, one.exact - mean.exact)
    i = at if len(gain) > 1 else 0
    ratio, times, plus = divided(above, below), shown(float(gain[i]), more), shown(float(bias[i]), more)
    return Shown(
        rf"{times.text} \cdot {ratio.text} + {factor(plus.exact, more)}",
        times.value * ratio.value + plus.value,
        times.exact * ratio.exact + plus.exact,
    )

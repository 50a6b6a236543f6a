"""Formulas with numbers put in: LaTeX that shows the first terms of a long sum, dots, and the total."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from transformer.anatomy.panels import Array
from transformer.config import ModelConfig

TERMS = 2
"""Terms of a sum that are shown before the dots."""
STEEP = 20.0
"""Larger exponents are shown less the largest of them, as every softmax computes them."""
_SPECIAL = {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}


def number(x: float) -> str:
    """Three decimals, or as many as its size needs."""
    size = abs(x)
    if math.isinf(x):
        return r"-\infty" if x < 0 else r"\infty"
    if x == int(x) and size < 1e5:
        return str(int(x))
    if size >= 1e5 or size < 1e-3:
        mantissa, exponent = f"{x:.2e}".split("e")
        times = "" if mantissa == "1.00" else rf"{mantissa} \cdot "
        return rf"{times}10^{{{int(exponent)}}}"
    return f"{x:.{1 if size >= 100 else 2 if size >= 10 else 3}f}"


def factor(x: float) -> str:
    """A number that may stand behind a sign or a dot."""
    text = number(x)
    return f"({text})" if text.startswith("-") or "cdot" in text else text


def text(token: str) -> str:
    """A token in a formula."""
    safe = "".join(_SPECIAL.get(c, f"\\{c}" if c in "{}$&#_%" else c) for c in token)
    return rf"\text{{{safe}}}"


def summed(terms: Sequence[str], last: str = "") -> str:
    """Terms with plus signs between them: all where they are few, else the first, dots, and the last one.

    Args:
        last: a term of its own at the end, such as a bias.
    """
    shown = list(terms) if len(terms) <= TERMS + 1 else [*terms[:TERMS], r"\dots", terms[-1]]
    return " + ".join([*shown, *([last] if last else [])])


def products(left: Array, right: Array, bias: float | None = None) -> str:
    """The sum of the products of two vectors, (n,) each, and a bias."""
    pairs = [
        rf"{factor(a) if i else number(a)} \cdot {factor(b)}"
        for i, (a, b) in enumerate(zip(left.tolist(), right.tolist(), strict=True))
    ]
    return summed(pairs, "" if bias is None else rf"\underbrace{{{factor(bias)}}}_{{\text{{bias}}}}")


def share(scores: Array, at: int) -> str:
    """The softmax of one of some scores, (n,), without its value."""
    highest = float(scores.max())
    shift = highest if max(highest, -float(scores.min())) > STEEP else 0.0
    less = f" - {factor(shift)}" if shift else ""
    powers = [f"e^{{{number(s)}{less}}}" for s in scores.tolist()]
    sizes = np.exp(scores.astype(np.float64) - shift)
    total = rf"\frac{{{number(float(sizes[at]))}}}{{{number(float(sizes.sum()))}}}"
    return rf"\frac{{{powers[at]}}}{{{summed(powers)}}} = {total}"


def norm_formula(model: ModelConfig) -> str:
    """What the norm does to a vector."""
    if model.norm == "scalar":  # the unbiased deviation, and one gain and bias for all
        return r"\mathrm{norm}(x) = \gamma \, \frac{x - \overline{x}}{\mathrm{std}(x) + \epsilon} + \beta"
    standardised = r"\frac{x - \overline{x}}{\sqrt{\mathrm{var}(x) + \epsilon}}"
    return rf"\mathrm{{norm}}(x) = \gamma \odot {standardised} + \beta"


def norm_numbers(model: ModelConfig, x: Array, at: int, gain: Array, bias: Array, made_of: str = "") -> str:
    """The norm of one feature of a vector, (D,), without its value.

    Args:
        gain: (D,), or (1,) where there is one for all.
        bias: like the gain.
        made_of: what stands for that feature, where it was a sum itself.
    """
    wide = x.astype(np.float64)
    above = f"{made_of or number(wide[at])} - {factor(wide.mean())}"
    if model.norm == "scalar":
        below = f"{number(wide.std(ddof=1))} + {number(model.norm_eps)}"
    else:
        below = rf"\sqrt{{{number(wide.var())} + {number(model.norm_eps)}}}"
    i = at if len(gain) > 1 else 0
    return rf"{number(float(gain[i]))} \cdot \frac{{{above}}}{{{below}}} + {factor(float(bias[i]))}"

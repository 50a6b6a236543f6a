"""Formulas with numbers, in LaTeX: correct to the last printed digit if possible, and broken into lines.

Numbers are printed with few digits, so a sum of printed numbers may differ from the printed result. Each
formula is therefore computed from its printed numbers too. Until both results agree, its numbers get more
digits, then the result fewer (see `equation`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from transformer.config import ModelConfig
from transformer.insight.scores import Array

TERMS = 2
"""Number of terms of a long sum that are shown: the largest; the others are shown as their sum."""
_NOTHING = 1e-12
"""Share of the first shown term below which the sum of the others is shown as dots."""
STEEP = 20.0
"""If any exponent is larger in size, all are shown minus the largest, as a softmax computes them."""
_MORE, _LESS = 7, 3
"""Limits of `equation`: fewer digits than these are added to the numbers of a formula, and taken from its
result, until they agree. If they never do, `_MORE` are added and none is taken."""
LONGEST = 44
"""Most characters in a line that can be broken: as many as fit in half of a page 1280 pixels wide."""
_SPECIAL = {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}


@dataclass(frozen=True)
class Shown:
    """A formula of numbers."""

    text: str
    """LaTeX."""
    value: float
    """Its value, computed from the printed numbers."""
    exact: float
    """Its value, computed from the exact numbers."""
    bracketed: bool = False
    """Whether it needs brackets as an operand, as -1 does."""

    @property
    def operand(self) -> str:
        """The text as an operand, in brackets if it needs them."""
        return f"({self.text})" if self.bracketed else self.text

    def __add__(self, other: Shown) -> Shown:
        text = f"{self.text} + {other.operand}"
        return Shown(text, self.value + other.value, self.exact + other.exact)

    def __sub__(self, other: Shown) -> Shown:
        text = f"{self.text} - {other.operand}"
        return Shown(text, self.value - other.value, self.exact - other.exact)

    def __mul__(self, other: Shown) -> Shown:
        text = rf"{self.operand} \cdot {other.operand}"
        return Shown(text, self.value * other.value, self.exact * other.exact)

    def __truediv__(self, other: Shown) -> Shown:
        text = rf"\frac{{{self.text}}}{{{other.text}}}"
        return Shown(text, self.value / other.value, self.exact / other.exact)

    def within(self, before: str, after: str, function: Callable[[float], float] = float) -> Shown:
        """A function of this formula, written as `before` and `after` around it."""
        return Shown(f"{before}{self.text}{after}", function(self.value), function(self.exact))


def root(x: Shown) -> Shown:
    """The square root of a formula."""
    return x.within(r"\sqrt{", "}", math.sqrt)


@dataclass(frozen=True)
class Digits:
    """Prints numbers with one to three decimals, fewer for larger numbers, plus `more`.

    Numbers of 100,000 and more in size, and those below 0.001 except 0, are printed with a power of 10 and
    two decimals, plus `more`; other whole numbers without decimals.

    Args:
        more: additional digits; negative for fewer.
    """

    more: int = 0

    def __call__(self, x: float) -> Shown:
        """A number by itself."""
        plain = self._plain(x)
        text = _latex(plain)
        return Shown(text, float(plain), float(x), text.startswith("-") or "cdot" in text)

    def level(self, x: float) -> Shown:
        """A term of a difference: a whole number, or 1 + `more` decimals whatever its size."""
        plain = str(int(x)) if x == int(x) else f"{x:.{1 + self.more}f}"
        return Shown(plain, float(plain), x, plain.startswith("-"))

    def _plain(self, x: float) -> str:
        """The printed digits, as Python writes them."""
        size = abs(x)
        if math.isinf(x):
            return repr(x)
        if x == int(x) and size < 1e5:
            return str(int(x))
        if size >= 1e5 or size < 1e-3:
            return f"{x:.{max(2 + self.more, 0)}e}"
        decimals = 1 if size >= 100 else 2 if size >= 10 else 3
        return f"{x:.{max(decimals + self.more, 0)}f}"


def _latex(plain: str) -> str:
    """A number as Python writes it, in LaTeX."""
    if plain.endswith("inf"):
        return r"-\infty" if plain.startswith("-") else r"\infty"
    mantissa, e, exponent = plain.partition("e")
    if not e:
        return mantissa
    times = "" if float(mantissa) == 1.0 else rf"{mantissa} \cdot "
    return rf"{times}10^{{{int(exponent)}}}"


def number(x: float, more: int = 0) -> str:
    """A number as it is printed."""
    return Digits(more)(x).text


Forms = Callable[[Digits], Sequence[Shown]]
"""Writes the calculation of a number, in one or more forms, with the given digits."""


def equation(cell: str, forms: Forms, value: float) -> str:
    """An equation: cell = forms of its calculation ≈ value, with digits for all to agree if possible."""
    for less in range(_LESS):
        result = number(value, -less)
        for more in range(_MORE):
            made = forms(Digits(more))
            if all(number(form.value, -less) == result for form in made):
                return _equated(cell, made, result)
    return _equated(cell, forms(Digits(_MORE)), number(value))  # beyond what float32 can tell apart


def _equated(cell: str, forms: Sequence[Shown], result: str) -> str:
    return " = ".join([cell, *(form.text for form in forms)]) + rf" \approx {result}"


def at(*places: int) -> str:
    """The index of a cell: `places` are counted from 0, and written from 1."""
    return f"_{{{','.join(str(place + 1) for place in places)}}}"


def text(token: str) -> str:
    """A token in a formula."""
    safe = "".join(_SPECIAL.get(c, f"\\{c}" if c in "{}$&#_%" else c) for c in token)
    return rf"\text{{{safe}}}"


def _named(x: Shown, name: str) -> Shown:
    """A number with its name below it."""
    inside = x.operand if x.exact < 0 else x.text
    return Shown(rf"\underbrace{{{inside}}}_{{\text{{{name}}}}}", x.value, x.exact)


def summed(digits: Digits, terms: Sequence[Shown], last: Shown | None = None) -> Shown:
    """A sum of terms: all of them if they are few, otherwise the largest and the sum of the rest.

    Args:
        last: a separate term at the end, such as a bias.
    """
    kept = list(terms)
    if len(terms) > TERMS + 1:
        largest = sorted(sorted(range(len(terms)), key=lambda i: -abs(terms[i].exact))[:TERMS])
        rest = math.fsum(term.exact for i, term in enumerate(terms) if i not in largest)
        others = _named(digits(rest), f"{len(terms) - TERMS} more")
        if abs(rest) < _NOTHING * abs(terms[largest[0]].exact):
            others = Shown(r"\dots", 0.0, 0.0)
        kept = [*(terms[i] for i in largest), others]
    kept += [last] if last else []
    return Shown(
        " + ".join(term.text for term in kept),
        math.fsum(term.value for term in kept),
        math.fsum(term.exact for term in kept),
    )


def products(digits: Digits, left: Array, right: Array, bias: float | None = None) -> Shown:
    """The sum of the products of two vectors, (n,) each, and a bias."""
    pairs = [digits(a) * digits(b) for a, b in zip(left.tolist(), right.tolist(), strict=True)]
    return summed(digits, pairs, None if bias is None else _named(digits(bias), "bias"))


def share(digits: Digits, scores: Array, place: int) -> tuple[Shown, Shown]:
    """The softmax of the score at `place`, of (n,), in two forms: with the scores, and with powers of e."""
    wide = scores.astype(np.float64)
    highest = float(wide.max())
    steep = max(highest, -float(wide.min())) > STEEP
    exponents = [
        digits.level(score) - digits.level(highest) if steep else digits(score) for score in wide.tolist()
    ]
    powers = [exponent.within("e^{", "}", math.exp) for exponent in exponents]
    total = summed(digits, powers)
    # Computed from the printed scores, so that a recalculation by hand agrees.
    return powers[place] / total, digits(powers[place].value) / digits(total.value)


def norm_formula(model: ModelConfig) -> str:
    """The formula of the norm."""
    if model.norm == "scalar":  # unbiased standard deviation, one gain and one bias
        return r"\mathrm{norm}(x) = \gamma \, \frac{x - \overline{x}}{\mathrm{std}(x) + \epsilon} + \beta"
    standardised = r"\frac{x - \overline{x}}{\sqrt{\mathrm{var}(x) + \epsilon}}"
    return rf"\mathrm{{norm}}(x) = \gamma \odot {standardised} + \beta"


def norm_numbers(
    digits: Digits,
    model: ModelConfig,
    x: Array,
    feature: int,
    gain: Array,
    bias: Array,
    made_of: Shown | None = None,
) -> Shown:
    """The norm of one feature of a vector, (D,).

    Args:
        gain: (D,), or (1,) if all features share one.
        bias: like the gain.
        made_of: the sum that is shown in place of the feature, if the feature is a sum.
    """
    wide = x.astype(np.float64)
    one = digits(float(wide[feature])) if made_of is None else made_of.within("(", ")")
    eps, i = digits(model.norm_eps), min(feature, len(gain) - 1)
    if model.norm == "scalar":
        spread = digits(float(wide.std(ddof=1))) + eps
    else:
        spread = root(digits(float(wide.var())) + eps)
    standardised = (one - digits(float(wide.mean()))) / spread
    times = replace(digits(float(gain[i])), bracketed=False)  # a first factor needs no brackets
    return times * standardised + digits(float(bias[i]))


# Line breaks, so that the value at the end is not cut off.


def broken_formula(formula: str) -> str:
    """Statements one below the other where they do not fit side by side."""
    lines: list[str] = []
    for _, statement in _split(formula, (r", \quad ",)):
        if lines and width(f"{lines[-1]}, {statement}") <= LONGEST:
            lines[-1] += rf", \quad {statement}"
        else:
            lines.append(statement)
    return formula if len(lines) == 1 else _stacked("gathered", lines)


def broken_numbers(numbers: str) -> str:
    """The calculation with line breaks before = or ≈ where it does not fit, and inside long sums."""
    (_, left), *parts = _split(numbers, (" = ", r" \approx "))
    lines: list[str] = []
    for n, (sign, part) in enumerate(parts):
        start = f"{left} &{sign.strip()}" if n == 0 else f"&{sign.strip()}"
        if lines and width(f"{lines[-1]}{sign}{part}") <= LONGEST:
            lines[-1] += f"{sign}{part}"
            continue
        (_, first), *terms = _split(part, (" + ",))
        lines.append(f"{start} {first}")
        for _, term in terms:
            if width(f"{lines[-1]} + {term}") <= LONGEST:
                lines[-1] += f" + {term}"
            else:
                lines.append(rf"&\quad + {term}")
    return numbers if len(lines) == 1 else _stacked("aligned", lines)


def _stacked(kind: str, lines: Sequence[str]) -> str:
    together = r" \\[0.4em] ".join(lines)
    return rf"\begin{{{kind}}} {together} \end{{{kind}}}"


def width(formula: str) -> int:
    """Approximate width of a formula in characters; a fraction is as wide as the wider of its two parts."""
    text = formula
    while (at := text.find(r"\frac{")) >= 0:
        middle = _end(text, at + 5)
        end = _end(text, middle)
        above, below = text[at + 6 : middle - 1], text[middle + 1 : end - 1]
        longer = above if width(above) >= width(below) else below
        text = f"{text[:at]} {longer} {text[end:]}"
    text = re.sub(
        r"\\(mathrm|text|underbrace|sqrt|hat|tilde|overline|Big|quad)|_\{\\text\{[^{}]*\}\}", "", text
    )
    return len(re.sub(r"[{}_^&\s]", "", re.sub(r"\\([a-zA-Z]+|.)", "x", text)))


def _end(text: str, start: int) -> int:
    """The index after the brace that closes the one at `start`; the length of the text if none does."""
    depth = 0
    for i in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return i + 1
    return len(text)


def _split(text: str, separators: Sequence[str]) -> list[tuple[str, str]]:
    """A formula split at the separators outside all braces: each part after the separator before it."""
    parts, begin, depth, i, before = [], 0, 0, 0, ""
    while i < len(text):
        escaped = i and text[i - 1] == "\\"
        depth += 0 if escaped else {"{": 1, "}": -1}.get(text[i], 0)
        separator = next((s for s in separators if depth == 0 and text.startswith(s, i)), None)
        if separator is None:
            i += 1
            continue
        parts.append((before, text[begin:i]))
        before, begin = separator, i + len(separator)
        i = begin
    return [*parts, (before, text[begin:])]

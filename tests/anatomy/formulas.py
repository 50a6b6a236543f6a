"""A parser of printed formulas: computes a formula's value from its printed numbers."""

from __future__ import annotations

import math
import re

NAMED = re.compile(r"\\underbrace\{((?:[^{}]|\{[^{}]*\})*)\}_\{\\text\{(?:bias|\d+ more)\}\}")
"""A bias, or the sum of the terms that are not shown."""
PYTHON = {r"\cdot": "*", "e^": "exp", "10000^": "10000**", "10^": "10**", ")^2": ")**2"}


def printed(numbers: str) -> tuple[float, float]:
    """Return the value that a formula ends with, and half a unit of its last digit."""
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


def _grouped(text: str, start: int) -> tuple[str, int]:
    """Return the text between the brace at `start` and its closing brace, and the index after that."""
    depth = 0
    for i in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if not depth:
            return text[start + 1 : i], i + 1
    raise AssertionError(text)


def evaluated(text: str) -> float:
    """Return the value of a formula that consists of numbers alone."""
    text = NAMED.sub(r"\1", text).replace(r"\Big", "").replace(r"+ \dots", "")  # too small to count
    while (at := text.find(r"\frac")) >= 0:
        above, middle = _grouped(text, at + 5)
        below, end = _grouped(text, middle)
        text = f"{text[:at]}(({above})/({below})){text[end:]}"
    for latex, python in PYTHON.items():
        text = text.replace(latex, python)
    code = text.replace("\\", "").replace("{", "(").replace("}", ")")
    return eval(code, {"exp": math.exp, "sqrt": math.sqrt, "sin": math.sin, "cos": math.cos})


def _flowing(numbers: str) -> str:
    """Return a formula as one line."""
    for sign in (r"\begin{aligned} ", r" \end{aligned}", r"\quad "):
        numbers = numbers.replace(sign, "")
    return numbers.replace(r" \\[0.4em] &", " ").replace("&", "")


def assert_holds(numbers: str) -> int:
    """Assert that each expression of numbers between equals signs gives the printed value to its last digit.

    Returns:
        The number of these expressions.
    """
    text = _flowing(numbers)
    parts = re.split(r" = | \\approx ", text)
    forms = [part for part in parts[1:-1] if not re.search(r"[_\[]|\\mathrm|\\text", NAMED.sub(r"\1", part))]
    value, half = printed(text)
    for form in forms:
        assert abs(evaluated(form) - value) <= half, numbers
    return len(forms)

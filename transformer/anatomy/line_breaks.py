"""Line breaks in long formulas, so that the value at the end is never cut off."""

from __future__ import annotations

import re
from collections.abc import Sequence

LONGEST = 44
"""Most characters in a line: as many as fit in half of a page that is 1280 pixels wide."""


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
    """Parts of a formula outside all braces, each with the separator before it."""
    parts, begin, depth, i, before = [], 0, 0, 0, ""
    while i < len(text):
        escaped = i and text[i - 1] == "\\"
        depth += 0 if escaped else {"{": 1, "}": -1}.get(text[i], 0)
        found = next((s for s in separators if depth == 0 and text.startswith(s, i)), None)
        if found is None:
            i += 1
            continue
        parts.append((before, text[begin:i]))
        before, begin = found, i + len(found)
        i = begin
    return [*parts, (before, text[begin:])]

"""How texts of one side of a task are split into units (words or characters) and joined again."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

UNSPACED = "\u3005-\u3007\u3040-\u3098\u309b-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
"""Ranges of a character class: Chinese and Japanese characters, each a word of its own, without spaces."""
_FULLWIDTH = "\u3000-\u3004\u3008-\u3020\u3030\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f"
    "\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0900-\u0963\u0971-\u0df3\u0e31-\u0e3a"
    "\u0e47-\u0e4e\u0eb1-\u0ebc\u0ec8-\u0ece\u0f71-\u0f84\u0f86-\u0fbc\u102b-\u103e\u1056-\u1059"
    "\u17b4-\u17d3\u1ab0-\u1aff\u1dc0-\u1dff\u200c\u200d\u20d0-\u20f0\u3099\u309a\ufe00-\ufe0f\ufe20-\ufe2f"
)
"""Ranges of a character class: combining marks and joiners, such as the vowel signs of Hindi, which belong to
a word but are not matched by Python's \\w. Some of the ranges contain letters too."""
_NUMBERS = "¹²³¼-¾\u2070-\u209f\u2150-\u215f\u2189\u2460-\u24ff\u2776-\u2793"
"""Ranges of a character class: numbers that \\w of the `tokenizers` package does not match, with the signs
among them."""
_LETTER = rf"(?:[^\W_{UNSPACED}]|[{_MARKS}{_NUMBERS}])"
WORDS = (
    rf"[{UNSPACED}]"
    rf"|{_LETTER}+(?='s(?!-?{_LETTER}))|'s(?!-?{_LETTER})"  # boy 's
    rf"|{_LETTER}+'(?={_LETTER})"  # l' homme
    rf"|{_LETTER}+(?:-{_LETTER}+)*"
    r"|[^\s]"
)
"""Regular expression of a word: letters or digits with inner hyphens; a final "'s", or the part up to another
inner apostrophe, such as "l'", on its own; one character of UNSPACED; or any other sign."""
CHARACTERS = "."
NON_SPACES = r"[^\s]+"
"""Regular expression of a unit between spaces, such as one letter in Morse code."""
_TAKES_NO_SPACE = re.compile(rf"[{UNSPACED}{_FULLWIDTH}]")
_SPACES = re.compile(r"\s+")
_CLOSING, _OPENING = ".,…)]}%", "([{"


@dataclass(frozen=True)
class Writing:
    """The rules for the text of one side of a task."""

    unit: str = WORDS
    """Regular expression of one unit, for Python and the `tokenizers` package alike."""
    separator: str = " "
    """The text between two units, where no rule of spelling says otherwise."""
    lower: bool = True
    """Whether texts are lower-cased."""
    spaced_signs: str = ""
    """The signs among ? ! ; : that take a space before them, as in French."""

    @property
    def unit_name(self) -> str:
        """The name of its units, as text on the page: characters or words."""
        return "characters" if self.unit == CHARACTERS else "words"

    @cached_property
    def _units(self) -> re.Pattern[str]:
        return re.compile(self.unit)

    def clean(self, text: str) -> str:
        """Normalise a text: NFC, ' for ’, spaces where `join` puts them, and lower case if `lower`."""
        text = unicodedata.normalize("NFC", text).replace("’", "'")
        text = _SPACES.sub(" ", text).strip()  # \s matches U+00A0 and U+202F too
        text = self.join(self.units(text.lower() if self.lower else text))
        return unicodedata.normalize("NFC", text)  # again: lower() and join() can undo the composition

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The (start, end) offsets, in characters, of each unit of a text, which is not cleaned first."""
        return [match.span() for match in self._units.finditer(text)]

    def units(self, text: str) -> tuple[str, ...]:
        """The units of a text."""
        return tuple(self._units.findall(text))

    def join(self, units: Sequence[str]) -> str:
        """Join units into a text, with `separator` where the rules of spelling need it."""
        parts: list[str] = []
        for i, unit in enumerate(units):
            if i and self._needs_space(units[i - 1], unit):
                parts.append(self.separator)
            parts.append(unit)
        return "".join(parts)

    def _needs_space(self, left: str, right: str) -> bool:
        """Whether `separator` stands between two units."""
        if self.unit == NON_SPACES or self.separator != " ":
            return True
        if _TAKES_NO_SPACE.match(left) or _TAKES_NO_SPACE.match(right):
            return False
        if left.endswith("'") or left in _OPENING or right.startswith("'"):
            return False
        return right not in _CLOSING and (right not in "?!;:" or right in self.spaced_signs)


LETTERS = Writing(unit=CHARACTERS, separator="")
"""Each character is a unit."""

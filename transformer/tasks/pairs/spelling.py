"""Many sentences spelled as a `Writing` spells them: the same as its `clean`, and words far more quickly."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from transformer.tasks.writing import UNSPACED, WORDS, Writing

FRENCH = "?!;:"
"""The signs that French sets apart by a space."""
_LETTER = rf"[^\W_{UNSPACED}]"
_WORD = rf"(?>(?:{_LETTER}+')?{_LETTER}+(?:-{_LETTER}+)*(?:'{_LETTER}+)?)"
_WORDS = rf"{_WORD}(?>(?:,? {_WORD})*)"
# Nothing is tried twice (?>): else a long sentence that fails at its end would take for ever. The possessive
# *+ means the same, but CPython 3.11.2 forgets what follows it.
_CLEAN = {
    "": re.compile(rf"{_WORDS}[?!.,]?").fullmatch,
    FRENCH: re.compile(rf"{_WORDS}(?: [?!]|[.,])?").fullmatch,
}
_SIGNS = re.compile(r"[?!]+")


def spaced_signs(texts: Iterable[str]) -> str:
    """The signs with a space before them: those of French where most ? and ! of the texts have one."""
    spaced = found = 0
    for text in texts:
        for sign in _SIGNS.finditer(text, 1):  # nothing stands before one that begins a text
            found += 1
            spaced += text[sign.start() - 1] == " "
    return FRENCH if 2 * spaced > found else ""


def cleaner(writing: Writing) -> Callable[[str], str]:
    """What cleans texts that are `plain` already, for a writing of `units.py`.

    Most sentences are words with single spaces and a sign at the end. Nothing is left to do for them but to
    lower capitals, as one match tells; all others go the slow way.
    """
    if writing.unit != WORDS:
        return writing.clean
    is_clean = _CLEAN[writing.spaced]

    def cleaned(text: str) -> str:
        spelled = text.replace("’", "'")
        if writing.lower:
            spelled = spelled.lower()
        return spelled if is_clean(spelled) else writing.clean(text)

    return cleaned

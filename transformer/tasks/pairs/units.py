"""The unit in which the user's own pairs are read, chosen by measuring the pairs, and their spelling."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from transformer.tasks.corpus import chosen_by_hash
from transformer.tasks.writing import CHARACTERS, NON_SPACES, UNSPACED, WORDS, Writing

MOST_UNKNOWN = 0.1
"""Share of the held-out tokens that may be unknown; with more of them too few pairs can come out right."""
LOOKED_AT = 20_000
"""Texts of a large file from which the form of a side is inferred."""
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
FRENCH = "?!;:"
"""The signs that French sets apart by a space."""
_LETTER = rf"[^\W_{UNSPACED}]"
_WORD = rf"(?>(?:{_LETTER}+')?{_LETTER}+(?:-{_LETTER}+)*(?:'{_LETTER}+)?)"
_WORDS = rf"{_WORD}(?>(?:,? {_WORD})*)"
# Atomic groups (?>) do not backtrack: otherwise a long sentence that fails at its end would take forever.
# The possessive *+ means the same, but CPython 3.11.2 ignores what follows it.
_CLEAN = {
    "": re.compile(rf"{_WORDS}[?!.,]?").fullmatch,
    FRENCH: re.compile(rf"{_WORDS}(?: [?!]|[.,])?").fullmatch,
}
_SIGNS = re.compile(r"[?!]+")


def is_held_out(source: str) -> bool:
    """Whether a source, with all its targets, is kept from training: one in ten, the same in every run.

    Unlike `held_out_by_hash` it has no cache, so the user's sentences do not stay in memory after the run.
    """
    return chosen_by_hash("pairs", source)


def writing_of(texts: Sequence[str], sources: Sequence[str], *, lower: bool) -> Writing:
    """How a side is read: in words; or in characters where words would leave too much unknown.

    Characters are chosen where most texts are a single word, or have no spaces as in some scripts, and more
    than `MOST_UNKNOWN` of the held-out words occur in no other text (and a smaller share of the characters).
    Sentences are read in words: in characters they are too long to be learned in minutes. Where most of a
    side is signs, as in Morse code, a word is whatever stands between two spaces.

    Args:
        texts: of this side, each as `plain` leaves it.
        sources: the sources of the same pairs, which decide which pairs are held out.
        lower: whether texts are lower-cased.
    """
    some = texts[:: -(-len(texts) // LOOKED_AT) or 1]
    if _mostly_signs(some):
        words = Writing(unit=NON_SPACES, lower=lower)
    else:
        words = Writing(lower=lower, spaced=spaced_signs(texts))
    if 2 * sum(" " not in text for text in some) <= len(some):
        return words
    held_out = [is_held_out(source.lower() if lower else source) for source in sources]
    characters = Writing(unit=CHARACTERS, between="", lower=lower)
    in_words, spelled = (
        unknown_share(writing, list(map(cleaner(writing), texts)), held_out)
        for writing in (words, characters)
    )
    return characters if spelled < in_words > MOST_UNKNOWN else words


def in_words(writing: Writing) -> Writing:
    """The same side in words: of one that is read in characters, what stands between two spaces."""
    return replace(writing, unit=NON_SPACES, between=" ") if writing.unit == CHARACTERS else writing


def unknown_share(writing: Writing, texts: Sequence[str], held_out: Sequence[bool]) -> float:
    """The share of the units of held-out texts that no other text has; 0 where nothing is held out.

    Args:
        texts: as the writing spells them.
        held_out: whether each of them is held out.
    """
    known: set[str] = set()
    asked: list[str] = []
    for text, kept_away in zip(texts, held_out, strict=True):
        units = writing.units(text)
        if kept_away:
            asked += units
        else:
            known.update(units)
    return sum(unit not in known for unit in asked) / max(1, len(asked))


def _mostly_signs(texts: Sequence[str]) -> bool:
    """Whether fewer than half of all characters, spaces left out, are letters or digits."""
    text = "".join(texts).replace(" ", "")
    return 2 * len(_LETTER_OR_DIGIT.findall(text)) < len(text)


def spaced_signs(texts: Iterable[str]) -> str:
    """The signs with a space before them: those of French where most ? and ! of the texts have one."""
    spaced = found = 0
    for text in texts:
        for sign in _SIGNS.finditer(text, 1):  # nothing stands before one that begins a text
            found += 1
            spaced += text[sign.start() - 1] == " "
    return FRENCH if 2 * spaced > found else ""


def cleaner(writing: Writing) -> Callable[[str], str]:
    """A function that cleans texts that are already `plain`, for a writing of `writing_of`.

    Most sentences are words with single spaces and a sign at the end. They need only straight apostrophes
    and lower case, which one match confirms; all others go through `Writing.clean`.
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

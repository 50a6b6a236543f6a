"""The unit in which the user's own pairs are read, chosen by measuring the pairs, and their spelling."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from transformer.tasks.corpus import chosen_by_hash
from transformer.tasks.writing import CHARACTERS, NON_SPACES, UNSPACED, WORDS, Writing

MOST_UNKNOWN = 0.1
"""Maximum share of unknown tokens in held-out examples; with more, too few answers can be right."""
LOOKED_AT = 20_000
"""Maximum number of texts in a sample of a large file."""
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
FRENCH_SPACED_SIGNS = "?!;:"
"""The signs that French sets apart by a space."""
_LETTER = rf"[^\W_{UNSPACED}]"
_WORD = rf"(?>(?:{_LETTER}+')?{_LETTER}+(?:-{_LETTER}+)*(?:'{_LETTER}+)?)"
_WORDS = rf"{_WORD}(?>(?:,? {_WORD})*)"
# Atomic groups (?>) do not backtrack: otherwise a long sentence that fails at its end could take very long.
# The possessive *+ means the same, but CPython 3.11.2 ignores what follows it.
_CLEAN = {
    "": re.compile(rf"{_WORDS}[?!.,]?").fullmatch,
    FRENCH_SPACED_SIGNS: re.compile(rf"{_WORDS}(?: [?!]|[.,])?").fullmatch,
}
_SIGNS = re.compile(r"[?!]+")


def is_held_out(source: str) -> bool:
    """Whether a source, with all its targets, is kept from training: one in ten, the same in every run.

    Unlike `held_out_by_hash` it has no cache, so the user's sentences do not stay in memory after the run.
    """
    return chosen_by_hash("pairs", source)


def writing_of(texts: Sequence[str], sources: Sequence[str], *, lower: bool) -> Writing:
    """The writing of a side: in words, or in characters where too many words would be unknown.

    Characters are chosen where most texts are a single word, or have no spaces as in some scripts, and more
    than `MOST_UNKNOWN` of the held-out words occur in no training text (and a smaller share of the
    characters). Other texts are read in words: sentences in characters are too long to be learned in minutes.
    Where most of a side is signs, as in Morse code, a word is the text between two spaces.

    Args:
        texts: the texts of this side, normalised by `plain`.
        sources: the sources of the same pairs, normalised by `plain`; their hashes decide which are held out.
        lower: whether texts are lower-cased.
    """
    some = texts[:: -(-len(texts) // LOOKED_AT) or 1]
    if _mostly_signs(some):
        words = Writing(unit=NON_SPACES, lower=lower)
    else:
        words = Writing(lower=lower, spaced_signs=spaced_signs(texts))
    if 2 * sum(" " not in text for text in some) <= len(some):
        return words
    held_out = [is_held_out(source.lower() if lower else source) for source in sources]
    characters = Writing(unit=CHARACTERS, separator="", lower=lower)
    in_words, spelled = (
        unknown_share(writing, list(map(cleaner(writing), texts)), held_out)
        for writing in (words, characters)
    )
    return characters if spelled < in_words > MOST_UNKNOWN else words


def in_words(writing: Writing) -> Writing:
    """The writing of the same side in words; in place of characters, units are the texts between spaces."""
    return replace(writing, unit=NON_SPACES, separator=" ") if writing.unit == CHARACTERS else writing


def unknown_share(writing: Writing, texts: Sequence[str], held_out: Sequence[bool]) -> float:
    """The share of the units of held-out texts that no training text has; 0 where nothing is held out.

    Args:
        texts: spelled by the writing.
        held_out: whether each text is held out.
    """
    vocabulary: set[str] = set()
    asked: list[str] = []
    for text, kept_away in zip(texts, held_out, strict=True):
        units = writing.units(text)
        if kept_away:
            asked += units
        else:
            vocabulary.update(units)
    return sum(unit not in vocabulary for unit in asked) / max(1, len(asked))


def _mostly_signs(texts: Sequence[str]) -> bool:
    """Whether fewer than half of all characters, spaces left out, are letters or digits."""
    text = "".join(texts).replace(" ", "")
    return 2 * len(_LETTER_OR_DIGIT.findall(text)) < len(text)


def spaced_signs(texts: Iterable[str]) -> str:
    """The signs that take a space before them: `FRENCH_SPACED_SIGNS` if most ? and ! have one."""
    spaced = signs = 0
    for text in texts:
        for sign in _SIGNS.finditer(text, 1):  # nothing stands before the first character
            signs += 1
            spaced += text[sign.start() - 1] == " "
    return FRENCH_SPACED_SIGNS if 2 * spaced > signs else ""


def cleaner(writing: Writing) -> Callable[[str], str]:
    """A faster `Writing.clean` for texts normalised by `plain`, in a writing made by `writing_of`.

    Most sentences are words with single spaces and a sign at the end. They need only straight apostrophes
    and lower case, which one match confirms; all others go through `Writing.clean`.
    """
    if writing.unit != WORDS:
        return writing.clean
    is_clean = _CLEAN[writing.spaced_signs]

    def cleaned(text: str) -> str:
        spelled = text.replace("’", "'")
        if writing.lower:
            spelled = spelled.lower()
        return spelled if is_clean(spelled) else writing.clean(text)

    return cleaned

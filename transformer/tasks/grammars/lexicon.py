"""The words of English and another language, each with its forms and its possible combinations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

WORDS = Path(__file__).parent / "words"
PERSON, ANIMAL, THING = "person", "animal", "thing"
Kinds = tuple[str, ...]
ANIMATE: Kinds = (PERSON, ANIMAL)
NOT_PERSONS: Kinds = (ANIMAL, THING)
ALL: Kinds = (PERSON, ANIMAL, THING)

SINGULAR, PLURAL, OWNING = ("a", "this"), ("these", "three"), ("my", "his", "her")
"""Determiners; "the" and the possessives fit singular and plural."""
ENOUGH = 3
"""Minimum number of nouns that fit a phrase with an adjective: a sentence has up to three, none twice."""


@dataclass(frozen=True, eq=False)
class Noun:
    """A noun with its gender and its plurals, which are listed because many are irregular."""

    en: str
    en_many: str
    kind: str
    gender: str
    """m or f."""
    one: str
    many: str


@dataclass(frozen=True, eq=False)
class Adjective:
    """An adjective with its forms and its place before or after the noun."""

    en: str
    forms: tuple[str, ...]
    """Masculine and feminine, then both in the plural."""
    before: bool
    """Whether it stands before its noun; after it otherwise."""
    kinds: Kinds
    about: str
    """The quality described, such as colour; at most one of each per noun. Empty: a quality of its own."""
    never: tuple[str, ...]
    """English nouns with which it would mean something else."""

    def goes_with(self, noun: Noun) -> bool:
        """Whether the adjective can describe this noun."""
        return noun.kind in self.kinds and noun.en not in self.never

    def repeats(self, other: Adjective) -> bool:
        """Whether both adjectives describe the same quality."""
        return (self.about or self.en) == (other.about or other.en)


@dataclass(frozen=True, eq=False)
class Verb:
    """A verb with its forms, objects and subjects."""

    en: str
    en_one: str
    """As in "he sees"."""
    forms: tuple[str, ...]
    """Forms for he and they; then for I and we, where the language drops the pronoun."""
    objects: Kinds
    """Kinds of its objects; empty for a verb without one."""
    subjects: Kinds
    takes_a: bool
    """Whether its object may be indefinite, as in "sees a cat"; that of "likes" may not."""


@dataclass(frozen=True, eq=False)
class Lexicon:
    """The words of English and another language, with the rules for their forms."""

    nouns: tuple[Noun, ...]
    adjectives: tuple[Adjective, ...]
    verbs: tuple[Verb, ...]
    sounds: dict[str, re.Pattern[str]]
    """The word beginnings that have each sound; the form of the word before depends on it."""
    forms: dict[tuple[str, str], tuple[str, ...]]
    """(English word, sound of the next word) to masculine and feminine, then both in the plural."""
    contractions: dict[str, str]
    """The contractions of determiners of the other language with its word for "of"."""
    patterns: dict[str, str]
    """What to look for in the attention, by the name of the sentence pattern."""
    tracked_words: tuple[str, ...]
    """Questions to track at first, the most instructive first."""

    def forms_before(self, english: str, following: str) -> tuple[str, ...]:
        """The forms of a word before the word `following`; empty where none are listed."""
        for sound, beginning in self.sounds.items():
            if beginning.match(following) and (english, sound) in self.forms:
                return self.forms[english, sound]
        return self.forms.get((english, ""), ())


def read_rows(language: str) -> dict[str, list[list[str]]]:
    """Rows of a file in `words/` by their first cell, split at tabs; comments there name the columns."""
    rows: dict[str, list[list[str]]] = {}
    for line in (WORDS / f"{language}.tsv").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            what, *cells = line.split("\t")
            rows.setdefault(what, []).append(cells)
    return rows


def read_lexicon(language: str) -> Lexicon:
    """The words of English and this language."""
    rows = read_rows(language)
    return Lexicon(
        nouns=tuple(Noun(*row) for row in rows["noun"]),
        adjectives=tuple(_adjective(*row) for row in rows["adjective"]),
        verbs=tuple(_verb(*row) for row in rows["verb"]),
        sounds={name: re.compile(beginning) for name, beginning in rows["sound"]},
        forms={(en, sound): _four(forms) for en, sound, *forms in rows["form"]},
        contractions=dict(rows["contraction"]),
        patterns=dict(rows["pattern"]),
        tracked_words=tuple(word for (word,) in rows["tracked"]),
    )


def _adjective(en: str, forms: str, place: str, kinds: str, about: str = "", never: str = "") -> Adjective:
    return Adjective(
        en,
        tuple(forms.split()),
        before=place == "before",
        kinds=tuple(kinds.split()),
        about=about,
        never=tuple(never.split()),
    )


def _verb(en: str, en_one: str, forms: str, objects: str, subjects: str, which: str) -> Verb:
    return Verb(
        en,
        en_one,
        tuple(forms.split()),
        tuple(objects.split()),
        tuple(subjects.split()),
        takes_a=which == "any",
    )


def _four(forms: list[str]) -> tuple[str, ...]:
    """Up to four forms, repeated to four; a dash stands for no word."""
    return tuple((["" if form == "-" else form for form in forms] * 4)[:4])


class Counted(NamedTuple):
    """A noun in the singular or the plural."""

    noun: Noun
    plural: bool

    @property
    def en(self) -> str:
        """As English says it."""
        return self.noun.en_many if self.plural else self.noun.en


@lru_cache(maxsize=4096)
def grammatical_numbers(determiner: str, plural: bool | None) -> tuple[bool, ...]:
    """Grammatical numbers of a noun after a determiner, False for singular; `plural` may restrict them."""
    numbers = (False,) if determiner in SINGULAR else (True,) if determiner in PLURAL else (False, True)
    return tuple(number for number in numbers if plural in (None, number))


@lru_cache(maxsize=4096)
def nouns_for(
    lexicon: Lexicon, kinds: Kinds, determiner: str, plural: bool | None, adjectives: tuple[Adjective, ...]
) -> tuple[Counted, ...]:
    """Nouns that fit a determiner and adjectives. No persons after a possessive: "my woman" is the wife."""
    return tuple(
        Counted(noun, number)
        for noun in lexicon.nouns
        if noun.kind in kinds and not (noun.kind == PERSON and determiner in OWNING)
        if all(adjective.goes_with(noun) for adjective in adjectives)
        for number in grammatical_numbers(determiner, plural)
    )


@lru_cache(maxsize=4096)
def adjectives_for(
    lexicon: Lexicon, kinds: Kinds, determiner: str, said: tuple[Adjective, ...], before: bool
) -> tuple[Adjective, ...]:
    """Adjectives that fit a determiner and other adjectives, and leave enough nouns to follow."""
    return tuple(
        adjective
        for adjective in lexicon.adjectives
        if adjective.before == before and not any(adjective.repeats(other) for other in said)
        if len({each.noun for each in nouns_for(lexicon, kinds, determiner, None, (*said, adjective))})
        >= ENOUGH
    )


@lru_cache(maxsize=4096)
def predicates_for(lexicon: Lexicon, noun: Noun, said: tuple[Adjective, ...]) -> tuple[Adjective, ...]:
    """Adjectives that can be the predicate of a noun that other adjectives describe already."""
    return tuple(
        adjective
        for adjective in lexicon.adjectives
        if adjective.goes_with(noun) and not any(adjective.repeats(other) for other in said)
    )


@lru_cache(maxsize=4096)
def verbs_for(lexicon: Lexicon, subject: str, objects: Sequence[str] | None) -> tuple[Verb, ...]:
    """Verbs for such a subject with objects of these kinds; None: all, also those without an object."""
    return tuple(
        verb
        for verb in lexicon.verbs
        if subject in verb.subjects
        if objects is None or any(kind in verb.objects for kind in objects)
    )

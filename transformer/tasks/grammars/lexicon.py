"""The words of English and another language, each with its forms and with what it goes with."""

from __future__ import annotations

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
"""Determiners; "the" and the owning ones take both numbers."""
ENOUGH = 3
"""An adjective needs so many nouns, so that one is left when no noun may come twice in a sentence."""


@dataclass(frozen=True, eq=False)
class Noun:
    """A thing with a gender; its plural is written out, for many are irregular."""

    en: str
    en_many: str
    kind: str
    gender: str
    """m or f."""
    one: str
    many: str


@dataclass(frozen=True, eq=False)
class Adjective:
    """A quality, and where it stands."""

    en: str
    forms: tuple[str, str, str, str]
    """Masculine and feminine, then both in the plural."""
    before: bool = False
    """Whether it stands before its noun; after it otherwise."""
    kinds: Kinds = ALL
    about: str = ""
    """What it speaks of, such as colour: nothing is said to be two of those. By default of itself only."""
    never: tuple[str, ...] = ()
    """English nouns with which it would mean something else."""

    def goes_with(self, noun: Noun) -> bool:
        """Whether such a thing is called so."""
        return noun.kind in self.kinds and noun.en not in self.never

    def repeats(self, other: Adjective) -> bool:
        """Whether both speak of the same."""
        return (self.about or self.en) == (other.about or other.en)


@dataclass(frozen=True, eq=False)
class Verb:
    """What one does."""

    en: str
    en_one: str
    """As in "he sees"."""
    forms: tuple[str, ...]
    """Of he and they; then of I and we, where the language says so without a pronoun."""
    objects: Kinds = ()
    """To what; nothing where it is done to nothing."""
    subjects: Kinds = ANIMATE
    takes_a: bool = True
    """Whether its object may be any one, as in "sees a cat"; liking is of what one knows."""


@dataclass(frozen=True, eq=False)
class Lexicon:
    """All words with a meaning of their own that sentences are made of."""

    nouns: tuple[Noun, ...]
    adjectives: tuple[Adjective, ...]
    verbs: tuple[Verb, ...]


def read_lexicon(language: str) -> Lexicon:
    """The words of a file in `words/`, a line each with tabs between; it says itself what stands where."""
    nouns, adjectives, verbs = [], [], []
    for line in (WORDS / f"{language}.tsv").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        what, en, *rest = line.split("\t")
        if what == "noun":
            nouns.append(Noun(en, *rest))
        elif what == "adjective":
            forms, place, kinds, about, never = rest
            one, its, many, theirs = forms.split(" ")
            adjectives.append(
                Adjective(
                    en,
                    (one, its, many, theirs),
                    before=place == "before",
                    kinds=tuple(kinds.split(" ")),
                    about=about,
                    never=tuple(never.split()),
                )
            )
        else:
            en_one, forms, objects, subjects, which = rest
            verbs.append(
                Verb(
                    en,
                    en_one,
                    tuple(forms.split(" ")),
                    tuple(objects.split()),
                    tuple(subjects.split(" ")),
                    takes_a=which == "any",
                )
            )
    return Lexicon(tuple(nouns), tuple(adjectives), tuple(verbs))


class Counted(NamedTuple):
    """A noun in the singular or the plural."""

    noun: Noun
    plural: bool

    @property
    def en(self) -> str:
        """As English says it."""
        return self.noun.en_many if self.plural else self.noun.en


@lru_cache(maxsize=4096)
def counts(determiner: str, plural: bool | None) -> tuple[bool, ...]:
    """The numbers, False for singular, of a noun after a determiner; its place may ask for one too."""
    numbers = (False,) if determiner in SINGULAR else (True,) if determiner in PLURAL else (False, True)
    return tuple(number for number in numbers if plural in (None, number))


@lru_cache(maxsize=4096)
def nouns_for(
    lexicon: Lexicon, kinds: Kinds, determiner: str, plural: bool | None, adjectives: tuple[Adjective, ...]
) -> tuple[Counted, ...]:
    """What can be said after a determiner and adjectives. "My woman" would mean another thing: no person."""
    return tuple(
        Counted(noun, number)
        for noun in lexicon.nouns
        if noun.kind in kinds and not (noun.kind == PERSON and determiner in OWNING)
        if all(adjective.goes_with(noun) for adjective in adjectives)
        for number in counts(determiner, plural)
    )


@lru_cache(maxsize=4096)
def adjectives_for(
    lexicon: Lexicon, kinds: Kinds, determiner: str, said: tuple[Adjective, ...], before: bool
) -> tuple[Adjective, ...]:
    """What can be said after a determiner and other adjectives, with enough nouns to follow."""
    return tuple(
        adjective
        for adjective in lexicon.adjectives
        if adjective.before == before and not any(adjective.repeats(other) for other in said)
        if len({each.noun for each in nouns_for(lexicon, kinds, determiner, None, (*said, adjective))})
        >= ENOUGH
    )


@lru_cache(maxsize=4096)
def predicates_for(lexicon: Lexicon, noun: Noun, said: tuple[Adjective, ...]) -> tuple[Adjective, ...]:
    """What a thing that is called so already can be said to be."""
    return tuple(
        adjective
        for adjective in lexicon.adjectives
        if adjective.goes_with(noun) and not any(adjective.repeats(other) for other in said)
    )


@lru_cache(maxsize=4096)
def verbs_for(lexicon: Lexicon, subject: str, objects: Sequence[str] | None) -> tuple[Verb, ...]:
    """What such a subject does to objects of these kinds; None: to any, or to nothing."""
    return tuple(
        verb
        for verb in lexicon.verbs
        if subject in verb.subjects
        if objects is None or any(kind in verb.objects for kind in objects)
    )

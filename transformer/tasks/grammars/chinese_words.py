"""The words of the Chinese grammar, their English and their combinations, from `words/chinese.tsv`."""

from __future__ import annotations

from dataclasses import dataclass

from transformer.tasks.grammars.lexicon import read_rows

SIZE, AGE, PRICE, LOOKS, FAME, COLOUR = "size", "age", "price", "looks", "fame", "colour"
_ROWS = read_rows("chinese")
PATTERNS = dict(_ROWS["pattern"])
"""What to look for in the attention, by the name of the sentence pattern."""
TRACKED_WORDS = dict(_ROWS["tracked"])
"""A question of each sentence pattern, by its name; the most instructive first."""


@dataclass(frozen=True, eq=False)
class Adjective:
    """A quality of a thing; a colour is only said before its noun."""

    text: str
    """The characters that carry the meaning."""
    kind: str
    """A thing never has two adjectives of one kind: nothing is big and small, or red and black."""
    english: str
    comparative: str
    before: str
    """Its form before a noun, with 的 (and 很) where it takes them."""


ADJECTIVES = {row[0]: Adjective(*row) for row in _ROWS["adjective"]}


def adjectives(listed: str) -> tuple[Adjective, ...]:
    """The adjectives in a text, separated by spaces."""
    return tuple(ADJECTIVES[text] for text in listed.split())


@dataclass(frozen=True, eq=False)
class Noun:
    """A thing, with its measure word."""

    text: str
    measure: str
    one: str
    many: str
    before: tuple[Adjective, ...]
    """Adjectives that can stand before it."""
    after: tuple[Adjective, ...]
    """Adjectives that can be its predicate."""


def _noun(text: str, measure: str, one: str, many: str, both: str, after: str = "") -> Noun:
    before = adjectives(both)
    plain = tuple(adjective for adjective in before if adjective.kind != COLOUR)
    return Noun(text, measure, one, many, before, plain + adjectives(after))


NOUNS = {row[0]: _noun(*row) for row in _ROWS["noun"]}
(PLACE,) = (_noun(*row) for row in _ROWS["place"])
"""The noun that fits both a city and a country."""


def nouns(listed: str) -> tuple[Noun, ...]:
    """The nouns in a text, separated by spaces."""
    return tuple(NOUNS[text] for text in listed.split())


@dataclass(frozen=True, eq=False)
class Name:
    """A city or a country, with the adjectives that are true and not true of it."""

    text: str
    english: str
    kind: Noun
    other: Noun
    """The noun that does not fit it: country for a city, city for a country."""
    is_: tuple[Adjective, ...]
    is_not: tuple[Adjective, ...]


def _names(what: str, kind: Noun, other: Noun) -> tuple[Name, ...]:
    return tuple(
        Name(text, english, kind, other, adjectives(is_), adjectives(is_not))
        for text, english, is_, is_not in _ROWS[what]
    )


CITIES = _names("city", NOUNS["城市"], NOUNS["国家"])
"""The largest first, as in COUNTRIES."""
COUNTRIES = _names("country", NOUNS["国家"], NOUNS["城市"])
NAMES = CITIES + COUNTRIES
(NEW_YORK,) = (name for name in CITIES if name.text == "纽约")


@dataclass(frozen=True, eq=False)
class Person:
    """A person, as the subject of a verb."""

    text: str
    english: str
    """With "the" where English needs it."""


OTHERS = tuple(Person(*row) for row in _ROWS["person"])
"""Persons that a question can be about: not I or we."""
PERSONS = (*(Person(*row) for row in _ROWS["speaker"]), *OTHERS)


@dataclass(frozen=True, eq=False)
class Verb:
    """A verb with its possible objects."""

    text: str
    english: str
    past: str
    uses: tuple[str, ...]
    """Patterns that allow it, besides past, yes-no and wh: ba, relative."""
    without: tuple[str, ...]
    """Kinds of adjectives that its object does not take: a drawn thing has no price."""
    objects: tuple[Noun, ...]


VERBS = tuple(
    Verb(text, english, past, tuple(uses.split()), tuple(without.split()), nouns(objects))
    for text, english, past, uses, without, objects in _ROWS["verb"]
)
HANDLED = nouns(_ROWS["handled"][0][0])
"""Nouns that can follow 把."""

TIMES = dict(_ROWS["time"])
NUMBERS = dict(_ROWS["number"])
POSTPOSITIONS = dict(_ROWS["postposition"])


def _things() -> dict[Noun, dict[str, tuple[Noun, ...]]]:
    things: dict[Noun, dict[str, tuple[Noun, ...]]] = {}
    for places, postposition, listed in _ROWS["scene"]:
        for place in nouns(places):
            there = tuple(noun for noun in nouns(listed) if noun is not place)
            things.setdefault(place, {})[postposition] = there
    return things


def _places() -> dict[Noun, dict[Noun, tuple[str, ...]]]:
    places: dict[Noun, dict[Noun, tuple[str, ...]]] = {}
    for place, by_postposition in THINGS.items():
        for postposition, there in by_postposition.items():
            for thing in there if place.text != "地图" else ():
                at = places.setdefault(thing, {})
                at[place] = (*at.get(place, ()), postposition)
    return places


THINGS = _things()
"""What may be where, by place and postposition; never the same noun twice, which would need "another"."""
PLACES = _places()
"""The postpositions of each thing and place; not of 地图, a map: its contents are said with 有."""
ALIKE = tuple(nouns(listed) for (listed,) in _ROWS["alike"])
"""Groups of nouns that can be compared with each other."""

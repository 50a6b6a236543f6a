"""Parts of sentences: most add their Chinese to the source at once, and return their English for `write`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from transformer.tasks.grammars.chinese_words import (
    COLOUR,
    NAMES,
    NEW_YORK,
    NOUNS,
    NUMBERS,
    PERSONS,
    PLACES,
    POSTPOSITIONS,
    PRICE,
    TIMES,
    Adjective,
    Name,
    Noun,
    Person,
    Verb,
    adjectives,
)
from transformer.tasks.grammars.derivation import Derivation, Places

NOWHERE: Places = ()
Words = list[tuple[str, Places]]
"""English words, each with the source places it comes from; `write` turns "a" into "an" where needed."""
ALL_NOUNS = tuple(NOUNS.values())
DEMONSTRATIVES = {"这": ("this", "these"), "那": ("that", "those")}
THIS_OR_THAT = tuple(DEMONSTRATIVES)

_text, _measure, _before = attrgetter("text"), attrgetter("measure"), attrgetter("before")
_NUMBERS, _TIMES = tuple(NUMBERS), tuple(TIMES)
_SHORT = adjectives("大 小 新 旧")
"""Adjectives that may stand between a colour and its noun."""


@dataclass
class Phrase:
    """A noun with the words before it."""

    words: Words
    noun: Noun
    plural: bool
    adjectives: tuple[Adjective, ...]

    @property
    def be(self) -> str:
        """The form of "to be" that agrees."""
        return "are" if self.plural else "is"

    def after(self, without: Sequence[str] = ()) -> list[Adjective]:
        """Adjectives that can still be its predicate, none of these kinds."""
        kinds = {adjective.kind for adjective in self.adjectives}.union(without)
        return [adjective for adjective in self.noun.after if adjective.kind not in kinds]


class Sentence:
    """The parts from which a pattern builds a sentence; Chinese follows the order of the calls.

    Args:
        derivation: the derivation of the sentence to build.
        left: number of optional adjectives that the sentence may still have.
    """

    def __init__(self, derivation: Derivation, left: int) -> None:
        self.pick, self.say, self.combine = derivation.pick, derivation.say, derivation.combine
        self.left = left
        self._derivation = derivation

    def write(self, *parts: Words) -> None:
        """Write these English words, in this order."""
        words = [word for part in parts for word in part]
        for i, (word, places) in enumerate(words):
            if word == "a" and words[i + 1][0][0] in "aeiou":
                word = "an"
            self._derivation.write(word, places)

    def name(self, names: Sequence[Name] = NAMES) -> tuple[Name, Words]:
        """The name of a city or country."""
        name, at = self.pick(names, _text)
        return name, words_of(name.english, at)

    def fact(self, name: Name, kind: Noun) -> None:
        """Note the combination of a name and the noun that the sentence states, denies or asks of it."""
        self.combine(name.text, kind.text)
        if name is NEW_YORK and kind is NEW_YORK.kind:
            self._derivation.held_out = True

    def such(self, name: Name, noun: Noun, options: Sequence[Adjective]) -> Words:
        """An adjective for a name, before the noun that says what the name is."""
        adjective, words = self.before(noun, [option for option in options if option in noun.before])
        self.combine(adjective.text, name.text)
        return words

    def this(self) -> tuple[str, Words]:
        """这 or 那, alone."""
        which, at = self.pick(THIS_OR_THAT, str)
        return which, [(DEMONSTRATIVES[which][0], at)]

    def one(self, nouns: Sequence[Noun]) -> tuple[Noun, Words]:
        """一 and the measure word of a noun; the noun itself is added later."""
        at = self.say("一")
        noun, _ = self.pick(nouns, _measure)
        return noun, [("a", at)]

    def noun(self, noun: Noun, plural: bool = False) -> Words:
        """A noun by itself."""
        return words_of(noun.many if plural else noun.one, self.say(noun.text))

    def qualified(self, noun: Noun, without: Sequence[str] = (), plural: bool = False) -> Phrase:
        """A noun, perhaps with adjectives before it, none of the kinds in `without`."""
        chosen: list[Adjective] = []
        words: Words = []
        for options in self._steps(noun, without) if self.left else ():
            adjective, english = self.before(noun, options)
            chosen.append(adjective)
            words = english + words  # Chinese says the colour first, English last
        self.left -= len(chosen)
        return Phrase(words + self.noun(noun, plural), noun, plural, tuple(chosen))

    def _steps(self, noun: Noun, without: Sequence[str]) -> tuple[list[Adjective], ...]:
        """The options for each adjective; there is none, one, or a colour and one of `_SHORT`."""
        allowed = [adjective for adjective in noun.before if adjective.kind not in without]
        colours = [adjective for adjective in allowed if adjective.kind == COLOUR]
        short = [adjective for adjective in allowed if adjective in _SHORT]
        if not allowed:
            return ()
        two = self.left > 1 and colours and short
        count, _ = self.pick((0, 1, 2) if two else (0, 1))
        return ((), (allowed,), (colours, short))[count]

    def before(self, noun: Noun, options: Sequence[Adjective]) -> tuple[Adjective, Words]:
        """An adjective before its noun."""
        adjective, at = self.pick(options, _before)
        self.combine(adjective.text, noun.text)
        start = adjective.before.index(adjective.text)  # after the 很 of 很贵的
        return adjective, [(adjective.english, at[start : start + len(adjective.text)])]

    def counted(self, nouns: Sequence[Noun], without: Sequence[str] = ()) -> Phrase:
        """A number and a noun: 三本书, three books."""
        number, at = self.pick(_NUMBERS, str)
        return self._measured([(NUMBERS[number], at)], nouns, without, number != "一")

    def bare(self, nouns: Sequence[Noun], without: Sequence[str] = ()) -> Phrase:
        """A definite noun without demonstrative: 书, the book."""
        noun, _ = self.pick(nouns)
        phrase = self.qualified(noun, without)
        phrase.words.insert(0, ("the", NOWHERE))
        return phrase

    def pointed(
        self, nouns: Sequence[Noun], without: Sequence[str] = (), which: Sequence[str] = THIS_OR_THAT
    ) -> tuple[str, Phrase]:
        """A demonstrative and a singular noun: 这本书, this book.

        Returns:
            这 or 那, and the whole phrase.
        """
        chosen, at = self.pick(which, str)
        return chosen, self._measured([(DEMONSTRATIVES[chosen][0], at)], nouns, without)

    def pointed_many(self, nouns: Sequence[Noun], without: Sequence[str] = ()) -> Phrase:
        """A demonstrative, a number and a plural noun: 这三本书, these three books."""
        which, at = self.pick(THIS_OR_THAT, str)
        number, number_at = self.pick(_NUMBERS[1:], str)
        words = [(DEMONSTRATIVES[which][1], at), (NUMBERS[number], number_at)]
        return self._measured(words, nouns, without, plural=True)

    def _measured(
        self, words: Words, nouns: Sequence[Noun], without: Sequence[str], plural: bool = False
    ) -> Phrase:
        """Measure word, adjectives and noun, after the number or demonstrative in `words`."""
        noun, _ = self.pick(nouns, _measure)
        phrase = self.qualified(noun, without, plural)
        phrase.words[:0] = words
        return phrase

    def these(self, nouns: Sequence[Noun], without: Sequence[str] = ()) -> Phrase:
        """A noun with a demonstrative, singular or plural."""
        many, _ = self.pick((False, True))
        return self.pointed_many(nouns, without) if many else self.pointed(nouns, without)[1]

    def known(self, nouns: Sequence[Noun], without: Sequence[str] = ()) -> Phrase:
        """A definite noun, with or without a demonstrative."""
        bare, _ = self.pick((True, False))
        return self.bare(nouns, without) if bare else self.these(nouns, without)

    def person(self, persons: Sequence[Person] = PERSONS) -> tuple[Person, Words]:
        """A person."""
        person, at = self.pick(persons, _text)
        return person, [(word, NOWHERE if word == "the" else at) for word in person.english.split()]

    def time(self) -> Words:
        """A time, or no words."""
        time, at = self.pick(("", *_TIMES), str)
        return words_of(TIMES[time], at) if time else []

    def verb(self, verbs: Sequence[Verb]) -> tuple[Verb, Places]:
        """A verb."""
        return self.pick(verbs, _text)

    def where(self, thing: Noun) -> tuple[Words, Words]:
        """A place of a thing.

        Returns:
            The preposition, and the place.
        """
        places = PLACES[thing]
        place = self.bare(tuple(places), (PRICE,))
        self.combine(thing.text, place.noun.text)
        return self.postposition(places[place.noun])[1], place.words

    def postposition(self, options: Sequence[str]) -> tuple[str, Words]:
        """A postposition: on, under or next to."""
        postposition, at = self.pick(options, str)
        return postposition, words_of(POSTPOSITIONS[postposition], at)

    def quality(
        self, adverb: str, of_name: Callable[[Name], Sequence[Adjective]]
    ) -> tuple[Words, str, Places, Words]:
        """A name or a noun as subject, and its predicate adjective: 这三本书很贵.

        Args:
            adverb: the text before the adjective; may be empty.
            of_name: the adjectives for each name.

        Returns:
            The subject, its form of "to be", the places of the adverb, and the adjective.
        """
        named, _ = self.pick((False, True))
        if named:
            name, subject = self.name()
            be, text, options = "is", name.text, of_name(name)
        else:
            phrase = self.these(ALL_NOUNS)
            subject, be, text, options = phrase.words, phrase.be, phrase.noun.text, phrase.after()
        at = self.say(adverb)
        return subject, be, at, self.after(text, options)

    def after(self, text: str, options: Sequence[Adjective]) -> Words:
        """An adjective that describes `text`."""
        adjective, at = self.pick(options, _text)
        self.combine(adjective.text, text)
        return [(adjective.english, at)]

    def compared(self, options: Sequence[Adjective], than: Places) -> tuple[Adjective, Words]:
        """The adjective at the end of a comparison; its English ends with "than"."""
        adjective, at = self.pick(options, _text)
        *more, word = adjective.comparative.split(" ")
        own = at if more else tuple(sorted(than + at))
        return adjective, [*((each, than) for each in more), (word, own), ("than", than)]

    def asked(self) -> Words:
        """吗 and the question mark."""
        return [("?", self.say("吗？"))]


def words_of(english: str, at: Places) -> Words:
    """Words that all come from these places."""
    return [(word, at) for word in english.split(" ")]

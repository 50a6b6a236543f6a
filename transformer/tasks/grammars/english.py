"""English sentence patterns, built word by word from a lexicon.

Adjectives that stand before the noun in the other language come first in English: "the small black
cat". No noun comes twice in a sentence. Whether a sentence is held out depends on what it
combines: an adjective with a noun, or a verb with its object; a grammar may hold out further sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

from transformer.tasks.grammars.derivation import Derivation, Places
from transformer.tasks.grammars.lexicon import (
    ALL,
    ANIMATE,
    NOT_PERSONS,
    OWNING,
    PERSON,
    Adjective,
    Counted,
    Kinds,
    Lexicon,
    Noun,
    Verb,
    adjectives_for,
    grammatical_numbers,
    nouns_for,
    predicates_for,
    verbs_for,
)
from transformer.tasks.writing import Writing


class Phrase(NamedTuple):
    """A noun with its determiner, adjectives and owner."""

    determiner: str
    determiner_at: Places
    adjectives: tuple[tuple[Adjective, Places], ...]
    noun: Noun
    noun_at: Places
    plural: bool
    owner: Phrase | None = None
    of_at: Places = ()

    @property
    def agreement(self) -> int:
        """Index of the form that agrees: masculine, feminine, masculine plural, feminine plural."""
        return 2 * self.plural + (self.noun.gender == "f")


class Pronoun(NamedTuple):
    """He, she, they, I, we."""

    word: str
    plural: bool
    first: bool
    at: Places = ()


class Clause(NamedTuple):
    """A whole sentence: its words and their places in the source."""

    subject: Phrase | Pronoun
    verb: tuple[Verb | None, Places]
    """None stands for "is" and "are"."""
    object: Phrase | None = None
    adjective: tuple[Adjective, Places] | None = None
    """The predicate adjective."""
    not_at: Places = ()
    does_at: Places = ()
    """In a question only: beside "not", "does" has no translation."""
    asked_at: Places = ()
    and_at: Places = ()
    again: tuple[Verb, Places] | None = None
    """A second verb with the same object."""
    it_at: Places = ()


Word = TypeVar("Word", Adjective, Counted)
ENGLISH = Writing()
PLAIN = ("the",) * 6 + ("a",) * 3
"""A determiner that is listed more often is drawn more often."""
MORE = ("this", "these", *OWNING, "three")
BEFORE, AFTER = (True,), (False,)
ADJECTIVE_POSITIONS = {0: ((),), 1: ((), (), BEFORE, AFTER), 2: ((), BEFORE, AFTER, BEFORE + AFTER)}
"""Number of adjectives that the sentence may still have to the options of a noun: for each adjective, whether
it stands before the noun in the other language."""
PRONOUNS = (
    Pronoun("he", False, False),
    Pronoun("she", False, False),
    Pronoun("they", True, False),
    Pronoun("i", False, True),
    Pronoun("we", True, True),
)


@lru_cache(maxsize=256)
def _only(determiners: tuple[str, ...], plural: bool | None, a: bool = True) -> tuple[str, ...]:
    """The determiners that fit `plural` (None: either number), without "a" unless `a` is true."""
    return tuple(each for each in determiners if grammatical_numbers(each, plural) and (a or each != "a"))


class Speaker:
    """Builds one English sentence; each pattern is a method that adds the words in order."""

    def __init__(
        self, derivation: Derivation, lexicon: Lexicon, determiners: tuple[str, ...], left: int
    ) -> None:
        self._derivation, self._lexicon, self._determiners = derivation, lexicon, determiners
        self._left = left
        """Adjectives that the sentence may still have."""
        self._nouns: list[Noun] = []

    def svo(self) -> Clause:
        """The cat sees the house. The cat sleeps. Only "the" and "a" are its determiners."""
        return self._statement(self._phrase(ANIMATE, None, PLAIN), None, PLAIN)

    def determiners(self) -> Clause:
        """This cat sees my house. The cat sees these houses: at least one that is not "the" or "a"."""
        subject = self._phrase(ANIMATE)
        if subject.determiner in MORE:
            return self._statement(subject, None)
        return self._statement(subject, ALL, MORE)

    def pronoun(self) -> Clause:
        """They see the cat."""
        pronoun, at = self._derivation.pick(PRONOUNS, lambda each: each.word)
        return self._statement(pronoun._replace(at=at), None)

    def negation(self) -> Clause:
        """The cat does not see the house."""
        subject = self._phrase(ANIMATE)
        self._derivation.say("do" if subject.plural else "does")
        not_at = self._derivation.say("not")
        return self._statement(subject, None, base=True)._replace(not_at=not_at)

    def question(self) -> Clause:
        """Does the cat see the house?"""
        plural, does_at = self._derivation.pick((False, True), lambda many: "do" if many else "does")
        subject = self._phrase(ANIMATE, plural)
        clause = self._statement(subject, None, base=True)
        return clause._replace(does_at=does_at, asked_at=self._derivation.say("?"))

    def copula(self) -> Clause:
        """The house is old."""
        self._left -= 1  # the predicate is an adjective too
        subject = self._phrase(ALL, None, _only(self._determiners, None, a=False))
        is_at = self._derivation.say("are" if subject.plural else "is")
        options = predicates_for(self._lexicon, subject.noun, tuple(each for each, _ in subject.adjectives))
        adjective = self._derivation.pick(options, lambda each: each.en)
        self._derivation.combine(adjective[0].en, subject.noun.en)
        return Clause(subject, (None, is_at), adjective=adjective)

    def clitic(self) -> Clause:
        """The girl finds the key and hides it."""
        subject = self._phrase(ANIMATE)
        verb = self._verb(subject, NOT_PERSONS)
        thing = self._object(verb[0], NOT_PERSONS)
        and_at = self._derivation.say("and")
        again = self._verb(subject, (thing.noun.kind,), other_than=verb[0])
        it_at = self._derivation.say("them" if thing.plural else "it")
        self._derivation.combine(again[0].en, thing.noun.en)
        return Clause(subject, verb, thing, and_at=and_at, again=again, it_at=it_at)

    def possessive(self) -> Clause:
        """The man sees the boy's house. The man sees the house of the boys."""
        subject = self._phrase(ANIMATE)
        verb = self._verb(subject, NOT_PERSONS)
        kinds = self._kinds(verb[0], NOT_PERSONS)
        plural, _ = self._derivation.pick((False, True))
        if plural:
            thing = self._described("the", self._derivation.say("the"), kinds)
            of_at = self._derivation.say("of")
            owner = self._phrase(ANIMATE, plural)
        else:
            owner = self._phrase(ANIMATE, plural)
            of_at = self._derivation.say("'s")
            thing = self._described("the", of_at, kinds)
        self._derivation.combine(verb[0].en, thing.noun.en)
        return Clause(subject, verb, thing._replace(owner=owner, of_at=of_at))

    def _statement(
        self,
        subject: Phrase | Pronoun,
        objects: Kinds | None,
        determiners: tuple[str, ...] | None = None,
        base: bool = False,
    ) -> Clause:
        """A subject with its verb and object.

        Args:
            objects: kinds of which the verb must take an object; None: verbs without an object fit too.
            determiners: those of the object; None: those of the sentence.
            base: whether the verb has its base form, as after "does".
        """
        verb = self._verb(subject, objects, base=base)
        if not verb[0].objects:
            return Clause(subject, verb)
        return Clause(subject, verb, self._object(verb[0], ALL, determiners))

    def _verb(
        self,
        subject: Phrase | Pronoun,
        objects: Kinds | None,
        other_than: Verb | None = None,
        base: bool = False,
    ) -> tuple[Verb, Places]:
        first = isinstance(subject, Pronoun) and subject.first
        base = base or subject.plural or first
        kind = PERSON if isinstance(subject, Pronoun) else subject.noun.kind
        options = verbs_for(self._lexicon, kind, objects)
        if other_than:
            options = tuple(verb for verb in options if verb is not other_than)
        return self._derivation.pick(options, lambda verb: verb.en if base else verb.en_one)

    def _object(self, verb: Verb, kinds: Kinds, determiners: tuple[str, ...] | None = None) -> Phrase:
        """The object of a verb."""
        allowed = _only(determiners or self._determiners, None, verb.takes_a)
        phrase = self._phrase(self._kinds(verb, kinds), None, allowed)
        self._derivation.combine(verb.en, phrase.noun.en)
        return phrase

    @staticmethod
    def _kinds(verb: Verb, kinds: Kinds) -> Kinds:
        return tuple(kind for kind in kinds if kind in verb.objects)

    def _phrase(
        self, kinds: Kinds, plural: bool | None = None, determiners: tuple[str, ...] | None = None
    ) -> Phrase:
        """A noun with a determiner. "A" or "an" depends on the next word, and is added together with it."""
        options = _only(determiners or self._determiners, plural)
        determiner, at = self._derivation.pick(options, lambda each: "" if each == "a" else each)
        return self._described(determiner, at, kinds, plural)

    def _described(
        self, determiner: str, determiner_at: Places, kinds: Kinds, plural: bool | None = None
    ) -> Phrase:
        """A noun with its adjectives, after its determiner."""
        places, _ = self._derivation.pick(ADJECTIVE_POSITIONS[min(self._left, 2)])
        self._left -= len(places)
        adjectives: list[tuple[Adjective, Places]] = []
        chosen: tuple[Adjective, ...] = ()
        for before in places:
            some = adjectives_for(self._lexicon, kinds, determiner, chosen, before)
            adjective, determiner_at, at = self._next(some, determiner, determiner_at)
            adjectives.append((adjective, at))
            chosen = (*chosen, adjective)
        options: Sequence[Counted] = nouns_for(self._lexicon, kinds, determiner, plural, chosen)
        if self._nouns:
            options = [each for each in options if each.noun not in self._nouns]
        (noun, many), determiner_at, at = self._next(options, determiner, determiner_at)
        self._nouns.append(noun)
        for each in chosen:
            self._derivation.combine(each.en, noun.en)
        return Phrase(determiner, determiner_at, tuple(adjectives), noun, at, many)

    def _next(
        self, options: Sequence[Word], determiner: str, determiner_at: Places
    ) -> tuple[Word, Places, Places]:
        """The next word, after "a" or "an" if still missing; the places of the determiner and of the word."""
        if determiner != "a" or determiner_at:
            word, at = self._derivation.pick(options, lambda each: each.en)
            return word, determiner_at, at
        word, at = self._derivation.pick(
            options, lambda each: f"{'an' if each.en[0] in 'aeiou' else 'a'} {each.en}"
        )
        return word, at[:1], at[1:]


PATTERNS: dict[str, Callable[[Speaker], Clause]] = {
    "svo": Speaker.svo,
    "determiners": Speaker.determiners,
    "negation": Speaker.negation,
    "question": Speaker.question,
    "copula": Speaker.copula,
    "clitic": Speaker.clitic,
    "possessive": Speaker.possessive,
    "pronoun": Speaker.pronoun,
}

"""What French and Italian share: agreement, the order of words, and which English word each word comes from.

Conventions of the links, for both languages:

- A word comes from the word that it translates: "chat" from "cat", "est" from "is", "et" from "and", "?" from
  "?"; "ne" and "pas", or "non", from "not".
- A determiner comes from the English determiner, with all its words: "il mio" from "my". In "the boy's house"
  it is 's that makes the house a certain one: the article comes from 's, and so does the word for "of".
- What is one word here and was two there comes from both: "du" from 's and "the", "vedono" from "they" and
  "see".
- A pronoun comes from "it" or "them" alone. Its gender comes from the noun, as that of articles and
  adjectives does, and elided forms from the next word: that is agreement and no translation. So it is no
  link, and a map that shows attention there shows something that was not put in.
- "Does" and "do" say nothing beside "not"; in a question each language says what they become.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from transformer.tasks.grammars.clause import Clause, Phrase, Pronoun
from transformer.tasks.grammars.lexicon import Adjective, Verb
from transformer.tasks.grammars.telling import Places, Telling

Words = list[tuple[str, Places]]
"""Words of the target, each with the places of the source that it comes from."""


def agreed(adjective: Adjective, gender: str, plural: bool) -> str:
    """The form of an adjective."""
    return adjective.forms[2 * plural + (gender == "f")]


class Romance(ABC):
    """Writes what an English sentence said. Words look at the next word: phrases grow from their end."""

    @abstractmethod
    def determiner(self, name: str, gender: str, plural: bool, following: str, denied: bool) -> str:
        """A determiner before a word.

        Args:
            name: the English one.
            denied: whether it is not seen, found, liked.
        """

    @abstractmethod
    def before(self, adjective: Adjective, gender: str, plural: bool, following: str) -> str:
        """An adjective before its noun, or before another adjective."""

    @abstractmethod
    def of(self, owner: Words, of_at: Places) -> Words:
        """An owner, made one with the word for "of" where that is how it is said."""

    @abstractmethod
    def denial(self, verb: tuple[str, Places], not_at: Places) -> Words:
        """A verb that is denied."""

    @abstractmethod
    def again(
        self, verb: tuple[str, Places], gender: str, plural: bool, and_at: Places, it_at: Places
    ) -> Words:
        """What is done to the same thing besides."""

    @abstractmethod
    def is_or_are(self, plural: bool) -> str:
        """The verb between a subject and what it is said to be."""

    @abstractmethod
    def asked(self, words: Words, does_at: Places) -> Words:
        """A statement as a question, without its sign."""

    def __call__(self, telling: Telling, clause: Clause) -> None:
        """Write the translation."""
        words = self._statement(clause)
        if clause.asked_at:
            words = [*self.asked(words, clause.does_at), ("?", clause.asked_at)]
        for text, places in words:
            telling.write(text, places)

    def _statement(self, clause: Clause) -> Words:
        subject, (verb, at) = clause.subject, clause.verb
        if isinstance(subject, Pronoun):
            words: Words = []  # dropped: the ending of the verb says it
            at = subject.at + at
        else:
            words = self._phrase(subject)
        if clause.adjective and isinstance(subject, Phrase):
            adjective, adjective_at = clause.adjective
            said = agreed(adjective, subject.noun.gender, subject.plural)
            return [*words, (self.is_or_are(subject.plural), at), (said, adjective_at)]
        assert verb, "Only what is said to be something does nothing."
        does = self._form(verb, subject), at
        words += self.denial(does, clause.not_at) if clause.not_at else [does]
        if clause.object:
            words += self._phrase(clause.object, denied=bool(clause.not_at))
        if clause.object and clause.again:
            more, more_at = clause.again
            thing = clause.object
            words += self.again(
                (self._form(more, subject), more_at),
                thing.noun.gender,
                thing.plural,
                clause.and_at,
                clause.it_at,
            )
        return words

    @staticmethod
    def _form(verb: Verb, subject: Phrase | Pronoun) -> str:
        first = isinstance(subject, Pronoun) and subject.first
        return verb.forms[2 * first + subject.plural]

    def _phrase(self, said: Phrase, denied: bool = False) -> Words:
        """Determiner, adjectives before, noun, adjectives after, owner."""
        noun, plural = said.noun, said.plural
        words: Words = [(noun.many if plural else noun.one, said.noun_at)]
        for adjective, at in said.adjectives:
            if not adjective.before:
                words.append((agreed(adjective, noun.gender, plural), at))
        for adjective, at in reversed(said.adjectives):
            if adjective.before:
                words.insert(0, (self.before(adjective, noun.gender, plural, words[0][0]), at))
        determiner = self.determiner(said.determiner, noun.gender, plural, words[0][0], denied)
        words[:0] = [(word, said.determiner_at) for word in determiner.split()]
        return words + self.of(self._phrase(said.owner), said.of_at) if said.owner else words

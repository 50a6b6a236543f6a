"""English to French and Italian: the translation of a sentence. The rules of both languages are the same.

Conventions of the links:

- A word comes from the word that it translates: "chat" from "cat", "est" from "is", "et" from "and", "?" from
  "?"; "ne" and "pas", or "non", from "not".
- A determiner comes from the English determiner, with all its words: "il mio" from "my", the "de" of
  "pas de" from "a". In "the boy's house" the house is definite because of 's: its article comes from
  's, and so does the word for "of".
- One word that translates two comes from both: "du" from 's and "the", "vedono" from "they" and
  "see".
- A pronoun comes from "it" or "them" alone. Its gender comes from the noun, as that of articles and
  adjectives does, and elided forms from the next word: that is agreement, not translation, so the gold
  alignment has no links for it.
- "Does" and "do" have no translation beside "not". In a question "est-ce que" comes from them; Italian asks
  by intonation alone, and no word comes from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transformer.tasks.grammars.derivation import Derivation, Places
from transformer.tasks.grammars.english import (
    ENGLISH,
    MORE,
    PATTERNS,
    PLAIN,
    Clause,
    Phrase,
    Pronoun,
    Speaker,
)
from transformer.tasks.grammars.grammar import Grammar, checked
from transformer.tasks.grammars.lexicon import Lexicon, Verb, read_lexicon
from transformer.tasks.writing import Writing

ABOUT_AN_ADJECTIVE = ("copula",)
"""Patterns that need an adjective."""
Words = list[tuple[str, Places]]
"""Words of the target, each with the places of the source that it comes from."""


@dataclass(frozen=True, eq=False)
class Romance:
    """French or Italian. A word's form may depend on the next word, so phrases are built from their noun."""

    name: str
    """Name of the task."""
    lexicon: Lexicon
    writing: Writing

    def grammar(self, patterns: Sequence[str] | None = None, adjectives: int = 1) -> Grammar:
        """English sentences with their translations.

        Args:
            patterns: each drawn equally often; None: all that are possible. With "determiners" among them,
                words such as "this", "my" and "three" may occur in sentences of every pattern but "svo".
            adjectives: maximum per sentence.

        Raises:
            InputError: a pattern does not exist, or needs an adjective and `adjectives` is 0.
        """
        all_patterns, words = self.lexicon.patterns, self.lexicon.tracked_words
        asked = checked(all_patterns, patterns, adjectives, ABOUT_AN_ADJECTIVE)
        chosen = tuple(name for name in all_patterns if name in asked)
        determiners = PLAIN + MORE if "determiners" in chosen else PLAIN

        def derive(derivation: Derivation) -> None:
            derivation.pattern, _ = derivation.pick(chosen)
            speaker = Speaker(derivation, self.lexicon, determiners, adjectives)
            self._write(derivation, PATTERNS[derivation.pattern](speaker))

        return Grammar(self.name, ENGLISH, self.writing, derive, tracked_words=words, always_held_out=words)

    def _write(self, derivation: Derivation, clause: Clause) -> None:
        words = self._statement(clause)
        if clause.asked_at:
            does = self._said("does", clause.does_at, words[0][0])
            words = [*does, *words, ("?", clause.asked_at)]
        for text, places in words:
            derivation.write(text, places)

    def _statement(self, clause: Clause) -> Words:
        subject, (verb, at), thing = clause.subject, clause.verb, clause.object
        if isinstance(subject, Pronoun):
            words: Words = []  # dropped: the ending of the verb shows the person
            at = subject.at + at
        else:
            words = self._phrase(subject)
        if clause.adjective and isinstance(subject, Phrase):
            adjective, adjective_at = clause.adjective
            form = adjective.forms[subject.agreement]
            return [*words, *self._said("are" if subject.plural else "is", at), (form, adjective_at)]
        assert verb, "Only what is said to be something does nothing."
        words += self._done(_form(verb, subject), at, clause.not_at)
        if thing:
            words += self._phrase(thing, denied=bool(clause.not_at))
        if thing and clause.again:
            verb, at = clause.again
            form = _form(verb, subject)
            words += self._said("and", clause.and_at)
            words += self._said("them" if thing.plural else "it", clause.it_at, form, thing)
            words.append((form, at))
        return words

    def _done(self, verb: str, at: Places, not_at: Places) -> Words:
        """The verb, negated if `not_at` is set: n'aime pas, non vede."""
        if not not_at:
            return [(verb, at)]
        return [*self._said("not", not_at, verb), (verb, at), *self._said("not behind", not_at)]

    def _phrase(self, said: Phrase, denied: bool = False) -> Words:
        """Determiner, adjectives before, noun, adjectives after, owner."""
        noun = said.noun
        words: Words = [(noun.many if said.plural else noun.one, said.noun_at)]
        for adjective, at in said.adjectives:
            if not adjective.before:
                words.append((adjective.forms[said.agreement], at))
        for adjective, at in reversed(said.adjectives):
            if adjective.before:
                forms = self.lexicon.forms_before(adjective.en, words[0][0]) or adjective.forms
                words.insert(0, (forms[said.agreement], at))
        determiner = "not a" if denied and said.determiner == "a" else said.determiner
        words[:0] = self._said(determiner, said.determiner_at, words[0][0], said)
        if said.owner:
            words += self._of(self._phrase(said.owner), said.of_at)
        return words

    def _of(self, owner: Words, of_at: Places) -> Words:
        """The owner after the word for "of", contracted where possible: du garçon, d'un chat."""
        (first, first_at), *rest = owner
        if first in self.lexicon.contractions:
            return [(self.lexicon.contractions[first], of_at + first_at), *rest]
        return [*self._said("of", of_at, first), *owner]

    def _said(self, english: str, at: Places, following: str = "", agrees: Phrase | None = None) -> Words:
        """The translation of a word in `Lexicon.forms` before the following word; empty where it has none."""
        forms = self.lexicon.forms_before(english, following)
        form = forms[agrees.agreement if agrees else 0]
        return [(word, at) for word in form.split()]


def _form(verb: Verb, subject: Phrase | Pronoun) -> str:
    first = isinstance(subject, Pronoun) and subject.first
    return verb.forms[2 * first + subject.plural]


FRENCH = Romance("en-fr", read_lexicon("french"), Writing(spaced_signs="?!;:"))
ITALIAN = Romance("en-it", read_lexicon("italian"), Writing())

"""What a sentence says, and at which places of the source it says so: what a translation has to know."""

from __future__ import annotations

from typing import NamedTuple

from transformer.tasks.grammars.lexicon import Adjective, Noun, Verb
from transformer.tasks.grammars.telling import Places


class Phrase(NamedTuple):
    """A noun with what belongs to it."""

    determiner: str
    determiner_at: Places
    adjectives: tuple[tuple[Adjective, Places], ...]
    noun: Noun
    noun_at: Places
    plural: bool
    owner: Phrase | None = None
    of_at: Places = ()


class Pronoun(NamedTuple):
    """He, she, they, I, we."""

    word: str
    plural: bool
    first: bool
    at: Places = ()


class Clause(NamedTuple):
    """A whole sentence: what was said, and at which places."""

    subject: Phrase | Pronoun
    verb: tuple[Verb | None, Places]
    """None stands for "is" and "are"."""
    object: Phrase | None = None
    adjective: tuple[Adjective, Places] | None = None
    """What the subject is said to be."""
    not_at: Places = ()
    does_at: Places = ()
    """In a question only; beside "not" it says nothing."""
    asked_at: Places = ()
    and_at: Places = ()
    again: tuple[Verb, Places] | None = None
    """What is done to the same object besides."""
    it_at: Places = ()

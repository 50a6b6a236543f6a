"""An endless corpus of sentences that the rules of a grammar make."""

from __future__ import annotations

import difflib
import random
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from transformer.errors import InputError
from transformer.tasks.corpus import HELD_OUT_SEED, Corpus, Pair
from transformer.tasks.grammars.derivation import Rules, drawn, parse, source_vocabulary
from transformer.tasks.writing import Writing

FULL_STOPS = ".。"


def checked(
    known: Iterable[str], patterns: Sequence[str] | None, adjectives: int, about_an_adjective: Container[str]
) -> tuple[str, ...]:
    """The patterns to draw from, each once.

    Args:
        known: the patterns of a grammar.
        patterns: the requested ones; None: all that are possible.
        adjectives: maximum per sentence.
        about_an_adjective: patterns that need an adjective.

    Raises:
        InputError: a pattern does not exist, or needs an adjective and `adjectives` is 0.
    """
    names = tuple(known)
    if patterns is None:
        return tuple(name for name in names if adjectives or name not in about_an_adjective)
    unknown = [name for name in patterns if name not in names]
    if unknown:
        raise InputError(
            f"The pattern {', '.join(unknown)} does not exist; choose from: {', '.join(names)}.", "patterns"
        )
    mute = [name for name in patterns if not adjectives and name in about_an_adjective]
    if mute:
        raise InputError(
            f"The pattern {', '.join(mute)} needs an adjective; allow at least 1, or remove the pattern.",
            "patterns",
        )
    return tuple(dict.fromkeys(patterns))


class Grammar(Corpus):
    """Sentences of a grammar with their translations: a `Corpus`.

    Args:
        name: name of the corpus.
        src: how the source language is written.
        tgt: how the target language is written.
        rules: the grammar, with its patterns and number of adjectives fixed.
        tracked_words: questions to track at first, the most instructive first; those that the rules cannot
            make are replaced by held-out sentences.
        always_held_out: sentences that are held out whatever their words, if the rules make them.
    """

    translates = True

    def __init__(
        self,
        name: str,
        src: Writing,
        tgt: Writing,
        rules: Rules,
        *,
        tracked_words: Sequence[str],
        always_held_out: Sequence[str] = (),
    ) -> None:
        self.name, self.src, self.tgt = name, src, tgt
        self.rules = rules
        self._tracked_words = tuple(map(src.clean, tracked_words))
        self._always_held_out = dict.fromkeys(map(src.clean, always_held_out))  # an ordered set

    def drawn(self, rng: np.random.Generator, count: int) -> list[Pair]:
        """Random sentences, none of them held out; a sentence may repeat."""
        chance = random.Random(int(rng.integers(2**63)))
        pairs: list[Pair] = []
        while len(pairs) < count:
            pair = self._draw(chance)
            if not pair.held_out:
                pairs.append(pair)
        return pairs

    def held_out_draws(self) -> Iterator[Pair]:
        """Sentences that are always held out, then random ones."""
        yield from filter(None, map(self.find, self._always_held_out))
        chance = random.Random(HELD_OUT_SEED)
        while True:
            yield self._draw(chance)

    def tracked_words(self) -> Sequence[str]:
        """The questions to track at first; held-out sentences replace those that the rules cannot make."""
        return self._to_begin_with

    def read(self, text: str) -> str:
        """Clean what a user typed. Words have to be known; the order of words is free.

        Raises:
            InputError: the text has no word, or a word that the grammar never uses.
        """
        cleaned = self.src.clean(text)
        if cleaned[-1:] in FULL_STOPS and cleaned[-1:] not in self.words:
            cleaned = self.src.clean(cleaned[:-1])
        units = self.src.units(cleaned)
        if not units:
            raise InputError(
                f"{text!r} contains no word; type at least one, for example: {self._example}",
                "probe_words",
                self._example,
            )
        unknown = [unit for unit in dict.fromkeys(units) if unit not in self.words]
        if unknown:
            raise self._unknown(units, unknown)
        return cleaned

    def find(self, source: str) -> Pair | None:
        """The sentence with its translation and links; None where the rules do not make it."""
        pairs = parse(self.rules, self.src, self.tgt, source)
        return self._kept(pairs[0]) if pairs else None

    @cached_property
    def _to_begin_with(self) -> tuple[str, ...]:
        sources = [source for source in self._tracked_words if self.find(source)]
        if len(sources) < len(self._tracked_words):
            sources += [pair.source for pair in self.held_out() if pair.source not in sources]
        return tuple(sources[: len(self._tracked_words)])

    @property
    def _example(self) -> str:
        return self._to_begin_with[0] if self._to_begin_with else self._draw(random.Random(0)).source

    @cached_property
    def words(self) -> frozenset[str]:
        """Every unit that a source may have."""
        return frozenset(source_vocabulary(self.rules, self.src))

    def _draw(self, chance: random.Random) -> Pair:
        return self._kept(drawn(self.rules, self.src, self.tgt, chance))

    def _kept(self, pair: Pair) -> Pair:
        """The pair, marked as held out if its sentence is always held out."""
        return replace(pair, held_out=True) if pair.source in self._always_held_out else pair

    def _unknown(self, units: Sequence[str], unknown: Sequence[str]) -> InputError:
        """The error for words that the grammar never uses, with the most similar words that it uses."""
        nearest = {word: difflib.get_close_matches(word, sorted(self.words), n=1) for word in unknown}
        suggestions = {word: near[0] for word, near in nearest.items() if near}
        named = ", ".join(f'"{word}"' for word in unknown)
        message = f"{named}: not among the {len(self.words)} words of this grammar. "
        if not suggestions:
            return InputError(f"{message}Use those, for example: {self._example}", "probe_words")
        hints = ", ".join(f'"{near}" for "{word}"' for word, near in suggestions.items())
        suggestion = self.src.join([suggestions.get(unit, unit) for unit in units])
        return InputError(
            f"{message}Try {hints}.", "probe_words", suggestion if len(suggestions) == len(unknown) else None
        )

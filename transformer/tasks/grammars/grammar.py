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
from transformer.tasks.grammars.telling import Rules, drawn, heard, recognised
from transformer.tasks.writing import Writing

FULL_STOPS = ".。"


def checked(
    known: Iterable[str], patterns: Sequence[str] | None, adjectives: int, about_an_adjective: Container[str]
) -> tuple[str, ...]:
    """The patterns to draw from, each once.

    Args:
        known: the patterns of a grammar.
        patterns: those that are asked for; None: all that can be said.
        adjectives: most that a sentence has.
        about_an_adjective: patterns that cannot be said without one.

    Raises:
        InputError: there is no such pattern, or it cannot be said without an adjective.
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
        name: what the corpus is called.
        src: how the source language is written.
        tgt: how the target language is written.
        rules: the grammar, bound to its difficulty.
        probes: questions to begin with, the most telling first; those that the rules cannot make are
            replaced by held-out sentences.
        always_held_out: sentences that are kept from training whatever their words, where the rules make
            them.
    """

    translates = True

    def __init__(
        self,
        name: str,
        src: Writing,
        tgt: Writing,
        rules: Rules,
        *,
        probes: Sequence[str],
        always_held_out: Sequence[str] = (),
    ) -> None:
        self.name, self.src, self.tgt = name, src, tgt
        self.rules = rules
        self._probes = tuple(map(src.clean, probes))
        self._always_held_out = dict.fromkeys(map(src.clean, always_held_out))  # a set in its own order

    def drawn(self, rng: np.random.Generator, count: int) -> list[Pair]:
        """Sentences by chance, none of them held out; one may come twice."""
        chance = random.Random(int(rng.integers(2**63)))
        pairs: list[Pair] = []
        while len(pairs) < count:
            pair = self._draw(chance)
            if not pair.held_out:
                pairs.append(pair)
        return pairs

    def held_out_draws(self) -> Iterator[Pair]:
        """Sentences that are always held out, then others by chance."""
        yield from filter(None, map(self.find, self._always_held_out))
        chance = random.Random(HELD_OUT_SEED)
        while True:
            yield self._draw(chance)

    def probes(self) -> Sequence[str]:
        """The questions to begin with; held-out sentences stand in for those that the rules cannot make."""
        return self._to_begin_with

    def read(self, text: str) -> str:
        """Clean what a user typed. Words have to be known; the order of words is free.

        Raises:
            InputError: there is no word, or one that the grammar never uses.
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
        pairs = recognised(self.rules, self.src, self.tgt, source)
        return self._kept(pairs[0]) if pairs else None

    @cached_property
    def _to_begin_with(self) -> tuple[str, ...]:
        known = [source for source in self._probes if self.find(source)]
        if len(known) < len(self._probes):
            known += [pair.source for pair in self.held_out() if pair.source not in known]
        return tuple(known[: len(self._probes)])

    @property
    def _example(self) -> str:
        return self._to_begin_with[0] if self._to_begin_with else self._draw(random.Random(0)).source

    @cached_property
    def words(self) -> frozenset[str]:
        """Every unit of a source."""
        return frozenset(heard(self.rules, self.src))

    def _draw(self, chance: random.Random) -> Pair:
        return self._kept(drawn(self.rules, self.src, self.tgt, chance))

    def _kept(self, pair: Pair) -> Pair:
        """The pair, held out where its sentence always is."""
        return replace(pair, held_out=True) if pair.source in self._always_held_out else pair

    def _unknown(self, units: Sequence[str], unknown: Sequence[str]) -> InputError:
        """What to say of words that the grammar never uses, with the nearest that it does."""
        nearest = {word: difflib.get_close_matches(word, sorted(self.words), n=1) for word in unknown}
        known = {word: near[0] for word, near in nearest.items() if near}
        named = ", ".join(f'"{word}"' for word in unknown)
        message = f"{named}: not among the {len(self.words)} words of this grammar. "
        if not known:
            return InputError(f"{message}Use those, for example: {self._example}", "probe_words")
        hints = ", ".join(f'"{near}" for "{word}"' for word, near in known.items())
        offer = self.src.joined([known.get(unit, unit) for unit in units])
        return InputError(
            f"{message}Try {hints}.", "probe_words", offer if len(known) == len(unknown) else None
        )

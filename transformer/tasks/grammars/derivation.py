"""One sentence under construction: the same rules draw random sentences and parse typed ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import TypeVar

from transformer.tasks.corpus import Pair, held_out_by_hash
from transformer.tasks.writing import Writing

T = TypeVar("T")
Places = tuple[int, ...]
"""Units of the source, counted from 0."""
N_VOCABULARY_DRAWS = 500
"""Number of sentences drawn to collect every word: a word counts where it is an option, drawn or not."""


class DeadEnd(Exception):
    """The choices so far cannot lead to the sentence that is parsed."""


@lru_cache
def _units_of(src: Writing) -> Callable[[str], tuple[str, ...]]:
    """A function that splits texts into units, with a cache per `Writing`: grammars repeat few words."""
    return cache(src.units)


class Derivation:
    """A sentence that grows, choice by choice, in the order of its source.

    Rules pick the words of the whole source, then write the target. Every choice is a call of `pick`, so that
    the same rules can draw and parse sentences.
    """

    def __init__(self, src: Writing) -> None:
        self._src = src
        self._cut = _units_of(src)
        self.pattern = ""
        """The sentence pattern; set by the rules."""
        self.source: list[str] = []
        self.target: list[tuple[str, Places]] = []
        self.held_out = False

    def pick(self, options: Sequence[T], says: Callable[[T], str] = lambda _: "") -> tuple[T, Places]:
        """Choose an option, and add its words to the source.

        Args:
            options: the choices; an option that is listed twice is drawn twice as often.
            says: returns the words of an option; empty for one without words.

        Returns:
            The choice, and the places of its units in the source.
        """
        chosen = self._choose(options, says)
        units = self._cut(says(chosen))
        places = tuple(range(len(self.source), len(self.source) + len(units)))
        self.source += units
        return chosen, places

    def say(self, text: str) -> Places:
        """Add a fixed text to the source; return the places of its units."""
        return self.pick((text,), str)[1]

    def write(self, text: str, *places: Places) -> None:
        """Add units to the target, separated by spaces in `text`; each is linked to all these places."""
        links = tuple(sorted(set().union(*places)))
        self.target += [(unit, links) for unit in text.split(" ")]

    def combine(self, *names: str) -> None:
        """Note a combination of words; one held-out combination makes the whole sentence held out."""
        self.held_out = self.held_out or held_out_by_hash(*names)

    def _choose(self, options: Sequence[T], says: Callable[[T], str]) -> T:
        raise NotImplementedError

    def pair(self, tgt: Writing) -> Pair:
        """The finished sentence."""
        units, links = zip(*self.target, strict=True)
        source, target = self._src.join(self.source), tgt.join(units)
        return Pair(source, target, links, self.pattern, self.held_out)


class Drawing(Derivation):
    """Chooses at random."""

    def __init__(self, src: Writing, chance: random.Random) -> None:
        super().__init__(src)
        self._chance = chance

    def _choose(self, options: Sequence[T], says: Callable[[T], str]) -> T:
        return options[int(self._chance.random() * len(options))]  # several times as fast as choice()


class VocabularyCollector(Drawing):
    """Chooses at random, and notes the text of every option."""

    def __init__(self, src: Writing, chance: random.Random) -> None:
        super().__init__(src, chance)
        self.words: set[str] = set()

    def _choose(self, options: Sequence[T], says: Callable[[T], str]) -> T:
        for option in options:
            self.words.update(self._cut(says(option)))
        return super()._choose(options, says)


class ParsingDerivation(Derivation):
    """Chooses what matches a given source, and notes the other choices that match too.

    Args:
        src: how the source is written.
        units: the units of the given source.
        path: indices of the first choices, which are made again as given.
    """

    def __init__(self, src: Writing, units: Sequence[str], path: Sequence[int]) -> None:
        super().__init__(src)
        self._units, self._path = tuple(units), path
        self.turns: list[tuple[int, ...]] = []
        """Other paths to try, each as its choices from the start."""
        self._way: tuple[int, ...] = ()

    def _choose(self, options: Sequence[T], says: Callable[[T], str]) -> T:
        if len(self._way) < len(self._path):
            turn = self._path[len(self._way)]
        else:
            turn, *others = self._fitting(options, says)
            self.turns += [(*self._way, other) for other in others]
        self._way = (*self._way, turn)
        return options[turn]

    def _fitting(self, options: Sequence[T], says: Callable[[T], str]) -> list[int]:
        """Indices of the different options whose words come next in the source."""
        at = len(self.source)
        fitting: dict[int, T] = {}
        for i, option in enumerate(options):
            units = self._cut(says(option))
            if self._units[at : at + len(units)] == units and option not in fitting.values():
                fitting[i] = option
        if not fitting:
            raise DeadEnd
        return list(fitting)


Rules = Callable[[Derivation], None]
"""The grammar of one pair of languages: picks and writes one sentence, from its first choice to its last."""


def drawn(rules: Rules, src: Writing, tgt: Writing, chance: random.Random) -> Pair:
    """One random sentence."""
    derivation = Drawing(src, chance)
    rules(derivation)
    return derivation.pair(tgt)


def source_vocabulary(rules: Rules, src: Writing) -> set[str]:
    """Every unit that a source may have: those of all options met while drawing many sentences."""
    chance = random.Random(0)
    words: set[str] = set()
    for _ in range(N_VOCABULARY_DRAWS):
        derivation = VocabularyCollector(src, chance)
        rules(derivation)
        words |= derivation.words
    return words


def parse(rules: Rules, src: Writing, tgt: Writing, source: str) -> list[Pair]:
    """Every pair with this source that the rules can make; at most one in an unambiguous grammar."""
    units = src.units(source)
    pairs: list[Pair] = []
    pending: list[tuple[int, ...]] = [()]
    while pending:
        derivation = ParsingDerivation(src, units, pending.pop())
        try:
            rules(derivation)
        except DeadEnd:
            pending += derivation.turns
            continue
        pending += derivation.turns
        if len(derivation.source) == len(units):
            pairs.append(derivation.pair(tgt))
    return pairs

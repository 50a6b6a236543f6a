"""The text that is learned: examples with answers and gold links, to train on and kept from training."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from transformer.tasks.tokenizer import TextTokenizer
from transformer.tasks.writing import Writing

N_HELD_OUT = 1000
"""Examples that every run of a task is asked; fewer where there are no more."""
N_LIVE = 200
"""Of these, those that every evaluation asks; a mark is confirmed on all of them."""
PATIENCE = 5000
"""Draws in a row without a new held-out example after which the search ends."""
HELD_OUT_SEED = 20_171_206
"""Any fixed number: what is held out is the same for every run."""
ONE_IN = 10
"""One thing in so many is kept from training where a hash decides."""
Array = np.ndarray[Any, np.dtype[Any]]
Span = tuple[int, int]
Links = tuple[tuple[int, ...], ...]
"""For each unit of the target, the units of the source that it comes from; empty where it comes from none."""


@dataclass(frozen=True)
class Pair:
    """A question and its right answer, each as its side's `Writing` spells it."""

    source: str
    target: str
    links: Links | None = None
    """The gold alignment, by units of both sides, counted from 0; None where it is not known."""
    pattern: str = ""
    """What kind of example it is, such as "negation"; empty where there are no kinds."""
    held_out: bool = False
    """Kept from training."""

    def __post_init__(self) -> None:
        if not self.source or not self.target:
            raise ValueError(f"A pair needs text on both sides: {self.source!r}, {self.target!r}.")


class Corpus:
    """Examples of one task, as text. Pure: the same arguments give the same examples."""

    name = ""
    src: Writing
    tgt: Writing
    same_length = False
    """Whether every answer has as many units as its question."""
    translates = False
    """Whether answers are sentences, to be measured by BLEU and chrF too."""
    size: int | None = None
    """Number of training examples; None where the supply is endless."""
    longest: int | None = None
    """Units of the longest example, where they are known without drawing."""
    shortest = 0
    """Units of the shortest training example; 0 where a shorter question is nothing special."""

    def drawn(self, rng: np.random.Generator, count: int) -> list[Pair]:
        """Examples to train on, none of them held out; of a finite corpus all, in a fixed order."""
        raise NotImplementedError

    def held_out_draws(self) -> Iterator[Pair]:
        """Examples in a fixed random order, among which `held_out` finds those that it keeps."""
        raise NotImplementedError

    @cached_property
    def _held_out(self) -> tuple[Pair, ...]:
        found: dict[str, Pair] = {}
        idle = 0
        for pair in self.held_out_draws():
            if pair.held_out and pair.source not in found:
                found[pair.source], idle = pair, 0
            else:
                idle += 1
            if len(found) == N_HELD_OUT or idle == PATIENCE:
                break
        return tuple(found.values())

    def held_out(self) -> Sequence[Pair]:
        """`N_HELD_OUT` fixed and different examples that training never sees, in a fixed random order."""
        return self._held_out

    def probes(self) -> Sequence[str]:
        """About five questions to begin with, the most telling first."""
        raise NotImplementedError

    def everyday(self) -> Sequence[str]:
        """Everyday examples, where training does not draw such; often none."""
        return ()

    def read(self, text: str) -> str:
        """Check and clean what a user typed. Raises InputError, with an offer where there is one."""
        raise NotImplementedError

    def find(self, source: str) -> Pair | None:
        """A cleaned question with its answer and links; None where the answer is not known."""
        raise NotImplementedError

    def references(self, source: str) -> Sequence[str]:
        """Every answer to a question of this corpus that counts as right; here the only one."""
        pair = self.find(source)
        return (pair.target,) if pair else ()

    def length(self, text: str) -> int:
        """Units of a question."""
        return len(self.src.units(text))

    @property
    def longest_question(self) -> int:
        """Units of the longest question of the training, or of those that are held out from it."""
        return self.longest or self.report_lengths()[-1]

    def report_lengths(self) -> tuple[int, ...]:
        """Lengths on which accuracy is reported, ascending: those of the held-out questions."""
        lengths = {self.length(pair.source) for pair in self.held_out()}
        return tuple(range(min(lengths), max(lengths) + 1))

    def words_of_length(self, length: int, count: int) -> list[str]:
        """Fixed questions of one length; of trained lengths such as training never sees."""
        return [pair.source for pair in self.held_out() if self.length(pair.source) == length][:count]

    def hardest(self, tokens: Sequence[str]) -> list[str]:
        """Questions with the fewest tokens left to attend to when these tokens are blocked."""
        return sorted((pair.source for pair in self.held_out()), key=self.length)[:50]


def chosen_by_hash(*names: str) -> bool:
    """Whether a thing of these names is kept from training: one in ten, the same in every run."""
    digest = hashlib.blake2b("\n".join(names).encode(), digest_size=8).digest()
    return int.from_bytes(digest) % ONE_IN == 0


@lru_cache(maxsize=2**16)
def held_out_by_hash(*names: str) -> bool:
    """The same, remembered: for things that come again and again."""
    return chosen_by_hash(*names)


def token_links(
    pair: Pair, src: tuple[Writing, TextTokenizer], tgt: tuple[Writing, TextTokenizer]
) -> Links | None:
    """For each token of the answer, [EOS] left out, positions of tokens of the question, [SOS] being 0.

    A token that is part of a unit has the links of the whole unit; one that covers several has all of theirs.
    None where the alignment is not known.
    """
    if pair.links is None:
        return None
    columns = _overlapping(src[0].spans(pair.source), src[1].spans(pair.source))
    units = _overlapping(tgt[1].spans(pair.target), tgt[0].spans(pair.target))
    found = []
    for of_token in units:
        needed = {place for unit in of_token for place in pair.links[unit]}
        found.append(tuple(sorted({column + 1 for place in needed for column in columns[place]})))
    return tuple(found)


def _overlapping(spans: Sequence[Span], others: Sequence[Span]) -> list[list[int]]:
    """For each span, which of the others share a character with it."""
    return [[i for i, (begin, end) in enumerate(others) if begin < to and end > at] for at, to in spans]

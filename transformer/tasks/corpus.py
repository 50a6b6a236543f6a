"""Examples of a task as text, with answers and gold links; some are held out from training."""

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
"""Maximum number of held-out examples; there are fewer where no more are found."""
PATIENCE = 5000
"""Draws in a row without a new held-out example after which the search ends."""
HELD_OUT_SEED = 20_171_206
"""Any fixed number: the held-out examples are the same in every run with the same settings of the task."""
ONE_IN = 10
"""Where a hash decides, one in this many is held out."""
Array = np.ndarray[Any, np.dtype[Any]]
Span = tuple[int, int]
Links = tuple[tuple[int, ...], ...]
"""For each unit of the target, the units of the source that it comes from; empty where it comes from none."""


@dataclass(frozen=True)
class Pair:
    """A question and its right answer, each as its side's `Writing` spells it.

    Raises:
        ValueError: a side is empty.
    """

    source: str
    target: str
    links: Links | None = None
    """The gold alignment, by units of both sides, counted from 0; None where it is not known."""
    pattern: str = ""
    """The pattern of a sentence, such as "negation", or the form of a date; empty in other tasks."""
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
    """Maximum units of a training question or answer, if the tokens are known too, as in tasks on letters;
    None: lengths and vocabulary come from a sample."""
    shortest = 0
    """Tokens of the shortest training question; 0 where no question counts as too short."""
    mean_lengths = range(0)
    """Lengths of held-out questions over which maps can be averaged: their answers have one length, too."""

    def drawn(self, rng: np.random.Generator, count: int) -> list[Pair]:
        """Examples to train on, none held out; a finite corpus returns all of them, in a fixed order."""
        raise NotImplementedError

    def held_out_draws(self) -> Iterator[Pair]:
        """Examples in a fixed order, from which `held_out` selects."""
        raise NotImplementedError

    @cached_property
    def _held_out(self) -> tuple[Pair, ...]:
        chosen: dict[str, Pair] = {}
        idle = 0
        for pair in self.held_out_draws():
            if pair.held_out and pair.source not in chosen:
                chosen[pair.source], idle = pair, 0
            else:
                idle += 1
            if len(chosen) == N_HELD_OUT or idle == PATIENCE:
                break
        return tuple(chosen.values())

    def held_out(self) -> Sequence[Pair]:
        """Up to `N_HELD_OUT` held-out examples with different questions, in a fixed order."""
        return self._held_out

    def tracked_words(self) -> Sequence[str]:
        """Up to five questions to track at first, the most instructive first."""
        raise NotImplementedError

    def everyday(self) -> Sequence[str]:
        """Real words to evaluate a task that trains on random letters; by default none."""
        return ()

    def read(self, text: str) -> str:
        """Check and clean what a user typed. Raises InputError, with a suggestion if there is one."""
        raise NotImplementedError

    def find(self, source: str) -> Pair | None:
        """A cleaned question with its answer and links; None where the answer is not known."""
        raise NotImplementedError

    def references(self, source: str) -> Sequence[str]:
        """Every answer to a question that counts as right; by default only the answer of `find`."""
        pair = self.find(source)
        return (pair.target,) if pair else ()

    def length(self, text: str) -> int:
        """Length of a question in units."""
        return len(self.src.units(text))

    @property
    def longest_question(self) -> int:
        """Units of the longest question: `longest` where it is known, else the last of `report_lengths`."""
        return self.longest or self.report_lengths()[-1]

    def report_lengths(self) -> tuple[int, ...]:
        """Lengths on which accuracy is reported: from the shortest to the longest held-out question."""
        lengths = {self.length(pair.source) for pair in self.held_out()}
        return tuple(range(min(lengths), max(lengths) + 1))

    def words_of_length(self, length: int, count: int) -> list[str]:
        """At most `count` fixed held-out questions of one length."""
        return [pair.source for pair in self.held_out() if self.length(pair.source) == length][:count]

    def hardest(self, tokens: Sequence[str]) -> list[str]:
        """Questions with the fewest open tokens if these are blocked; by default the 50 shortest held out."""
        return sorted((pair.source for pair in self.held_out()), key=self.length)[:50]


def chosen_by_hash(*names: str) -> bool:
    """Whether the hash of these names holds an example out: one in ten, the same in every run."""
    digest = hashlib.blake2b("\n".join(names).encode(), digest_size=8).digest()
    return int.from_bytes(digest) % ONE_IN == 0


@lru_cache(maxsize=2**16)
def held_out_by_hash(*names: str) -> bool:
    """`chosen_by_hash` with a cache, for names that are asked for often."""
    return chosen_by_hash(*names)


def token_links(
    pair: Pair, src: tuple[Writing, TextTokenizer], tgt: tuple[Writing, TextTokenizer]
) -> Links | None:
    """For each token of the answer, [EOS] left out, positions of tokens of the question, [SOS] being 0.

    A token that is part of a unit has the links of the whole unit; one that covers several has all of theirs.
    None where the alignment is not known.

    Args:
        src: how questions are written, and their tokenizer.
        tgt: how answers are written, and their tokenizer.
    """
    if pair.links is None:
        return None
    columns = _overlapping(src[0].spans(pair.source), src[1].spans(pair.source))
    units = _overlapping(tgt[1].spans(pair.target), tgt[0].spans(pair.target))
    links = []
    for of_token in units:
        needed = {place for unit in of_token for place in pair.links[unit]}
        links.append(tuple(sorted({column + 1 for place in needed for column in columns[place]})))
    return tuple(links)


def _overlapping(spans: Sequence[Span], others: Sequence[Span]) -> list[list[int]]:
    """For each span, the indices of the others that share a character with it."""
    return [[i for i, (begin, end) in enumerate(others) if begin < to and end > at] for at, to in spans]

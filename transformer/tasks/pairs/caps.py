"""What is kept of the pairs that were read, so that a small model can learn them in minutes."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from transformer.errors import InputError
from transformer.tasks.pairs.frequency import frequent, frequent_few
from transformer.tasks.pairs.reading import Reading
from transformer.tasks.pairs.spelling import cleaner, writing_of
from transformer.tasks.writing import Writing

SHUFFLE_SEED = 20_171_206
"""Any fixed number: the same file and caps give the same pairs."""
Sides = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Caps:
    """Which pairs are kept, and how they are spelled."""

    swap: bool = False
    """Learn from the second side to the first."""
    longest_source: int | None = None
    """Most units of a source: words, signs, Chinese characters."""
    longest_target: int | None = None
    """Most units of a target."""
    min_frequency: int = 1
    """How often every unit of a kept pair must occur on its side, in the kept pairs."""
    most_pairs: int | None = None
    """Most pairs."""
    lower: bool = True
    """Whether capitals are of no account."""

    def __post_init__(self) -> None:
        for name in ("longest_source", "longest_target", "most_pairs", "min_frequency"):
            value = getattr(self, name)
            if value is None and name != "min_frequency":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"{name}={value!r} is no whole number from 1; choose at least 1.", name)


@dataclass(frozen=True)
class Step:
    """What one cap left."""

    cap: str
    """As a person reads it."""
    left: int
    """Pairs after it."""


@dataclass(frozen=True)
class Capped:
    """The pairs that are kept, each spelled as its side's writing spells it."""

    pairs: tuple[Sides, ...]
    """In a fixed random order, each once."""
    caps: Caps
    src: Writing
    tgt: Writing
    steps: tuple[Step, ...] = ()
    """From what was read to what is kept, one for each cap that is set."""

    @cached_property
    def src_words(self) -> int:
        """Different units of the sources."""
        return _vocabulary(self.src, {source for source, _ in self.pairs})

    @cached_property
    def tgt_words(self) -> int:
        """Different units of the targets."""
        return _vocabulary(self.tgt, {target for _, target in self.pairs})


def _vocabulary(writing: Writing, texts: Iterable[str]) -> int:
    return len({unit for text in texts for unit in writing.units(text)})


class _Candidate(NamedTuple):
    pair: Sides
    n_source: int
    n_target: int
    words: tuple[int, ...]
    """The units of both sides as numbers, which differ between the sides."""


def capped(reading: Reading, caps: Caps) -> Capped:
    """Spell the pairs, and keep those that the caps allow.

    The order of the caps is: length; frequency; number, from a shuffled list, since files are sorted by
    length. Words are rarer in fewer pairs, so with a frequency the number is chosen among pairs of more
    frequent words. All caps hold together for what is kept.
    """
    sources = [source for source, _ in reading.pairs]
    targets = [target for _, target in reading.pairs]
    if caps.swap:
        sources, targets = targets, sources
    src, tgt = (writing_of(texts, lower=caps.lower) for texts in (sources, targets))
    spelled = dict.fromkeys(zip(map(cleaner(src), sources), map(cleaner(tgt), targets), strict=True))
    steps = [Step("read", reading.read)]

    def after(cap: str, left: list[_Candidate]) -> list[_Candidate]:
        steps.append(Step(cap, len(left)))
        return left

    left = _candidates(spelled, src, tgt)
    random.Random(SHUFFLE_SEED).shuffle(left)
    if len(left) < reading.read:
        after("different once spelled alike", left)
    if (longest := caps.longest_source) is not None:
        left = after(f"source of at most {longest:,} words", [one for one in left if one.n_source <= longest])
    if (longest := caps.longest_target) is not None:
        left = after(f"target of at most {longest:,} words", [one for one in left if one.n_target <= longest])
    least, most = caps.min_frequency, caps.most_pairs
    if least > 1:
        left = after(f"every word at least {least:,} times", frequent(left, _words, least))
    if most is not None and least > 1 and len(left) > most:
        few = frequent_few(left, _words, least, most)
        left = after(f"at most {most:,} pairs, every word still {least:,} times", few)
    elif most is not None:
        left = after(f"at most {most:,} pairs", left[:most])
    return Capped(tuple(one.pair for one in left), caps, src, tgt, tuple(steps))


def _candidates(spelled: Iterable[Sides], src: Writing, tgt: Writing) -> list[_Candidate]:
    in_sources: defaultdict[str, int] = defaultdict(lambda: len(in_sources))
    in_targets: defaultdict[str, int] = defaultdict(lambda: ~len(in_targets))  # negative
    made = []
    for pair in spelled:
        read, written = src.units(pair[0]), tgt.units(pair[1])
        words = *map(in_sources.__getitem__, read), *map(in_targets.__getitem__, written)
        made.append(_Candidate(pair, len(read), len(written), words))
    return made


def _words(candidate: _Candidate) -> tuple[int, ...]:
    return candidate.words

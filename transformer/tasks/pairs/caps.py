"""Caps on the pairs that were read, so that a small model can learn them in minutes."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated

from transformer.config.limits import Settings, Whole
from transformer.tasks.pairs.frequency import Candidate, frequent, frequent_few
from transformer.tasks.pairs.layout import Sides
from transformer.tasks.pairs.reading import Reading
from transformer.tasks.pairs.spelling import cleaner
from transformer.tasks.pairs.units import LOOKED_AT, writing_of
from transformer.tasks.writing import CHARACTERS, Writing

SHUFFLE_SEED = 20_171_206
"""Any fixed number: the same file and caps give the same pairs."""
LENGTHS = ((8, 12), (16, 24), (None, None))
"""Longest source and target that are suggested: short sentences first, which are learned in minutes."""
FREQUENCIES = (5, 3, 2, 1)
"""Least frequencies to try, the highest first: rare words cannot be learned."""
ENOUGH, LEAST_SHARE = 2_000, 0.4
"""Number of pairs that should remain; for a small file, the share of its pairs."""
MOST_PAIRS = 5_000
COUNT = Whole(1, 1_000_000)
LETTERS_OF_A_WORD = 5
"""Length of a word in characters, for a side that is read in characters."""


@dataclass(frozen=True, kw_only=True)
class Caps(Settings):
    """Rules by which pairs are kept, and their spelling."""

    swap: bool = False
    """Learn from the second side to the first."""
    longest_source: Annotated[int | None, COUNT] = None
    """Most units of a source: words and signs, or characters where it is read in these."""
    longest_target: Annotated[int | None, COUNT] = None
    """Most units of a target."""
    min_frequency: Annotated[int, COUNT] = 1
    """How often every unit of a kept pair must occur on its side, in the kept pairs."""
    most_pairs: Annotated[int | None, COUNT] = None
    """Most pairs."""
    lower: bool = True
    """Whether capitals are ignored."""


@dataclass(frozen=True)
class Capped:
    """The pairs that are kept, each spelled as its side's writing spells it."""

    pairs: tuple[Sides, ...]
    """In a fixed random order, each once."""
    caps: Caps
    src: Writing
    tgt: Writing


@dataclass(frozen=True)
class _Spelled:
    """Pairs as they are spelled, from which caps choose."""

    src: Writing
    tgt: Writing
    candidates: list[Candidate]
    """In a fixed random order."""


def capped(reading: Reading, caps: Caps) -> Capped:
    """Spell the pairs, and keep those that the caps allow.

    The caps apply in this order: length, frequency, number. The number is taken from a shuffled list, since
    files are sorted by length. Words are rarer in fewer pairs, so with a least frequency the number is chosen
    from pairs of more frequent words. The result satisfies all caps.
    """
    return _kept(_spelled(reading, swap=caps.swap, lower=caps.lower), caps)


def suggested(reading: Reading) -> Caps:
    """The strictest caps that leave enough pairs, judged by a sample if the file is large."""
    some = reading.pairs[:: -(-reading.read // LOOKED_AT)]
    spelled = _spelled(replace(reading, pairs=some), swap=False, lower=True)
    enough = min(ENOUGH, LEAST_SHARE * len(some))
    for (source, target), often in product(LENGTHS, FREQUENCIES):
        caps = Caps(
            longest_source=_units(spelled.src, source),
            longest_target=_units(spelled.tgt, target),
            min_frequency=often,
        )
        if len(_kept(spelled, caps).pairs) >= enough:
            break
    return replace(caps, most_pairs=MOST_PAIRS)


def _units(writing: Writing, words: int | None) -> int | None:
    """The number of units of a writing that is about as long as a number of words."""
    return words and words * LETTERS_OF_A_WORD if writing.unit == CHARACTERS else words


def _spelled(reading: Reading, *, swap: bool, lower: bool) -> _Spelled:
    pairs = [(target, source) for source, target in reading.pairs] if swap else reading.pairs
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    src, tgt = (writing_of(texts, sources, lower=lower) for texts in (sources, targets))
    different = dict.fromkeys(zip(map(cleaner(src), sources), map(cleaner(tgt), targets), strict=True))
    in_sources: defaultdict[str, int] = defaultdict(lambda: len(in_sources))
    in_targets: defaultdict[str, int] = defaultdict(lambda: ~len(in_targets))  # negative
    candidates = []
    for pair in different:
        source_units, target_units = src.units(pair[0]), tgt.units(pair[1])
        words = *map(in_sources.__getitem__, source_units), *map(in_targets.__getitem__, target_units)
        candidates.append(Candidate(pair, len(source_units), len(target_units), words))
    random.Random(SHUFFLE_SEED).shuffle(candidates)
    return _Spelled(src, tgt, candidates)


def _kept(spelled: _Spelled, caps: Caps) -> Capped:
    left = spelled.candidates
    if (longest := caps.longest_source) is not None:
        left = [one for one in left if one.n_source <= longest]
    if (longest := caps.longest_target) is not None:
        left = [one for one in left if one.n_target <= longest]
    least, most = caps.min_frequency, caps.most_pairs
    if least > 1:
        left = frequent(left, least)
    if most is not None and len(left) > most:
        left = frequent_few(left, least, most) if least > 1 else left[:most]
    return Capped(tuple(one.pair for one in left), caps, spelled.src, spelled.tgt)

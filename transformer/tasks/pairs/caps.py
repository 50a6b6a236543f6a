"""Caps on the pairs that were read, so that a small model can learn them in minutes."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from typing import Annotated, NamedTuple

from transformer.config.limits import Settings, Whole
from transformer.tasks.pairs.reading import Reading, Sides
from transformer.tasks.pairs.units import LOOKED_AT, cleaner, writing_of
from transformer.tasks.writing import CHARACTERS, Writing

SHUFFLE_SEED = 20_171_206
"""Any fixed number: the same file and caps give the same pairs."""
LENGTHS = ((8, 12), (16, 24), (None, None))
"""Longest source and target to try, in words: short sentences first, which are learned sooner; None: any."""
FREQUENCIES = (5, 3, 2, 1)
"""Minimum frequencies to try, the highest first: rare words cannot be learned."""
ENOUGH, LEAST_SHARE = 2_000, 0.4
"""Number of pairs that should remain; for a small file, the share of its pairs."""
MOST_PAIRS = 5_000
COUNT = Whole(1, 1_000_000)
LETTERS_OF_A_WORD = 5
"""Assumed length of a word in characters, for a side that is read in characters."""


@dataclass(frozen=True, kw_only=True)
class Caps(Settings):
    """Rules that select pairs, and the direction and spelling of the pairs."""

    swap: bool = False
    """Learn from the second side to the first."""
    longest_source: Annotated[int | None, COUNT] = None
    """Maximum number of units of a source: words and signs, or characters if it is read in characters;
    None: no limit."""
    longest_target: Annotated[int | None, COUNT] = None
    """Maximum number of units of a target; None: no limit."""
    min_frequency: Annotated[int, COUNT] = 1
    """How often at least every unit of a kept pair must occur on its side, in the kept pairs."""
    most_pairs: Annotated[int | None, COUNT] = None
    """Maximum number of pairs; None: no limit."""
    lower: bool = True
    """Whether texts are lower-cased."""


@dataclass(frozen=True)
class Capped:
    """The kept pairs, each side spelled by its `Writing`."""

    pairs: tuple[Sides, ...]
    """In a fixed random order, each once."""
    caps: Caps
    src: Writing
    tgt: Writing


class Candidate(NamedTuple):
    """A pair that may be kept."""

    pair: Sides
    n_source: int
    n_target: int
    words: tuple[int, ...]
    """The units of both sides as numbers; the two sides share no number."""


@dataclass(frozen=True)
class _Spelled:
    """Spelled pairs, before the caps are applied."""

    src: Writing
    tgt: Writing
    candidates: list[Candidate]
    """In a fixed random order."""


def select_pairs(reading: Reading, caps: Caps) -> Capped:
    """Spell the pairs, and keep those that the caps allow.

    The caps apply in this order: length, frequency, number. The number is taken from a shuffled list, since
    files may be sorted by length. Words are rarer in fewer pairs, so with a minimum frequency the pairs with
    more frequent words are preferred. The result satisfies all caps.
    """
    return _kept(_spelled(reading, swap=caps.swap, lower=caps.lower), caps)


def suggested(reading: Reading) -> Caps:
    """The first caps, the strictest first, that leave enough pairs; of a large file, a sample is judged."""
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
    """The number of units of a writing that are about as long as this many words; None stays None."""
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


def frequent(candidates: Sequence[Candidate], least: int) -> list[Candidate]:
    """The largest set of pairs in which every word occurs at least `least` times.

    Removing a pair makes its words rarer, which may remove further pairs. Each pair is removed at most once
    and updates the counts of its own words only, so the time is linear for a chain of any length.
    """
    sentences = [candidate.words for candidate in candidates]
    count = Counter(chain.from_iterable(sentences))
    rare = [word for word, times in count.items() if times < least]
    if not rare:
        return list(candidates)
    having: defaultdict[int, list[int]] = defaultdict(list)
    for place, sentence in enumerate(sentences):
        for word in sentence:
            having[word].append(place)
    gone = [False] * len(sentences)
    while rare:
        for place in having.pop(rare.pop()):
            if gone[place]:
                continue
            gone[place] = True
            for word in sentences[place]:
                count[word] -= 1
                if count[word] == least - 1:
                    rare.append(word)
    return [candidate for candidate, is_gone in zip(candidates, gone, strict=True) if not is_gone]


def frequent_few(candidates: Sequence[Candidate], least: int, most: int) -> list[Candidate]:
    """At most `most` pairs in which every word still occurs at least `least` times.

    A word that occurs 5 times in 10,000 sentences occurs about once in 2,000 of them: hardly any would be
    left. So search for a higher minimum: the highest, here up to 25, that leaves at least `most` pairs. The
    first `most` of these are filtered by `least`; if the next higher minimum leaves more pairs, those are
    returned.
    """
    enough = candidates
    few: list[Candidate] = []
    low, high = least, -(-least * len(candidates) // most)
    while low < high:
        middle = (low + high + 1) // 2
        left = frequent(enough, middle)  # a subset of what any lower minimum leaves
        if len(left) >= most:
            low, enough = middle, left
        else:
            high, few = middle - 1, left
    return max(frequent(enough[:most], least), few, key=len)

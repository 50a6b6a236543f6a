"""Selection of sentences whose words all occur often, so that every word can be learned."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from transformer.tasks.pairs.layout import Sides


class Candidate(NamedTuple):
    """A pair that may be kept."""

    pair: Sides
    n_source: int
    n_target: int
    words: tuple[int, ...]
    """The units of both sides as numbers; the two sides share no number."""


def frequent(candidates: Sequence[Candidate], least: int) -> list[Candidate]:
    """The largest set of pairs in which every word occurs at least `least` times.

    Removing a pair makes its words rarer, which may remove further pairs. Each pair is removed at most once
    and updates the counts of its own words only, so the time is linear however long such a chain is.
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
    """About `most` pairs in which every word still occurs at least `least` times.

    A word that occurs 5 times in 10,000 sentences occurs once in 2,000 of them: hardly any would be left.
    So a higher minimum, such as 25, is sought: the highest that leaves at least `most` pairs. The first
    `most` of these are filtered by `least`; if the next higher minimum leaves more pairs, those are returned.
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

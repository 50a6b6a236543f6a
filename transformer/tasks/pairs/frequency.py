"""Sentences of words that all occur often: a small vocabulary, of which each word can be learned."""

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
    """The units of both sides as numbers, which differ between the sides."""


def frequent(candidates: Sequence[Candidate], least: int) -> list[Candidate]:
    """The most pairs of which every word occurs at least so often, in these pairs themselves.

    One that goes makes its words rarer, which may take more pairs along. Each goes once and looks at its own
    words only, so that the time is linear however long such a chain is.
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
    """`most` pairs of frequent words, or not many fewer, of which every word still is frequent.

    A word that occurs 5 times in 10,000 sentences occurs once in 2,000 of them, and hardly one would be left.
    So these are the first of the sentences whose words occur more often, such as 25 times in the 10,000: as
    often as leaves enough to choose from. Or they are those that the next number leaves, if these are more.
    """
    enough = candidates
    few: list[Candidate] = []
    low, high = least, -(-least * len(candidates) // most)
    while low < high:
        middle = (low + high + 1) // 2
        left = frequent(enough, middle)  # those of more frequent words are among those of less
        if len(left) >= most:
            low, enough = middle, left
        else:
            high, few = middle - 1, left
    return max(frequent(enough[:most], least), few, key=len)

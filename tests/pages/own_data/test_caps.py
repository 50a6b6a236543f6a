"""Caps that the page chooses for a file: short sentences of frequent words, and enough of them."""

from __future__ import annotations

import random

import pytest

from pages.own_data.caps import suggested
from transformer.tasks.pairs.caps import capped
from transformer.tasks.pairs.reading import Reading


def reading(n, words, shortest, longest):
    """So many pairs of words drawn by chance, a few of them far more often than most, as in any language."""
    rng = random.Random(0)

    def side(length, sign):
        return " ".join(f"{sign}{min(int(rng.paretovariate(0.9)), words)}" for _ in range(length))

    lengths = [rng.randint(shortest, longest) for _ in range(n)]
    return Reading(tuple((f"{side(k, 'a')} {i}", side(k, "b")) for i, k in enumerate(lengths)), "", n)


def unnumbered(found):
    """The same without the number that makes every source different."""
    return Reading(
        tuple((source.rsplit(" ", 1)[0], target) for source, target in found.pairs), "", found.seen
    )


@pytest.mark.parametrize("n", [60, 500, 3000])
def test_of_a_small_file_most_is_kept(n):
    # Each source ends in a number of its own, which makes every one different: nothing is frequent.
    found = reading(n, 300, 3, 7)
    assert len(capped(found, suggested(found)).pairs) >= 0.9 * n


def test_long_sentences_are_not_all_left_out():
    found = reading(600, 200, 20, 40)
    caps = suggested(found)
    assert (caps.longest_source, caps.longest_target) == (None, None)
    assert len(capped(found, caps).pairs) == 600


def test_of_a_large_file_short_sentences_of_frequent_words_are_kept():
    found = unnumbered(reading(12_000, 3000, 3, 20))
    caps = suggested(found)
    assert (caps.longest_source, caps.longest_target, caps.most_pairs) == (8, 12, 5_000)
    assert caps.min_frequency == 5
    assert 2_000 <= len(capped(found, caps).pairs) <= 5_000


def test_a_small_file_too_is_rid_of_its_long_sentences_where_enough_remains():
    found = unnumbered(reading(800, 60, 3, 13))
    caps = suggested(found)
    assert (caps.longest_source, caps.longest_target) == (8, 12)
    assert 0.4 * 800 <= len(capped(found, caps).pairs) < 800

"""Three tasks on letters: their answers, and which letter each letter of an answer comes from."""

from __future__ import annotations

import codecs
from collections import Counter

import numpy as np
import pytest

from transformer.tasks.caesar import Caesar
from transformer.tasks.copying import Copy
from transformer.tasks.sorting import Sort

ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def examples(corpus):
    return [*corpus.drawn(np.random.default_rng(1), 2000), *corpus.held_out(), *corpus.everyday()]


def linked(pair):
    """The letters that the gold alignment points to, in the order of the answer."""
    assert all(len(places) == 1 for places in pair.links)
    return "".join(pair.source[place] for (place,) in pair.links)


@pytest.mark.parametrize("corpus", [Copy(1, 9), Sort(1, 9), Caesar(1, 9, 4)], ids=lambda corpus: corpus.name)
def test_every_letter_of_a_word_is_used_once_for_an_answer_of_the_same_length(corpus):
    assert corpus.same_length
    for pair in examples(corpus):
        assert len(pair.target) == len(pair.source) == len(pair.links)
        assert sorted(place for (place,) in pair.links) == list(range(len(pair.source)))
        assert corpus.find(pair.source) == pair
        assert corpus.references(pair.source) == (pair.target,)


def test_the_tasks_have_their_names():
    assert [corpus.name for corpus in (Copy(1, 3), Sort(1, 3), Caesar(1, 3, 1))] == ["copy", "sort", "caesar"]


def test_a_copy_is_the_word_itself_letter_by_letter():
    for pair in examples(Copy(1, 9)):
        assert pair.target == pair.source == linked(pair)
    assert Copy(1, 9).find("cab").links == ((0,), (1,), (2,))


def test_sorted_letters_are_those_of_the_word_in_the_order_of_the_alphabet():
    for pair in examples(Sort(1, 9)):
        assert Counter(pair.target) == Counter(pair.source)
        assert all(left <= right for left, right in zip(pair.target, pair.target[1:], strict=False))
        assert linked(pair) == pair.target


def test_equal_letters_keep_their_order():
    pair = Sort(1, 9).find("banana")
    assert pair.target == "aaabnn"
    assert pair.links == ((1,), (3,), (5,), (0,), (2,), (4,))
    for pair in examples(Sort(1, 9)):
        for i in range(len(pair.target) - 1):
            assert pair.target[i] != pair.target[i + 1] or pair.links[i] < pair.links[i + 1]


def test_half_way_round_the_alphabet_caesar_is_rot13():
    for pair in examples(Caesar(1, 9, 13)):
        assert pair.target == codecs.encode(pair.source, "rot13")


@pytest.mark.parametrize("shift", [1, 3, 25])
def test_caesar_writes_each_letter_so_many_further_on_and_begins_again_after_z(shift):
    there, back = Caesar(1, 26, shift), Caesar(1, 26, 26 - shift)
    for letter in ALPHABET:
        answer = there.find(letter).target
        assert (ALPHABET.index(answer) - ALPHABET.index(letter)) % 26 == shift
    assert back.answer(there.answer(ALPHABET)) == ALPHABET
    assert Caesar(1, 9, 3).find("xyzabc").target == "abcdef"
    assert there.find("zebra").links == ((0,), (1,), (2,), (3,), (4,))

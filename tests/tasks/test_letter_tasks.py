"""Four letter tasks: their answers, and the source letter of each letter of an answer."""

from __future__ import annotations

import codecs
from string import ascii_lowercase

import numpy as np
import pytest

from transformer.tasks.caesar import Caesar
from transformer.tasks.copying import Copy
from transformer.tasks.reverse import Reverse
from transformer.tasks.sorting import Sort

TASKS = {"reverse": Reverse(1, 9), "copy": Copy(1, 9), "sort": Sort(1, 9), "caesar": Caesar(1, 9, 13)}
ANSWERS = {
    "reverse": lambda word: "".join(reversed(word)),
    "copy": str,
    "sort": lambda word: "".join(letter * word.count(letter) for letter in ascii_lowercase),
    "caesar": lambda word: codecs.encode(word, "rot13"),  # half way round the alphabet
}


@pytest.mark.parametrize("name", TASKS)
def test_answers_are_right_and_linked_to_each_letter_of_the_word_once(name):
    corpus = TASKS[name]
    assert (corpus.name, corpus.same_length) == (name, True)
    pairs = [
        *corpus.drawn(np.random.default_rng(1), 2000),
        *corpus.held_out(),
        *map(corpus.find, corpus.everyday()),
    ]
    for pair in pairs:
        assert pair.target == ANSWERS[name](pair.source)
        assert sorted(place for (place,) in pair.links) == list(range(len(pair.source)))
        if name != "caesar":
            assert "".join(pair.source[place] for (place,) in pair.links) == pair.target
        assert corpus.find(pair.source) == pair
        assert corpus.references(pair.source) == (pair.target,)


@pytest.mark.parametrize(
    ("name", "answer", "places"),
    [
        ("reverse", "ananab", (5, 4, 3, 2, 1, 0)),
        ("copy", "banana", (0, 1, 2, 3, 4, 5)),
        ("sort", "aaabnn", (1, 3, 5, 0, 2, 4)),  # equal letters keep their order
        ("caesar", "onanan", (0, 1, 2, 3, 4, 5)),
    ],
)
def test_answers_and_links_equal_those_made_by_hand(name, answer, places):
    pair = TASKS[name].find("banana")
    assert pair.target == answer
    assert pair.links == tuple((place,) for place in places)


@pytest.mark.parametrize("shift", [1, 3, 25])
def test_caesar_shifts_each_letter_and_wraps_around_after_z(shift):
    there, back = Caesar(1, 26, shift), Caesar(1, 26, 26 - shift)
    for letter in ascii_lowercase:
        answer = there.find(letter).target
        assert (ascii_lowercase.index(answer) - ascii_lowercase.index(letter)) % 26 == shift
    assert back.answer(there.answer(ascii_lowercase)) == ascii_lowercase
    assert Caesar(1, 9, 3).find("xyzabc").target == "abcdef"

"""Repeating: what came from the earlier occurrence of the last letter on."""

from __future__ import annotations

import re

import numpy as np
import pytest

from transformer.config import RunConfig
from transformer.config.tasks import with_task
from transformer.tasks import task_of
from transformer.tasks.repeating import Repeat


@pytest.mark.parametrize(
    ("word", "answer"),
    [
        ("abcda", "abcd"),
        ("xyabcda", "abcd"),
        ("sunflowers", "sunflower"),
        ("banana", "an"),  # the last earlier occurrence counts
        ("abcbdb", "bd"),
        ("aa", "a"),
        ("abc", None),
        ("a", None),
        ("", None),
    ],
)
def test_the_answer_is_what_came_from_the_last_earlier_occurrence_of_the_last_letter_on(word, answer):
    found = Repeat(1, 9).find(word)
    assert (found and found.target) == answer


@pytest.mark.parametrize("longest", [3, 4, 9, 16, 40])
def test_words_repeat_their_last_letter_once_at_places_and_distances_that_vary(longest):
    corpus = Repeat(1, longest)
    pairs = [*corpus.drawn(np.random.default_rng(2), 1500), *corpus.held_out()[:300]]
    for pair in pairs:
        letter = pair.source[-1]
        assert pair.source.count(letter) == 2
        assert re.search(f"({letter}.*){letter}$", pair.source)[1] == pair.target
        assert "".join(pair.source[place] for (place,) in pair.links) == pair.target
        assert max(3, longest // 2) <= len(pair.source) <= longest
        if longest < 28:
            assert len(set(pair.source)) == len(pair.source) - 1
    if longest > 8:
        assert len({len(pair.source) for pair in pairs}) == longest - longest // 2 + 1
        assert {len(pair.target) for pair in pairs} >= {4, 5, 6, 7}
        # Neither a place nor a distance tells which letter comes first.
        assert len({pair.links[0] for pair in pairs}) > longest // 2
        assert len({len(pair.source) - pair.links[0][0] for pair in pairs}) > 3
    assert not {pair.source for pair in pairs[:1500]} & {pair.source for pair in corpus.held_out()}


def test_heads_are_judged_by_prefix_matching_where_question_and_answer_are_one_sequence():
    config = with_task(RunConfig(), "repeat")
    assert task_of(config.with_changes(topology="decoder-only")).target_score == "prefix"
    assert task_of(config).target_score == "gold"
    task = task_of(config)
    assert [task.answer(word) for word in task.corpus.tracked_words()] == [
        "sunflower", "hunter", "planet", "dynamite",
    ]  # fmt: skip
    assert task.words(3, 1) == task_of(config.with_changes(n_heads=4)).words(3, 1)

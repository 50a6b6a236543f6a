"""How long questions and answers are: a bar for each length."""

from __future__ import annotations

from transformer.figures.histogram import length_histogram


def test_every_length_up_to_the_longest_has_its_bar():
    figure = length_histogram([2, 2, 5], [1, 3, 3], unit=("words", "characters"), title="t").figure()
    questions, answers = figure["data"]
    assert questions["x"] == answers["x"] == [1, 2, 3, 4, 5]
    assert questions["y"] == [0, 2, 0, 0, 1]
    assert answers["y"] == [1, 0, 2, 0, 0]
    assert figure["layout"]["xaxis"]["title"]["text"] == "length: questions in words, answers in characters"
    assert questions["yaxis"] == "y"
    assert answers["yaxis"] == "y2"


def test_a_unit_that_both_sides_share_is_named_once():
    figure = length_histogram([1], [1], unit=("words", "words"), title="t").figure()
    assert figure["layout"]["xaxis"]["title"]["text"] == "length in words"

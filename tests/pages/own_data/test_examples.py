"""Examples of a task: the lists, their figures, and the settings shared with Watch."""

from __future__ import annotations

import re

import pytest

from tests.pages.own_data.conftest import examples
from transformer.tasks import PATTERNS
from transformer.tasks.letters import is_held_out


def choose(visitor, key, row):
    radio = visitor.at.radio(key=key)
    radio.set_value(row)
    return visitor.look()


def test_the_page_opens_with_correct_examples_of_the_task_on_watch(data):
    page = data()
    assert page.value("task") == "reverse"
    for key, held_out, n in (("data_trained", False, 12), ("data_held_out", True, 6)):
        assert len(examples(page, key)) == n
        for word, answer in examples(page, key):
            assert answer == word[::-1]
            assert is_held_out(word) == held_out


def test_other_examples_are_drawn_only_on_request(visit):
    page = visit({"task": "dates"}, page="data")
    assert page.says("English dates, written as")
    before = examples(page, "data_trained"), examples(page, "data_held_out")
    page.look()
    assert (examples(page, "data_trained"), examples(page, "data_held_out")) == before
    page.press("data_others")
    assert not set(before[0]) & set(examples(page, "data_trained"))
    assert examples(page, "data_held_out") != before[1]


def joined(drawn):
    """Return question tokens, answer tokens, and for each answer token the positions it is joined to."""
    below, above = ([re.sub("<.*?>", "", text) for text in trace["text"]] for trace in drawn.data[:2])
    visible = [shape["opacity"] > 0 for shape in drawn.layout["shapes"]]
    n = len(above)
    return above, below, [[i for i in range(n) if visible[row * n + i]] for row in range(len(below))]


def test_one_example_is_chosen_across_both_lists_and_its_letters_are_joined_to_their_mirrors(data):
    page = data()
    for key, other, row in (("data_held_out", "data_trained", 2), ("data_trained", "data_held_out", 3)):
        choose(page, key, row)
        assert page.at.radio(key=other).value is None
        word, _ = examples(page, key)[row]
        above, below, lines = joined(page.drawn("data_alignment_figure"))
        assert "".join(above) == word
        assert "".join(below) == word[::-1]
        assert lines == [[len(word) - 1 - i] for i in range(len(word))]


def test_the_alignment_is_drawn_in_the_chosen_kind_of_tokens(data):
    page = data(task="en-fr").set("tokenizer_kind", "characters")
    above, below, _ = joined(page.drawn("data_alignment_figure"))
    assert all(len(token) == 1 for token in above + below)


@pytest.mark.parametrize(
    ("task", "kept_back"),
    [
        ("reverse", "word"),
        ("dates", "day of a month"),
        ("en-it", "combination"),
        ("zh-en", "纽约是一座城市"),
        ("pairs", "source"),
    ],
)
def test_each_task_states_what_is_held_out(data, bring, task, kept_back):
    page = bring() if task == "pairs" else data(task=task)
    assert page.says(kept_back)


def test_the_patterns_of_a_grammar_are_explained_and_the_choice_is_kept_from_page_to_page(data):
    page = data(task="en-fr")
    for name, look_for in PATTERNS["en-fr"].items():
        assert page.says(f"**{name}** (")
        assert page.says(look_for)
    page.set("patterns_en-fr", ["question"])
    assert not page.says("**clitic** (")
    assert all(source.endswith("?") for source, _ in examples(page, "data_trained"))
    page.go("watch")
    assert page.run.config.train.patterns == ("question",)
    page.go("data")
    assert page.at.multiselect(key="patterns_en-fr").value == ["question"]


def test_the_bars_count_every_example_once(data):
    drawn = data().drawn("data_lengths_figure")
    assert [sum(trace["y"]) for trace in drawn.data] == [1000, 1000]
    assert drawn.data[0]["y"] == drawn.data[1]["y"]  # a reversed word has the same length
    assert len(drawn.data[0]["x"]) == 6  # one bar per length, up to the longest word


def test_a_setting_chosen_here_is_chosen_on_watch_and_kept(data):
    page = data(task="caesar")
    page.set("shift", 5).go("watch")
    assert (page.value("task"), page.value("shift")) == ("caesar", 5)
    page.set("shift", 6).go("data")
    assert page.value("shift") == 6
    assert page.value("width") == 8  # a setting of Watch only, still as in the link


def test_an_impossible_setting_is_refused_in_place_and_examples_are_still_shown(data):
    page = data(task="dates", topology="encoder-only")
    assert len(page.errors) == 1
    assert "encoder-only" in page.errors[0]
    assert len(examples(page, "data_trained")) == 12
    page = data(task="caesar").set("shift", 26)
    assert len(page.errors) == 1
    assert "Shift: 26 is outside" in page.errors[0]

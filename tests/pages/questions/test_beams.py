"""Ask, Beams: several answers as a tree, compared with a separate search by the snapshot's model."""

from __future__ import annotations

import pytest

from tests.pages.questions.conftest import separate_model
from transformer.asking.model import SnapshotModel


@pytest.fixture
def ask(revisit):
    """The Beams tab of a finished run of 20 steps."""
    return revisit(steps=20, width=16, learning_rate=0.02).go("ask").tab("Beams")


def boxes(visitor):
    """Map the (column, row) of each node of the tree to its token."""
    drawn = visitor.drawn("beam_tree_figure")
    return {
        (x, y): text.split("<br>")[0].removeprefix("<b>").removesuffix("</b>")
        for trace in drawn.data
        if trace["mode"] == "markers+text"
        for x, y, text in zip(trace["x"], trace["y"], trace["text"], strict=True)
    }


def expected_boxes(visitor, word, width=4, penalty=0.6, step=None):
    found = separate_model(visitor, step).beams(word, width, penalty)
    tokens = found.tokens
    return {(node.step, node.rank): token for node, token in zip(found.tree.nodes, tokens, strict=True)}


def table(visitor):
    (frame,) = visitor.at.dataframe
    return frame.value


def test_the_tree_shows_the_search_for_the_typed_word_by_the_model_of_the_step(ask):
    ask.set("explore_text", "zebra")
    assert ask.value("beam_width") == 4
    assert ask.value("beam_penalty") == 0.6
    assert boxes(ask) == expected_boxes(ask, "zebra")
    assert max(row for _, row in boxes(ask)) == 4
    ask.go_to_step(5)
    assert ask.drawn("beam_tree_figure").step == 5
    assert boxes(ask) == expected_boxes(ask, "zebra", step=5)
    title = ask.drawn("beam_tree_figure").layout["title"]["text"]
    assert title.startswith("<b>4 beams</b> · step 5<br>")
    assert "“zebra” · length penalty 0.6 · seed 0" in title


def test_the_search_uses_the_typed_width_and_penalty(ask):
    ask.fill({"explore_text": "owl", "beam_width": 7, "beam_penalty": 0.0})
    assert boxes(ask) == expected_boxes(ask, "owl", 7, 0.0)
    scores = list(table(ask)["score"])
    ask.set("beam_penalty", 2.0)
    assert boxes(ask) == expected_boxes(ask, "owl", 7, 2.0)
    assert list(table(ask)["score"]) != scores
    ask.set("beam_width", 1)
    assert {row for _, row in boxes(ask)} == {1}
    assert ask.says("One beam is greedy decoding")


def test_the_table_lists_all_outputs_of_the_search_and_the_greedy_one(ask):
    ask.set("explore_text", "ox")
    found, rows = separate_model(ask).beams("ox", 4, 0.6), table(ask)
    assert len(rows) == len(found.outputs) + 1
    assert list(rows["found by"]) == ["4 beams"] * len(found.outputs) + ["greedy"]
    for output, (_, row) in zip([*found.outputs, found.greedy], rows.iterrows(), strict=True):
        assert row["answer"] == output.text + ("" if output.stopped else "…")
        assert row["score"] == pytest.approx(output.score)
        assert row["probability"] == pytest.approx(100 * output.probability)
        assert row["right"] == ("✓ right" if output.text == "xo" and output.stopped else "✗ wrong")
    (caption,) = [text for text in ask.texts if "hl-verdict'" in text]
    assert f"4 beams → <b>{rows['answer'][0]}</b>" in caption
    assert ("greedy → <b>the same</b>" in caption) != found.differs_from_greedy
    assert f"data-step='{found.step}'" in caption


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [("beam_width", 10**8, "beam_width=100,000,000"), ("beam_penalty", -0.5, "length_penalty=-0.5")],
)
def test_an_invalid_search_setting_is_refused_in_place_and_can_be_corrected(ask, key, value, message):
    good = ask.value(key)
    ask.set(key, value)
    (error,) = ask.errors
    assert error.startswith(message)
    assert not [found for found in ask.at.get("bidi_component") if found.key == "beam_tree_figure"]
    ask.set(key, good)
    assert ask.errors == []
    assert boxes(ask)


@pytest.mark.parametrize(
    ("sent", "message"), [("99", "beam_width=99 is outside 1 to 16"), ("x", None), ("1e999", None)]
)
def test_a_forged_link_is_handled_like_typed_input(ask, visit, sent, message):
    link = {"run": ask.run.id, "beam_width": sent}
    other = visit(link, page="ask").tab("Beams")
    if message is None:
        assert other.errors == []
        assert other.value("beam_width") == 4
    else:
        (error,) = other.errors
        assert error.startswith(message)


def test_an_encoder_only_model_has_one_beam_whatever_the_width(visit):
    ask = visit(topology="encoder-only", steps=6).press("run_start").until("finished")
    ask.go("ask").tab("Beams").set("explore_text", "owl")
    assert boxes(ask) == expected_boxes(ask, "owl")
    assert ask.says("there is nothing to search")
    assert max(row for _, row in boxes(ask)) == 1
    assert ask.drawn("beam_tree_figure").layout["title"]["text"].startswith("<b>1 beam</b>")


def test_without_a_known_answer_nothing_is_marked_right_or_wrong(visit):
    ask = visit(task="en-fr", steps=2).press("run_start").until("finished")
    ask.go("ask").tab("Beams").set("explore_text", "cat the the sees")
    assert ask.errors == []
    assert set(table(ask)["right"]) == {"not known"}
    assert not ask.says("class='not'")
    assert boxes(ask) == expected_boxes(ask, "cat the the sees")


def test_only_the_open_tab_searches_and_it_searches_once(ask, monkeypatch):
    searched = []
    real = SnapshotModel.beams
    monkeypatch.setattr(SnapshotModel, "beams", lambda *a: searched.append(a[1:]) or real(*a))
    for name in ("Spell", "Break", "Measure"):
        ask.tab(name).look()
    assert searched == []
    ask.tab("Beams")
    assert searched == [(ask.value("asked_word_text"), 4, 0.6)]


def test_the_tab_opens_with_the_beam_settings_of_the_run(visit):
    ask = visit(steps=2, decoding="beam", beams=3, length_penalty=0.5).press("run_start").until("finished")
    assert ask.run.config.train.beam_width == 3
    ask.go("ask").tab("Beams")
    assert (ask.value("beam_width"), ask.value("beam_penalty")) == (3, 0.5)

"""The Masks page: who may look at whom in the batch of probes, for every kind of attention."""

from __future__ import annotations

import numpy as np
import pytest

from transformer.figures import colors

SOURCE = {"cat": ["[SOS]", *"cat", "[EOS]", *3 * ["[PAD]"]], "banana": ["[SOS]", *"banana", "[EOS]"]}
TARGET = {"cat": ["[SOS]", *"tac", *3 * ["[PAD]"]], "banana": ["[SOS]", *"ananab"]}
KINDS = {  # columns, rows, whether the future is hidden
    "cross": (SOURCE, 7, False),
    "encoder": (SOURCE, 8, False),
    "decoder": (TARGET, 7, True),
}


@pytest.fixture
def masks(visit):
    """The Masks page of an untrained model whose probes are banana, kayak and cat."""
    return visit().go("masks")


def labels(axis):
    return [text.replace("<br>", "") for text in axis["ticktext"]]


def hidden(shown, panel, color):
    """The cells of one panel that are drawn in this colour."""
    cells = np.zeros(shown.arrays["0.z"].shape, dtype=bool)
    for trace in shown.data[1:]:
        if trace["xaxis"] == panel and trace["colorscale"][0][1] == color:
            cells |= np.array([[z is not None for z in row] for row in trace["z"]])
    return cells


@pytest.mark.parametrize("word", ["cat", "banana"])
@pytest.mark.parametrize("kind", KINDS)
def test_both_masks_and_the_weights_behind_them_are_shown(masks, kind, word):
    masks.set("mask_site", kind).set("mask_word", word)
    columns, n_rows, causal = KINDS[kind]
    shown = masks.drawn("mask_figure")
    assert labels(shown.layout["xaxis"]) == columns[word]
    future = ~np.tri(n_rows, len(columns[word]), dtype=bool) & causal
    padding = np.broadcast_to(np.array(columns[word]) == "[PAD]", future.shape)
    np.testing.assert_array_equal(hidden(shown, "x", colors.CAUSAL), future)
    np.testing.assert_array_equal(hidden(shown, "x2", colors.PADDING), padding)
    np.testing.assert_array_equal(hidden(shown, "x3", colors.PADDING), padding)
    np.testing.assert_array_equal(hidden(shown, "x3", colors.CAUSAL), future & ~padding)
    weights = shown.arrays["0.z"]
    np.testing.assert_array_equal(np.isnan(weights), future | padding)
    np.testing.assert_allclose(np.nansum(weights, axis=1), 1.0, atol=1e-3)
    assert masks.says({"cross": "Cross", "encoder": "Encoder", "decoder": "Decoder"}[kind])


def test_the_page_opens_on_the_shortest_word_with_what_the_marks_mean(visit):
    masks = visit(session={"_deep_link": ("masks", {})}, layers_decoder=1)
    assert masks.value("mask_site") == "decoder"
    assert masks.value("mask_word") == "cat"
    for mark in ("[ ╱ ]", "[ • ]", "**causal**", "**padding**"):
        assert masks.says(mark)
    assert masks.says(f"batch of {len(masks.run.questions)} words")
    title = masks.drawn("mask_figure").changing["title.text"]
    assert title == "“cat” in its batch · step 0 · seed 0"


def test_layer_and_head_choose_whose_weights_are_shown(visit):
    masks = visit(layers_decoder=2, heads=4).go("masks")
    boxes = {box.label: box for box in masks.at.selectbox}
    assert boxes["Layer"].options == ["1", "2"]
    assert boxes["Head"].options == ["1", "2", "3", "4"]
    boxes["Layer"].select_index(1)
    boxes["Head"].select_index(2)
    masks.set("mask_word", "cat")
    frame = masks.run.view.frame
    row = frame.row_of("cat")
    expected = frame.maps["decoder.1.self"][row, 2]
    weights = masks.drawn("mask_figure").arrays["0.z"]
    allowed = ~np.isnan(weights)
    np.testing.assert_allclose(weights[allowed], expected[allowed], atol=1e-4)
    assert (expected[~allowed] == 0).all()
    headings = [note["text"] for note in masks.drawn("mask_figure").layout["annotations"]]
    assert headings[-1] == "weights: <b>decoder 2 · head 3</b>"


def test_the_masks_are_those_of_the_run_that_is_being_watched(visit, long):
    visitor = visit(long, seed=6).set("step_size", 2).step()
    run = visitor.run
    visitor.go("masks")
    assert visitor.run is run
    assert visitor.at.query_params["run"] == run.id
    assert visitor.drawn("mask_figure").step == 2
    assert visitor.says("**paused** · step **2** / 100,000")
    assert visitor.says("seed 6")


def test_a_typed_word_joins_the_batch_and_a_longer_one_adds_padding_to_the_others(visit):
    visitor = visit().set("own_word", "strawberry")
    visitor.once(lambda: visitor.run.view.frame.probes[-1].text == "strawberry")
    visitor.go("masks").set("mask_word", "cat")
    columns = labels(visitor.drawn("mask_figure").layout["xaxis"])
    assert columns == ["[SOS]", *"tac", *7 * ["[PAD]"]]


def test_the_masks_page_needs_no_visit_of_the_watch_page(visit):
    masks = visit({}, session={"_deep_link": ("masks", {})})
    assert masks.run.view.state == "idle"
    assert masks.drawn("mask_figure").step == 0
    assert masks.value("mask_word") == "cat"

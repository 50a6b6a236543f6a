"""Ask, Break: heads switched off and cells blocked in a separate model with the same weights."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.conftest import LIVE
from tests.pages.questions.conftest import block, caption, open_break_tab, separate_model, shown_head, weights
from transformer.asking.model import SnapshotModel
from transformer.figures import colors
from transformer.shared.interventions import NO_INTERVENTIONS, Block, Interventions

SOME = {"width": 32, "letters": 4, "batch_size": 32, "steps": 130, "seed": 3}


@pytest.fixture
def ask(revisit):
    """The Break tab of a finished run of five steps."""
    return open_break_tab(revisit(layers_decoder=2, heads=3, width=12, steps=5))


@pytest.fixture
def learned(revisit):
    """The Break tab of a finished run that gets some held-out words right, but not all."""
    return revisit(**SOME).go("ask").tab("Break")


def taken(visitor, side):
    """Return the cells of one side that are marked as blocked by the visitor."""
    shown = visitor.drawn(f"break_{side}_figure")
    (marks,) = [t for t in shown.data[1:-1] if t["colorscale"][0][1] == colors.BLOCKED_BY_HAND] or [None]
    return [] if marks is None else np.argwhere(np.array(marks["z"], dtype=object) == 1).tolist()


def test_a_switched_off_head_changes_only_the_right_side(learned):
    ask = learned.fill({"explore_text": "cat", "kind": "cross"})
    outputs = [tracked.output for tracked in ask.run.view.frame.words]
    before, text = weights(ask, "before"), caption(ask, "before")
    heads = ["cross 1 · head 1", "cross 1 · head 2"]
    ask.set("ablate_heads", heads)
    gone = Interventions(ablated=(("decoder.0.cross", 0), ("decoder.0.cross", 1)))
    whole, broken = separate_model(ask, 130), separate_model(ask, 130, gone)
    assert whole.exact[1] == broken.exact[1] == LIVE
    assert broken.exact[0] < whole.exact[0]  # the two models themselves differ
    for side, model in (("before", whole), ("after", broken)):
        answer = model.answer("cat")
        assert f"{model.exact[0]} of {LIVE} test words right" in caption(ask, side)
        assert f"data-right='{model.exact[0]}'" in caption(ask, side)
        assert f"cat → <b>{answer.output or '(nothing)'}{'' if answer.stopped else '…'}</b>" in caption(
            ask, side
        )
        assert ("✓" in caption(ask, side)) == answer.right
        maps = answer.forced.maps["decoder.0.cross"]
        assert any(np.allclose(weights(ask, side), one, atol=1e-4) for one in maps)
    np.testing.assert_array_equal(weights(ask, "before"), before)
    assert caption(ask, "before") == text
    first, second = ask.drawn("break_after_figure").changing["title.text"].split("<br>")
    assert first.endswith("</b> · after, switched off")  # where there is room for it
    assert "after" not in second
    assert "before" in ask.drawn("break_before_figure").changing["title.text"]
    assert not ask.run.view.interventions  # the run itself is unchanged
    assert [tracked.output for tracked in ask.run.view.frame.words] == outputs
    ask.go("watch").go("ask").tab("Break")
    assert ask.value("ablate_heads") == heads  # the choice is kept
    ask.press("ablate_none")
    assert caption(ask, "after").split("</small>")[1] == text.split("</small>")[1]


def test_one_press_switches_off_all_heads_of_an_attention_but_the_shown_one(ask):
    ask.go("watch").choose(kind="encoder", pinned=["encoder.0", 1]).go("ask").tab("Break")
    ask.press("ablate_others")
    assert ask.value("ablate_heads") == ["encoder 1 · head 1", "encoder 1 · head 3"]
    others = Interventions(ablated=(("encoder.0", 0), ("encoder.0", 2)))
    answer = separate_model(ask, 5, others).answer("owl")
    np.testing.assert_allclose(weights(ask, "after"), answer.forced.maps["encoder.0"][1], atol=1e-4)
    ask.press("ablate_none")
    assert ask.value("ablate_heads") == []


def test_one_press_switches_off_the_shown_head_or_all_anti_diagonal_heads(ask, monkeypatch):
    ask.go("watch").choose(kind="encoder", pinned=["encoder.0", 1]).go("ask").tab("Break")
    ask.press("ablate_shown")
    assert ask.value("ablate_heads") == ["encoder 1 · head 2"]
    assert "switched off" in ask.drawn("break_after_figure").changing["title.text"]
    scores = {site: list(row) for site, row in ask.run.view.frame.scores.items()}
    clear = sorted(score for row in scores.values() for score in row)[-2]
    monkeypatch.setattr("pages.questions.interventions.THRESHOLD", clear)
    ask.press("ablate_turned")
    assert len(ask.value("ablate_heads")) == 2
    assert all(name.startswith(("encoder ", "cross ")) for name in ask.value("ablate_heads"))


def test_the_words_whose_answers_change_are_counted_and_named(learned):
    visitor = learned.set("kind", "cross").press("ablate_shown")
    (name,) = visitor.value("ablate_heads")
    layer, head = name.removeprefix("cross ").split(" · head ")
    off = Interventions(ablated=((f"decoder.{int(layer) - 1}.cross", int(head) - 1),))
    view = visitor.run.view
    models = [SnapshotModel(view.config, view.snapshots[-1], taken) for taken in (NO_INTERVENTIONS, off)]
    words = models[0].task.live_words()
    outputs = [[model.answer(word).output for word in words] for model in models]
    changed = [word for word, was, now in zip(words, *outputs, strict=True) if was != now]
    assert 0 < len(changed)
    assert visitor.says(f"<b>{len(changed)} of {len(words)}</b> test words have a different output: ")
    (text,) = [text for text in visitor.texts if "have a different output" in text]
    assert sum(f"{word} → " in text for word in changed) == min(3, len(changed))
    visitor.press("ablate_none")
    assert not visitor.says("have a different output")


def test_a_blocked_cell_is_drawn_as_blocked_and_the_rest_of_its_row_is_renormalised(ask):
    layer, head = shown_head(ask)
    before = weights(ask, "before")
    block(ask, 3, 2)
    after = weights(ask, "after")
    assert ask.errors == []
    assert taken(ask, "after") == [[2, 1]]
    assert taken(ask, "before") == []
    assert np.isnan(after[2, 1])
    np.testing.assert_allclose(np.nansum(after, axis=1), 1.0, atol=1e-3)
    site = f"decoder.{layer}.self"
    expected = before[2] / (1 - before[2, 1])  # exact for a softmax over the same scores
    np.testing.assert_allclose(after[2, [0, 2]], expected[[0, 2]], atol=1e-3)
    rest = np.delete(np.arange(4), 2)
    np.testing.assert_allclose(after[rest], before[rest], atol=1e-3)
    np.testing.assert_array_equal(weights(ask, "before"), before)
    one = Interventions(blocked=(Block(site=site, head=head, row=2, column=1),))
    np.testing.assert_allclose(
        after, separate_model(ask, 5, one).answer("owl").forced.maps[site][head], atol=1e-4, equal_nan=True
    )
    assert ask.says(f"Right: blocked row 3, column 2 in decoder layer {layer + 1}, head {head + 1}.")
    ask.press("unblock_0")
    np.testing.assert_array_equal(weights(ask, "after"), before)
    assert "unblock_0" not in ask.keys


def test_a_click_on_a_cell_of_the_left_map_blocks_it(ask):
    ask.click("break_before_figure", 0, [3, 1])
    assert (ask.value("block_row"), ask.value("block_column")) == (4, 2)
    assert taken(ask, "after") == [[3, 1]]
    ask.click("break_before_figure", 0, [3, 99]).click("break_before_figure", 0, "here").look()
    assert taken(ask, "after") == [[3, 1]]


def test_a_whole_column_and_every_occurrence_of_a_token_can_be_blocked(ask):
    ask.fill({"explore_text": "noon", "kind": "cross"})
    block(ask, 1, 3, "token", "kind")
    assert taken(ask, "after") == [[row, column] for row in range(5) for column in (2, 3)]  # both letters o
    ask.press("unblock_0").press("unblock_0")
    assert taken(ask, "after") == []
    block(ask, 1, 3, "column", "site")
    assert taken(ask, "after") == [[row, 2] for row in range(5)]
    ask.set("explore_text", "cat")
    assert taken(ask, "after") == []  # a column of one word is not blocked in another
    ask.set("explore_text", "noon")
    assert taken(ask, "after") == [[row, 2] for row in range(5)]


def test_the_last_open_cell_of_a_row_cannot_be_blocked(ask):
    block(ask, 3, 2)
    before = weights(ask, "after")
    block(ask, 1, 1)
    (error,) = ask.errors
    assert "may look at 1 of 4 columns" in error
    np.testing.assert_array_equal(weights(ask, "after"), before)
    assert taken(ask, "after") == [[2, 1]]
    assert "unblock_1" not in ask.keys
    block(ask, 4, 2)
    assert ask.errors == []
    assert taken(ask, "after") == [[2, 1], [3, 1]]


@pytest.mark.parametrize(
    ("row", "column", "message"),
    [(0, 1, "Row 0 is not"), (2, 5, "Column 5 is not"), (2, 3, "Row 2, column 3 is already")],
)
def test_a_cell_that_cannot_be_blocked_is_refused_in_place(ask, row, column, message):
    before = weights(ask, "after")
    block(ask, row, column)
    (error,) = ask.errors
    assert error.startswith(message)
    np.testing.assert_array_equal(weights(ask, "after"), before)


def test_a_cell_that_was_blocked_by_hand_is_not_blocked_again(ask):
    block(ask, 3, 2)
    assert ask.errors == []
    block(ask, 3, 2)
    (error,) = ask.errors
    assert error.startswith("Row 3, column 2 is already")
    block(ask, 3, 2, "column")  # blocks the other cells of the column too
    assert ask.errors == []


def test_forged_choices_do_no_harm(ask):
    before = weights(ask, "before")
    ask.forge("block_what", "everything").forge("block_where", "everywhere").press("block_add")
    np.testing.assert_array_equal(weights(ask, "before"), before)


def test_a_switched_off_head_is_drawn_as_off_only_on_the_right(ask):
    def hatched(side):
        return json.loads(ask._component(f"break_{side}_figure").json)["hatched"]

    layer, head = shown_head(ask)
    ask.set("ablate_heads", [f"decoder {layer + 1} · head {head + 1}"])
    n = len(weights(ask, "after"))
    assert (hatched("before"), hatched("after")) == ([], [[-0.5, n - 0.5, -0.5, n - 0.5]])
    ask.set("ablate_heads", [f"cross {layer + 1} · head {head + 1}"])
    assert hatched("after") == []

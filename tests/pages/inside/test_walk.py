"""Look inside: the walk through one forward pass, on the page."""

from __future__ import annotations

import numpy as np
import pytest

from transformer.anatomy.panels import STAGES, Focus
from transformer.anatomy.positions import position_stages
from transformer.anatomy.stages import stages
from transformer.anatomy.trace import trace
from transformer.config import ModelConfig

POSITION_STAGES = position_stages(ModelConfig())


def opened(visit, **more):
    """The page of an untrained tiny model, by a cold link."""
    return visit(more, page="anatomy")


@pytest.fixture
def walk(revisit):
    """The page of a tiny model of three steps."""
    return revisit().go("anatomy")


def at(visitor):
    """Chapter and stage that are shown."""
    return visitor.value("walk_at")


def formulas(visitor):
    return [element.value.strip("$\n") for element in visitor.at.latex]


def expected(visitor, site, head=0, focus=Focus(row=1, column=None), word=None):  # noqa: B008
    """The stages of the newest snapshot, computed beside the page."""
    view = visitor.run.view
    word = word or visitor.value("word")
    return {s.key: s for s in stages(trace(view.config, view.snapshots[-1], word), site, head, focus)}


def test_next_walks_through_every_stage_of_every_chapter_and_back_to_the_first(walk):
    assert walk.says("**Tokens**")
    seen = []
    for _ in range(3 * len(STAGES) + len(POSITION_STAGES)):
        seen.append(at(walk))
        title = (STAGES | POSITION_STAGES)[seen[-1][1]]
        assert walk.says(f"**{title}**")
        assert len(formulas(walk)) == 2
        assert walk.drawn("anatomy_figure").step == 3
        walk.press("anatomy_next")
    expected_walk = [(chapter, stage) for chapter in ("encoder", "decoder", "cross") for stage in STAGES]
    assert seen == [*expected_walk, *(("positions", stage) for stage in POSITION_STAGES)]
    assert at(walk) == ("encoder", "tokens")
    walk.press("anatomy_prev")
    assert at(walk) == ("positions", "likeness")


@pytest.mark.parametrize(
    ("chapter", "site", "stage"),
    [("encoder", "encoder.0", "feed_forward"), ("decoder", "decoder.0.self", "weights")],
)
def test_the_numbers_on_the_page_are_those_of_the_forward_pass(walk, chapter, site, stage):
    walk.press(f"chapter_{chapter}").set("anatomy_stage", stage)
    head = walk.value("anatomy_head")[1]
    shown = expected(walk, site, head)[stage]
    np.testing.assert_allclose(walk.table("anatomy_figure"), shown.panels[0].values, atol=1e-3)
    assert formulas(walk) == [shown.formula, shown.cell.numbers]
    assert walk.says(shown.sentence)


def test_a_click_on_a_cell_puts_its_numbers_into_the_formula(walk):
    walk.press("chapter_cross").set("anatomy_stage", "scale")
    before = formulas(walk)
    walk.click("anatomy_figure", 0, [2, 4])
    after = formulas(walk)
    assert after[0] == before[0]
    assert after[1] != before[1]
    assert "s_{3,5}" in after[1]
    assert [walk.value(f"focus_{name}") for name in ("row", "column")] == [3, 5]
    walk.press("anatomy_next")  # the cell goes along
    assert "m_{3,5}" in formulas(walk)[1]


def test_a_cell_beyond_the_last_means_the_last_whoever_sends_it(walk):
    walk.press("chapter_cross").set("anatomy_stage", "scores")
    for value in (10**9, -5):
        walk.set("focus_row", value)
        assert walk.errors == []
        assert len(formulas(walk)) == 2
    walk.click("anatomy_figure", 10**6, [2, 4])
    walk.click("anatomy_figure", 0, [99, -1])
    walk.click("anatomy_figure", 0, "here")
    assert walk.errors == []


@pytest.mark.parametrize("late", ["enc 1 · head 2", "no head"])
def test_a_head_of_the_chapter_before_that_arrives_late_changes_nothing(walk, late):
    site, head = walk.press("chapter_cross").value("anatomy_head")
    walk.set("anatomy_head", (site, 1 - head))
    walk.forge("anatomy_head", late)
    assert walk.value("anatomy_head") == (site, 1 - head)
    assert walk.link["head"] == f"{site}.{2 - head}"


def test_any_step_that_has_a_snapshot_and_any_word_is_walked_through(walk):
    walk.set("anatomy_stage", "embedding")
    trained = walk.table("anatomy_figure")
    walk.stand(0)
    assert walk.drawn("anatomy_figure").step == 0
    assert not np.allclose(walk.table("anatomy_figure"), trained)
    assert walk.says("The model of step **0**")
    walk.set("explore_text", "zebra")
    columns = [text for text in walk.drawn("anatomy_figure").layout["yaxis"]["ticktext"] if len(text) == 1]
    assert columns == list("zebra")


def test_a_word_that_cannot_be_asked_is_answered_in_place_and_the_last_stays(walk):
    walk.set("anatomy_stage", "scores")
    before = walk.table("anatomy_figure")
    walk.set("explore_text", "café")
    assert any("é" in error for error in walk.errors)
    np.testing.assert_array_equal(walk.table("anatomy_figure"), before)


@pytest.mark.parametrize(
    ("setting", "value", "stage"),
    [
        ("norm_placement", "post", "residual"),
        ("score_scale", "sqrt_d_model", "scale"),
    ],
)
def test_what_if_the_model_were_arranged_in_another_way(walk, setting, value, stage):
    walk.press("chapter_encoder").set("anatomy_stage", stage)
    numbers, formula = walk.table("anatomy_figure"), formulas(walk)[0]
    walk.set(f"what_if_{setting}", value)
    assert not np.allclose(walk.table("anatomy_figure"), numbers)
    assert formulas(walk)[0] != formula
    assert walk.says("The model was not trained with this setting")
    assert getattr(walk.run.config.model, setting) != value  # the run itself is not touched


@pytest.mark.parametrize(
    ("topology", "chapters"),
    [("encoder-only", ["encoder", "positions"]), ("decoder-only", ["sequence", "positions"])],
)
def test_a_model_of_one_stack_has_one_chapter_and_the_positions(visit, topology, chapters):
    visitor = visit(topology=topology).go("anatomy")
    assert {key for key in visitor.keys if key.startswith("chapter_")} == {f"chapter_{c}" for c in chapters}
    walked = []
    for _ in range(len(STAGES) + len(POSITION_STAGES)):
        walked.append(at(visitor)[0])
        visitor.press("anatomy_next")
    assert list(dict.fromkeys(walked)) == chapters


def test_learned_positions_show_how_far_training_has_moved_them(visit):
    link = {"recipe": "bloem", "width": 8, "heads": 2, "layers_encoder": 1, "steps": 3, "device": "cpu"}
    visitor = visit(link).press("run_start").until("finished").go("anatomy")
    visitor.press("chapter_positions").set("anatomy_stage", "moved")
    steps = len(visitor.run.view.snapshots)
    assert steps >= 4
    moved = visitor.table("anatomy_figure")
    assert moved.shape[1] >= steps  # a column for each snapshot
    assert (np.diff(moved[2]) >= 0).all()  # in three steps the rate only rises: each moves on
    assert moved.max() > 0


def test_the_stage_is_in_the_link_and_a_forged_one_does_no_harm(visit):
    visitor = opened(visit, stage="weights", kind="cross")
    assert at(visitor) == ("cross", "weights")
    assert opened(visit, stage="../../secret").value("anatomy_stage") == "tokens"
    visitor.press("anatomy_next")
    assert visitor.link["stage"] == "mixed"

"""The Masks page: one attention in its batch, and masks that can be switched on and off."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pages.explanations.mask_words import learned_with
from tests.pages.visitor import formulas
from transformer.insight.moments import Moment
from transformer.runs.registry import REGISTRY
from transformer.shared.interventions import Interventions


def keep(visitor, row, column, box="decoder.0.self"):
    """Click a cell of a mask."""
    return visitor.send(
        "player", "cell", {"box": box, "head": 0, "row": row, "column": column, "table": "mask", "how": {}}
    )


@pytest.fixture
def masks(visit):
    """The Masks page of an untrained model that tracks banana, kayak and cat."""
    return visit().go("masks")


def test_the_page_opens_on_the_shortest_word_and_the_attention_that_has_both_masks(visit):
    masks = visit({}, page="masks")
    masks.wait_until(lambda: masks.run.view.frame is not None)
    assert (masks.player["opened"]["box"], masks.value("word")) == ("decoder.1.self", "cat")
    assert masks.player["picture"] == {
        "only": ["scale", "mask", "masked", "weights"],
        "how": {"batch": "1"},
    }
    (batch,) = [text for text in masks.texts if "class='hl-batch'" in text]
    assert batch.count("[PAD]") == 4 + 5 + 7  # of banana, kayak and cat; the other words have no padding


def test_the_masks_page_shows_the_run_on_watch(visit, long):
    visitor = visit(long, seed=6).set("step_size", 2).step()
    run = visitor.run
    visitor.go("masks")
    assert visitor.run is run
    assert visitor.at.query_params["run"] == run.id
    assert visitor.player["answers"] == 2
    assert visitor.progress == "paused at 2 of 100000"


def test_a_typed_word_joins_the_batch_and_a_longer_one_adds_padding_to_the_others(visit):
    visitor = visit().set("own_word", "strawberry")
    visitor.wait_until(lambda: visitor.run.view.frame.words[-1].text == "strawberry")
    keep(visitor.go("masks").set("word", "cat"), row=0, column=11)
    assert "causal and padding mask" in formulas(visitor)[1]


def test_the_masks_page_can_train_a_run_without_a_visit_to_the_watch_page(visit):
    masks = visit({}, page="masks")
    assert masks.run.view.state == "idle"
    masks.press("run_start")
    assert masks.run.view.state in ("queued", "training")
    masks.press("run_stop").until("stopped")


def test_without_the_causal_mask_rows_attend_ahead_and_the_switch_is_recorded_as_a_moment(masks):
    keep(masks.set("word", "banana"), row=0, column=6)
    assert "blocked: causal mask" in formulas(masks)[1]
    masks.set("mask_causal_on", False)
    masks.wait_until(lambda: masks.run.view.masks == {"causal": False, "padding": True})
    assert "(may be read)" in formulas(masks)[1]
    assert masks.says("<b>No causal mask:</b>")
    (moment,) = masks.run.view.moments
    assert (moment.step, moment.text) == (0, "causal mask switched off")
    masks.set("mask_causal_on", True)
    masks.wait_until(lambda: masks.run.view.masks["causal"])
    assert "blocked: causal mask" in formulas(masks)[1]
    assert [moment.text for moment in masks.run.view.moments] == [
        "causal mask switched off",
        "causal mask switched on",
    ]


def test_without_the_padding_mask_pad_columns_have_weight_and_the_page_shows_how_much(masks):
    keep(masks.set("word", "cat"), box="decoder.0.cross", row=0, column=5)
    assert "blocked: padding mask" in formulas(masks)[1]
    masks.set("mask_padding_on", False)
    masks.wait_until(lambda: not masks.run.view.masks["padding"])
    assert "(may be read)" in formulas(masks)[1]
    frame = masks.run.view.frame
    shares = [frame.on_padding(frame.row_of("cat"), site) for site in frame.axes]
    said = next(text for text in masks.texts if "No padding mask" in text)
    assert f"[PAD] gets {np.mean(shares):.0%} of all attention, and {np.max(shares):.0%} of that of" in said


def test_a_mask_is_switched_even_if_the_next_click_opens_another_page(masks):
    masks.at.toggle(key="mask_padding_on").set_value(False)
    masks.go("ask").wait_until(lambda: masks.run.view.masks == {"causal": True, "padding": False})


def test_a_mask_can_be_switched_during_a_run_which_then_continues(visit, long):
    visitor = visit(long).press("run_start").go("masks")
    visitor.wait_until(lambda: visitor.run.view.step >= 30)
    visitor.set("mask_causal_on", False)
    visitor.wait_until(lambda: not visitor.run.view.masks["causal"])
    step = visitor.run.view.step
    (moment,) = [moment for moment in visitor.run.view.moments if "mask" in moment.text]
    assert 30 <= moment.step <= step
    visitor.wait_until(lambda: visitor.run.view.step > step + 30)
    visitor.press("run_stop").until("stopped")  # while it trains, the numbers are newer than the page
    losses = next(text for text in visitor.texts if "hl-losses" in text)
    values = visitor.run.view.metrics
    for column in ("held_out_loss", "free_loss"):
        known = values.column(column)
        assert f"{known[known == known][-1]:.3f}" in losses


@pytest.fixture
def ended(visit):
    """The Masks page of a finished run."""
    return visit().press("run_start").until("finished").go("masks")


def test_a_switch_leaves_a_finished_run_unchanged_and_a_race_trains_a_run_with_the_switched_masks(ended):
    first = ended.run
    words = ended.texts
    ended.set("mask_causal_on", False)
    assert first.view.masks == {"causal": True, "padding": True}
    assert first.view.moments == ()
    assert [text for text in ended.texts if "hl-batch" in text] == [t for t in words if "hl-batch" in t]
    assert ended.value("mask_causal_on") is False
    assert ended.at.button(key="race_start").label == "Race without it"
    ended.set("mask_padding_on", False)
    assert ended.at.button(key="race_start").label == "Race with these masks"
    ended.set("mask_padding_on", True).press("race_start")
    second = REGISTRY.get(ended.at.query_params["race"])
    assert ended.at.query_params["run"] == first.id
    assert second.config == first.config.with_changes(causal_mask=False)
    ended.wait_until(lambda: second.view.state == "finished")
    assert second.view.moments == first.view.moments == ()


def test_a_mask_switched_during_training_is_reported_and_a_new_run_has_it_from_the_start(visit, long):
    visitor = visit(long).set("step_size", 4).step().go("masks")
    visitor.set("mask_causal_on", False)
    visitor.wait_until(lambda: not visitor.run.view.masks["causal"])
    assert visitor.says(
        "The causal mask of this run has been off since step 4. To see what a model learns without it"
    )
    visitor.press("run_stop").until("stopped")
    assert visitor.at.button(key="run_start").label == "New run"
    first = visitor.run
    visitor.press("run_start").wait_until(lambda: visitor.run is not first)
    assert visitor.run.config.model.masks == {"causal": False, "padding": True}  # as the switch says
    visitor.press("run_stop")


@pytest.mark.parametrize(
    ("texts", "step"),
    [
        ([], None),  # switched, but its moment is not published yet
        (["causal mask switched off"], 2),
        (["causal mask switched off", "switched off cross-attention layer 1, head 1; causal mask off"], 2),
        (["causal mask switched off", "causal mask switched on", "causal mask switched off"], 6),
        (["causal mask switched off", "padding mask switched off"], 2),
        (["causal mask switched off", "no interventions", "padding mask off; causal mask off"], 6),
    ],
)
def test_a_mask_is_said_to_be_off_since_its_last_switch(make_run, tiny, texts, step):
    moments = tuple(Moment(2 * i, "intervention", text) for i, text in enumerate(texts, 1))
    off = Interventions(masks=(("causal", False),))
    now = replace(make_run(tiny()).view, step=8, moments=moments, interventions=off)
    expected = f"The causal mask of this run has been off since step {step}." if step else ""
    assert learned_with(now).partition(" To see")[0] == expected


def test_a_mean_map_chosen_just_before_masks_opens_is_not_offered_there(visit, long):
    visitor = visit(long, letters=6).set("step_size", 1).step()
    mean = visitor.run.task.mean(5).text
    visitor.at.session_state["typed_word"] = visitor.run.id, mean
    visitor.at.session_state["word"] = mean
    visitor.go("masks")
    assert mean not in visitor.at.session_state["word"]
    assert visitor.errors == []


def test_an_encoder_only_model_can_be_given_a_causal_mask(visit):
    visitor = visit(topology="encoder-only").go("masks")
    assert visitor.value("mask_causal_on") is False
    visitor.set("mask_causal_on", True)
    visitor.wait_until(lambda: visitor.run.view.masks["causal"])
    assert visitor.says("<b>Causal mask on an encoder:</b>")
    keep(visitor, box="encoder.0", row=0, column=1)
    assert "blocked: causal mask" in formulas(visitor)[1]

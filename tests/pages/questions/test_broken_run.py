"""Heads switched off and cells blocked on Break are applied to the run, which trains on with them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.pages.questions.conftest import block, caption, separate_model, shown_head, weights
from transformer.errors import InputError
from transformer.runs.registry import REGISTRY
from transformer.shared.interventions import NO_INTERVENTIONS, Block, Interventions


def test_changes_made_on_break_can_be_applied_to_the_run(ask):
    run = ask.run
    ask.set("ablate_heads", ["cross 2 · head 3"])
    block(ask, 3, 2)
    layer, head = shown_head(ask)
    ask.press("intervene_run")
    assert ask.errors == []
    in_force = Interventions(
        ablated=(("decoder.1.cross", 2),),
        blocked=(Block(site=f"decoder.{layer}.self", head=head, row=2, column=1),),
    )
    assert run.view.interventions == in_force
    (moment,) = run.view.moments
    assert (moment.step, moment.kind, moment.text) == (5, "intervention", in_force.text())
    assert ask.says(f"Active in the run: {in_force.text()}.")
    assert run.view.frame.interventions == in_force
    assert run.view.state == "paused"
    ask.go("watch").step()
    assert ask.run.view.frame.interventions == in_force
    assert run.view.step == 10
    ask.go("ask").tab("Break").press("intervene_none")
    assert run.view.interventions == NO_INTERVENTIONS
    assert [moment.text for moment in run.view.moments] == [in_force.text(), "no interventions"]
    assert "intervene_none" not in ask.keys


def test_a_change_is_applied_to_the_run_even_if_the_next_click_opens_another_page(ask):
    ask.set("ablate_heads", ["cross 2 · head 3"])
    ask.at.button(key="intervene_run").click()
    ask.go("watch")
    assert ask.run.view.interventions == Interventions(ablated=(("decoder.1.cross", 2),))


def test_blocks_that_would_close_a_whole_row_of_a_short_word_are_not_applied_to_the_run(ask):
    ask.set("kind", "encoder")
    for column in (1, 2, 3):
        block(ask, 1, column, "column", "site")
    assert ask.errors == []  # the map of owl has two more columns
    assert np.isnan(weights(ask, "after")).tolist() == [[True] * 3 + [False] * 2] * 5
    ask.press("intervene_run")
    (error,) = ask.errors
    assert "may look at 3 of 3 columns" in error
    assert ask.run.view.interventions == NO_INTERVENTIONS
    assert ask.run.view.moments == ()
    ask.press("unblock_2").press("intervene_run")
    assert ask.errors == []
    assert len(ask.run.view.interventions.blocked) == 2


def test_no_change_can_be_applied_to_a_run_that_has_not_started(visit):
    ask = visit().go("ask").tab("Break")
    assert not ask.enabled("intervene_run")


def test_a_finished_run_trains_on_without_a_head_at_the_stated_learning_rate(visit):
    ask = visit(steps=4, learning_rate=0.008).press("run_start").until("finished")
    run = ask.run
    ask.go("ask").tab("Break").go_to_step(2).set("ablate_heads", ["cross 1 · head 2"])
    assert run.view.interventions == NO_INTERVENTIONS  # only the answer changes, not the run
    label = ask.at.button(key="intervene_run").label
    assert label == "Continue with these changes: 100 steps, learning rate up to 0.004"
    ask.press("intervene_run")
    moment = next(moment for moment in run.view.moments if moment.kind == "intervention")
    assert moment.step == 4  # the run's last step, whatever step is on the screen
    assert ask.player["first"]["step"] is None  # LIVE
    ask.wait_until(lambda: run.view.step == 104).until("finished")
    rates = run.view.metrics.column("learning_rate")[4:]
    assert len(rates) == 100
    assert rates.max() == pytest.approx(0.004)
    assert rates[0] < rates.max() > rates[-1]
    assert run.view.frame.interventions == Interventions(ablated=(("decoder.0.cross", 1),))
    assert ask.errors == []


def test_a_finished_run_that_may_not_go_on_is_not_changed(visit, monkeypatch):
    ask = visit().press("run_start").until("finished").go("ask").tab("Break")
    ask.set("ablate_heads", ["cross 1 · head 2"])
    before = ask.run.view

    def refuse(visitor, run):
        raise InputError("You have too many unfinished runs.")

    monkeypatch.setattr(REGISTRY, "admit", refuse)
    ask.press("intervene_run")
    assert ask.errors == ["You have too many unfinished runs."]
    after = ask.run.view
    assert (after.interventions, after.reason, after.moments) == (
        NO_INTERVENTIONS,
        before.reason,
        before.moments,
    )


def test_a_head_switched_off_in_the_run_is_also_off_on_the_left(visit):
    ask = visit(steps=1000).set("step_size", 3).step()
    off = Interventions(ablated=(("decoder.0.cross", 0),))
    ask.run.intervene(off).result(10)
    ask.set("step_size", 2).step().go("ask").tab("Break")
    answer = separate_model(ask, 5, off).answer("banana")
    assert any(
        np.allclose(weights(ask, "before"), one, atol=1e-4) for one in answer.forced.maps["decoder.0.cross"]
    )
    assert f"→ <b>{answer.output or '(nothing)'}" in caption(ask, "before")
    assert np.array_equal(weights(ask, "before"), weights(ask, "after"))

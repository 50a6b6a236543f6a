"""The commands of a run from Start to its end, and how the page shows them."""

from __future__ import annotations

import numpy as np


def losses(visitor):
    return visitor.run.view.metrics.column("loss").tolist()


def buttons(visitor):
    return {key: visitor.enabled(f"run_{key}") for key in ("start", "pause", "step", "stop")}


def test_start_trains_the_model_on_the_screen_and_ends_as_finished(visit, trained_alone):
    visitor = visit()
    draft = visitor.run
    visitor.press("run_start").until("finished")
    assert visitor.run is draft
    assert visitor.at.query_params["run"] == draft.id
    assert visitor.progress == "finished at 3 of 3"
    assert visitor.news["status"].startswith(
        "✔ <b>finished</b><span class='detail'> · all steps done</span> · "
    )
    assert losses(visitor) == trained_alone(draft.config, 3)
    assert visitor.news["newest"] == 3


def test_the_buttons_follow_the_state_of_the_run(visit, slow):
    visitor = visit(slow).press("run_start").until("training")
    assert buttons(visitor) == {"start": False, "pause": True, "step": True, "stop": True}
    assert visitor.at.button(key="run_pause").label == "Pause"
    visitor.press("run_pause").until("paused")
    assert buttons(visitor) == {"start": True, "pause": False, "step": True, "stop": True}
    assert visitor.at.button(key="run_start").label == "Resume"
    visitor.press("run_start").until("training")
    visitor.press("run_stop").until("stopped")
    assert buttons(visitor) == {"start": True, "pause": False, "step": False, "stop": False}
    assert visitor.at.button(key="run_start").label == "New run"
    assert "run_continue" in visitor.keys
    assert f"Stopped at step {visitor.run.view.step:,}." in visitor.headline


def test_a_command_takes_effect_even_if_the_next_click_opens_another_page(visit, slow):
    visitor = visit(slow).press("run_start").until("training")

    def leave_with(key, state):
        visitor.at.button(key=key).click()
        visitor.go("ask").until(state).go("watch")

    leave_with("run_pause", "paused")
    visitor.at.number_input(key="step_size").set_value(2)
    leave_with("run_step", "training")
    visitor.at.selectbox(key="pace").set_value("as fast as it can")
    visitor.go("ask").until("paused").go("watch")
    assert visitor.run.view.pace is None
    step = visitor.run.view.step
    leave_with("run_start", "training")
    assert visitor.run.view.step > step
    leave_with("run_stop", "stopped")
    leave_with("run_continue", "training")
    visitor.press("run_stop")


def test_step_takes_the_number_of_steps_in_the_box_and_records_each(visit, trained_alone):
    visitor = visit(steps=50).set("step_size", 3).step()
    assert visitor.run.view.step == 3
    assert visitor.run.view.frames.steps == (0, 1, 2, 3)
    visitor.set("step_size", 1).step()
    assert visitor.run.view.step == 4
    assert losses(visitor) == trained_alone(visitor.run.config, 4)


def test_an_impossible_number_of_steps_is_refused_in_place(visit):
    visitor = visit().set("step_size", -1).press("run_step")
    assert visitor.errors == ["-1 steps are not possible; choose from 1 to 100,000."]
    assert visitor.run.view.step == 0


def test_the_pace_applies_from_the_start_and_can_be_changed_during_training(visit, slow):
    visitor = visit(slow).press("run_start").until("training")
    assert visitor.run.view.pace == 1.0
    visitor.set("pace", "as fast as it can").wait_until(lambda: visitor.run.view.step >= 20)
    assert visitor.run.view.pace is None


def test_a_finished_run_continues_at_a_stated_learning_rate(visit):
    visitor = visit().press("run_start").until("finished")
    rate = f"continue_rate_{visitor.run.id}"
    assert visitor.value(rate) == 0.0025  # half of the previous rate
    visitor.fill({"continue_steps": 4, rate: 0.001}).press("run_continue")
    visitor.wait_until(lambda: visitor.run.view.step == 7).until("finished")
    assert " at 7 of 7" in visitor.progress
    rates = visitor.run.view.metrics.column("learning_rate")
    assert len(rates) == 7
    assert 0 < rates[3:].max() <= 0.001
    visitor.set("continue_steps", 0).press("run_continue")
    assert visitor.errors == ["0 steps are not possible; choose from 1 to 100,000."]
    visitor.set("continue_steps", 5).set(rate, -1.0).press("run_continue")
    assert visitor.errors == ["Learning rate: -1 cannot be used; choose more than 0."]
    assert visitor.run.view.state == "finished"


def test_each_run_of_the_list_continues_at_half_of_its_own_learning_rate(visit):
    visitor = visit(learning_rate=0.004).press("run_start").until("finished")
    first = visitor.run
    visitor.set("learning_rate", 0.0001).press("run_start")
    second = visitor.wait_until(lambda: visitor.run is not first).until("finished").run
    visitor.press(f"show_{first.id}").press("run_continue").wait_until(lambda: first.view.step > 3).until(
        "finished"
    )
    assert 0.001 < first.view.metrics.column("learning_rate")[3:].max() <= 0.002
    visitor.press(f"show_{second.id}").press("run_continue").wait_until(lambda: second.view.step > 3).until(
        "finished"
    )
    assert 0 < second.view.metrics.column("learning_rate")[3:].max() <= 0.00005


def test_editing_settings_during_a_run_changes_nothing_and_lists_the_differences(visit, long, trained_alone):
    visitor = visit(long).set("step_size", 3).step()
    config = visitor.run.config
    visitor.fill({"width": 16, "learning_rate": 0.5, "seed": 3})
    assert visitor.says(
        "**Changed:** width 8 → 16, learning rate 0.005 → 0.5, seed 0 → 3. This run keeps its settings."
    )
    assert visitor.at.button(key="run_start").label == "New run"
    assert visitor.enabled("run_start")
    visitor.step()
    assert visitor.run.config == config
    assert visitor.run.view.step == 6
    assert losses(visitor) == trained_alone(config, 6)
    visitor.fill({"width": 8, "learning_rate": 0.005, "seed": 0})
    assert not visitor.says("**Changed:**")


def test_a_paused_run_can_resume_after_settings_were_changed(visit, long):
    visitor = visit(long).step()
    run = visitor.run
    assert visitor.at.button(key="run_start").label == "Resume"
    visitor.set("seed", 5)
    assert visitor.at.button(key="run_start").label == "New run"
    assert visitor.at.button(key="run_pause").label == "Resume"
    visitor.press("run_pause").until("training")
    assert visitor.run is run
    visitor.press("run_stop")


def test_an_impossible_setting_during_a_run_is_refused_and_the_run_continues(visit, slow):
    visitor = visit(slow).press("run_start").until("training")
    run, step = visitor.run, visitor.run.view.step
    visitor.set("heads", 3)
    assert visitor.errors[0].startswith("Width: 8 cannot be split into 3 equal heads")
    assert not visitor.enabled("run_start")
    assert visitor.enabled("run_stop")
    visitor.wait_until(lambda: run.view.step > step)
    assert run.view.state == "training"


def test_the_learning_rate_can_be_changed_during_a_run(visit, long, trained_alone):
    visitor = visit(long).set("step_size", 3).step()
    assert "run_learning_rate" not in visitor.keys
    visitor.set("learning_rate", 0.5)
    assert visitor.says("**Changed:** learning rate 0.005 → 0.5. This run keeps its settings.")
    visitor.press("run_learning_rate").wait_until(lambda: visitor.run.view.learning_rate == 0.5)
    visitor.step()
    config, rates = visitor.run.config, visitor.run.view.metrics.column("learning_rate")
    # The fourth loss is that of the weights after three steps.
    assert losses(visitor)[:4] == trained_alone(config, 4)
    assert losses(visitor)[4:] != trained_alone(config, 6)[4:]
    rise = rates[2] / 3  # one step of the warm-up
    np.testing.assert_allclose(rates[:3], [rise, 2 * rise, 3 * rise], rtol=1e-6)
    np.testing.assert_allclose(rates[3:], [400 * rise, 500 * rise, 600 * rise], rtol=1e-6)


def test_a_new_run_leaves_the_old_one_unchanged_and_draws_old_losses_as_a_ghost(visit, long, trained_alone):
    visitor = visit(long).set("step_size", 3).step()
    old = visitor.run
    visitor.fill({"seed": 4, "steps": 5}).press("run_start")
    new = visitor.run
    assert new is not old
    assert new.view.after == old.id
    visitor.until("finished")
    assert (old.view.state, old.view.step, old.config.seed) == ("paused", 3, 0)
    assert losses(visitor) == trained_alone(new.config, 5)
    np.testing.assert_allclose(visitor.player["ghost"]["0.y"], trained_alone(old.config, 3), atol=1e-5)
    assert not visitor.says("**Changed:**")

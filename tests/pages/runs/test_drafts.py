"""An idle first visit shows a recording of the default settings, until the visitor does something."""

from __future__ import annotations

import pytest

from transformer.runs.demo import demo_run


@pytest.fixture
def first_visit(visit, monkeypatch):
    """The app without a run in the link, on a server that shows its recording."""
    monkeypatch.delenv("HEADLIGHT_RECORDING")
    demo_run.cache_clear()
    yield lambda **link: visit({}, **link)
    demo_run.cache_clear()


def test_the_first_page_shows_the_recording_and_labels_it_as_such(first_visit):
    visitor = first_visit()
    assert visitor.progress == "recorded at 225 of 300"
    assert visitor.headline.startswith("A recording. Press Start to train this model now.")
    assert visitor.player["run"] == demo_run().id
    assert (visitor.news["state"], visitor.news["newest"]) == ("recorded", 225)
    assert "run" not in visitor.link
    assert visitor.enabled("run_start")


def test_past_steps_of_the_recording_can_be_viewed_on_every_page(first_visit):
    visitor, step = first_visit(), demo_run().view.snapshots[2].step
    visitor.go_to_step(step)
    assert visitor.player["first"]["step"] == step
    visitor.go("ask")
    assert f"· step {step} ·" in visitor.drawn("explore_map_figure").changing["title.text"]
    visitor.go("inside")
    assert visitor.player["answers"] == step


def test_start_trains_the_visitor_s_own_model_from_its_first_step(first_visit):
    visitor = first_visit()
    visitor.go_to_step(50)
    visitor.press("run_start")
    assert visitor.run.id != demo_run().id
    visitor.wait_until(lambda: visitor.run.view.step > 2)
    assert visitor.run.view.metrics.column("step")[0] == 1
    assert visitor.player["run"] == visitor.run.id
    visitor.press("run_stop")


def test_step_trains_the_visitor_s_own_model(first_visit):
    visitor = first_visit()
    visitor.step()
    assert visitor.progress == "paused at 1 of 300"


def test_a_recorded_word_brings_the_recording_back_and_its_model_answers_any_word(first_visit):
    visitor = first_visit()
    visitor.set("own_word", "lantern")
    visitor.wait_until(lambda: visitor.run.view.frame.words[-1].text == "lantern")
    assert visitor.progress == "idle at 0 of 300"
    assert visitor.headline.startswith("Untrained. “lantern” is shown for your own model")
    visitor.go("ask")
    assert visitor.value("explore_text") == "lantern"
    assert "· step 225 ·" in visitor.drawn("explore_map_figure").changing["title.text"]
    visitor.go("watch")
    visitor.choose(word="banana")
    assert visitor.progress == "recorded at 225 of 300"
    assert visitor.player["over"] is None
    assert visitor.player["more"] == ["lantern"]  # its button stays
    visitor.choose(word="lantern")
    assert visitor.progress == "idle at 0 of 300"
    assert visitor.player["more"] == []


def test_invalid_settings_show_no_recording_and_train_nothing(first_visit):
    visitor = first_visit(width=33)
    assert visitor.player["run"] == visitor.run.id
    assert not visitor.enabled("run_start")
    assert not visitor.enabled("run_step")


def test_changed_settings_show_their_own_model_and_restored_ones_show_the_recording_again(
    first_visit,
):
    visitor = first_visit()
    visitor.set("seed", 4)
    assert "idle" in visitor.status
    visitor.set("seed", 0)
    assert "recorded" in visitor.status


def test_a_switched_off_mask_shows_the_model_without_it_instead_of_the_recording(first_visit):
    visitor = first_visit()
    visitor.go("masks")
    visitor.wait_until(lambda: visitor.run.view.frame is not None)
    visitor.set("mask_causal_on", False)
    visitor.wait_until(lambda: visitor.run.view.interventions.masks)
    visitor.go("watch")
    assert visitor.progress == "idle at 0 of 300"

"""Failures are reported in place, and nothing that was trained is lost."""

from __future__ import annotations

import pytest

from transformer.runs.registry import REGISTRY
from transformer.tasks import Task
from transformer.training import device

NO_DEVICE = "This machine has no {} device; it has cpu. Choose auto or one of these."
LOST = "The run of this link is no longer on this server. Press Start to train your own."


def test_a_run_that_diverges_reports_it_and_keeps_its_frames(visit):
    visitor = visit(steps=50, learning_rate=1e30).press("run_start").until("failed")
    assert visitor.headline.startswith("The run failed. At step ")
    assert visitor.headline.endswith("Start again with a lower learning rate.")
    assert "✖ failed" in visitor.status
    assert visitor.news["newest"] == visitor.run.view.frames[-1].step
    assert visitor.enabled("run_start")
    assert not visitor.enabled("run_pause")
    assert not visitor.enabled("run_stop")
    assert "run_continue" not in visitor.keys  # there is nothing to continue from
    visitor.fill({"learning_rate": 0.01, "steps": 2}).press("run_start").until("finished")
    assert visitor.errors == []


def test_an_error_in_the_training_is_shown_with_its_reason(visit, monkeypatch):
    batch = Task.batch

    def broken(task, seed, k):
        if k == 2:
            raise RuntimeError("the letters have run out")
        return batch(task, seed, k)

    monkeypatch.setattr(Task, "batch", broken)
    visitor = visit(steps=50).press("run_start").until("failed")
    assert visitor.headline == "The run failed. RuntimeError: the letters have run out"
    assert " at 2 of 50" in visitor.progress
    assert visitor.news["newest"] == 2
    assert "failed at 2" in visitor.at.button(key=f"show_{visitor.run.id}").label


def test_a_missing_device_is_refused_in_place_and_a_training_run_continues(visit, slow, monkeypatch):
    monkeypatch.setattr(device, "available_devices", lambda: ("cpu",))
    visitor = visit(slow).press("run_start").until("training")
    training, step = visitor.run, visitor.run.view.step
    visitor.set("device", "cuda")
    assert visitor.errors == [NO_DEVICE.format("cuda")]
    assert not visitor.enabled("run_start")
    assert "training" in visitor.status
    visitor.wait_until(lambda: training.view.step > step)
    assert visitor.run is training
    visitor.set("device", "auto")
    assert visitor.errors == []
    assert visitor.says("**Changed:** device cpu → auto. This run keeps its settings.")


def test_a_missing_device_in_the_link_is_refused_and_can_be_corrected(visit, monkeypatch):
    monkeypatch.setattr(device, "available_devices", lambda: ("cpu",))
    visitor = visit(device="mps")
    assert visitor.errors == [NO_DEVICE.format("mps")]
    assert not visitor.enabled("run_start")
    visitor.set("device", "cpu")
    assert visitor.errors == []
    assert "idle" in visitor.status
    assert visitor.run.config.device == "cpu"


def test_a_device_that_disappears_after_it_was_chosen_fails_only_the_new_run(visit, slow, monkeypatch):
    visitor = visit(slow).press("run_start").until("training")
    training, step = visitor.run, visitor.run.view.step
    monkeypatch.setattr(device, "available_devices", lambda: ())
    other = visit(seed=90_210).until("failed")  # the untrained model of no other test
    assert other.headline == (
        "The run failed. This machine has no cpu device; it has . Choose auto or one of these."
    )
    visitor.wait_until(lambda: training.view.step > step)
    assert training.view.state == "training"


def test_a_link_to_a_missing_run_reports_it_and_offers_a_new_run(visit):
    visitor = visit(run="no-such-run")
    for _ in range(2):  # the message stays when the page is drawn again
        assert [info.value for info in visitor.at.info] == [LOST]
        assert "idle" in visitor.status
        assert "run" not in visitor.at.query_params
        visitor.look()
    visitor.press("run_start").until("finished")
    assert len(visitor.at.info) == 0
    assert visitor.at.query_params["run"] == visitor.run.id


@pytest.mark.parametrize("page", ["ask", "inside", "masks"])
def test_every_page_reports_that_the_run_of_a_link_is_gone(visit, page):
    visitor = visit(run="no-such-run").go(page)
    (said,) = [info.value for info in visitor.at.info]
    assert said.startswith("The run of this link is no longer on this server. ")
    assert "nother model" in said


def test_a_run_removed_while_it_is_watched_is_reported_and_its_settings_stay(visit):
    visitor = visit(seed=3).press("run_start").until("finished")
    run = visitor.run
    REGISTRY._runs.pop(run.id).close()  # as after too many runs or a restart of the server
    visitor.look()
    assert [info.value for info in visitor.at.info] == [LOST]
    assert "idle" in visitor.status
    assert visitor.run is not run
    assert visitor.run.config == run.config


def test_a_missing_run_does_not_hide_the_run_that_is_opened_next(visit):
    other = visit(seed=2).press("run_start").until("finished").run
    visitor = visit(run="no-such-run")
    visitor.at.query_params["run"] = other.id
    visitor.look()
    assert visitor.run is other
    assert len(visitor.at.info) == 0

"""A run is downloaded as one file and opened by another visitor, who views it and continues its training."""

from __future__ import annotations

import pytest

from transformer.runs.demo import OF_STORIES
from transformer.runs.registry import REGISTRY
from transformer.storage.library import Library


@pytest.fixture(autouse=True)
def kept(monkeypatch, tmp_path):
    """A server that saves its runs in a folder."""
    monkeypatch.setattr(REGISTRY, "library", Library(tmp_path / "runs"))


def bring(visitor, data, name="run.headlight"):
    uploader = next(box for box in visitor.at.get("file_uploader") if box.key == "run_open")
    uploader.upload(name, data, "application/vnd.sqlite3")
    return visitor.look()


def test_a_run_goes_from_one_visitor_to_another_as_a_file_and_continues_there(visit, offered):
    one = visit(seed=5, steps=40)
    one.set("step_size", 7)
    one.step()
    first = one.run
    assert offered["run_download"]["file_name"] == "headlight-seed5.headlight"
    one.wait_until(lambda: (kept := REGISTRY.library.facts_of_run(first.id)) is not None and kept.step == 7)
    data = offered["run_download"]["data"]()

    other = bring(visit({}), data)
    assert other.run.id != first.id
    assert other.link["run"] == other.run.id
    assert other.value("seed") == 5
    other.wait_until(lambda: other.run.ready.is_set())
    assert other.progress == "paused at 7 of 40"
    assert other.news["newest"] == 7
    other.press("run_start").until("finished")
    assert other.run.view.step == 40
    assert first.view.step == 7


def test_an_unreadable_file_is_reported_beside_the_uploader_and_changes_nothing(visit):
    visitor = visit()
    run = visitor.run
    bring(visitor, b"no archive at all")
    (error,) = visitor.errors
    assert error.startswith("This file is damaged or no run of Headlight")
    assert "file is not a database" in error
    assert visitor.run is run


def test_the_uploader_states_its_size_limit_and_is_on_every_page_with_runs(visit):
    visitor = visit()
    for page in ("watch", "ask", "inside", "masks"):
        visitor.go(page)
        (uploader,) = [box for box in visitor.at.get("file_uploader") if box.key == "run_open"]
        assert uploader.proto.help.startswith("Up to 64 MB.")
        assert uploader.proto.max_upload_size_mb == 64


def test_a_replay_can_be_viewed_but_not_trained(visit, make_run, tiny):
    run = make_run(tiny())
    run.start()
    assert run.wait(60)
    visitor = bring(visit(), REGISTRY.file_of(run))
    assert visitor.progress == "finished at 8 of 8"
    assert visitor.says("Somebody else’s run.")
    assert "run_continue" not in visitor.keys
    assert not visitor.enabled("run_pause")
    visitor.go_to_step(0)
    assert visitor.player["first"]["step"] == 0


def test_ask_says_that_a_recording_without_weights_cannot_be_asked(visit):
    visitor = bring(visit({}), OF_STORIES["no-causal-mask"].read_bytes())
    weights = next(b for b in visitor.at.get("download_button") if b.key == "export_weights").proto
    assert (weights.disabled, weights.help) == (True, "No weights of this run are kept.")
    visitor.go("ask")
    assert visitor.errors == ["No weights of this run are kept, so its model cannot be asked."]
    assert not visitor.says("Building the untrained model")
    visitor.tab("Break").press("block_add")
    assert set(visitor.errors) == {"No weights of this run are kept, so its model cannot be asked."}

"""A run on disk: complete, readable files that are kept up to date, and disk errors that are reported."""

from __future__ import annotations

import json
import time
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from tokenizers import Tokenizer

from tests.conftest import facts_of
from tests.storage.conftest import finished_run
from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.storage import archive as module
from transformer.storage.archive import Archive
from transformer.storage.saved import read_run


def is_whole(folder, view):
    """Assert that the folder holds all that the view has, and return True."""
    table = pd.read_parquet(folder / "metrics.parquet")
    assert table["loss"].tolist() == view.metrics.column("loss").tolist()
    assert (facts_of(folder)["state"], facts_of(folder)["step"]) == (view.state, view.step)
    found = read_run(folder).view
    assert found.frames.steps == view.frames.steps
    assert [one.step for one in found.snapshots] == [one.step for one in view.snapshots]
    return True


@pytest.fixture(scope="module")
def archived(tiny_run, tmp_path_factory):
    """A finished run and its folder."""
    folder = tmp_path_factory.mktemp("runs") / "first"
    config = tiny_run.with_changes(steps=60, evaluate_every=20)
    return finished_run(config, folder, words=("frog", "ox")), folder


def test_the_folder_holds_the_whole_run_and_no_partial_files(archived):
    run, folder = archived
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*")) == [
        "frames.bin",
        "metrics.parquet",
        "run.json",
        "run.lock",
        "src_tokenizer.json",
        "tgt_tokenizer.json",
        "training.safetensors",
        "weights.bin",
    ]
    assert is_whole(folder, run.view)


def test_run_json_holds_the_configuration_and_the_final_state(archived):
    run, folder = archived
    facts, view = facts_of(folder), run.view
    assert RunConfig.from_json(json.dumps(facts.pop("config"))) == view.config
    assert facts.pop("kept") > 0
    assert facts == {
        "format": 3,
        "id": run.id,
        "state": "finished",
        "reason": view.reason,
        "step": 60,
        "planned": 60,
        "seconds": view.seconds,
        "pace": None,
        "learning_rate": 0.005,
        "device": "cpu",
        "threads": 1,
        "parameters": view.parameters,
        "first_step_at": {},
        "goal_reached": False,
        "everyday": list(view.everyday),
        "turned_at": None,
        "after": None,
        "name": "",
        "own": None,
        "right": list(view.right),
        "every": 1,
        "moments": [asdict(moment) for moment in view.moments],
        "interventions": {"ablated": [], "blocked": [], "masks": []},
        "words": ["frog", "ox"],
    }


def test_pandas_reads_the_table_and_tokenizers_reads_the_tokenizer_files(archived):
    run, folder = archived
    table = pd.read_parquet(folder / "metrics.parquet")
    assert table["step"].tolist() == list(range(1, 61))
    pd.testing.assert_frame_equal(table, run.view.metrics.table())
    assert table["exact"].notna().tolist() == [step % 20 == 0 for step in range(1, 61)]
    for side in ("src", "tgt"):
        loaded = Tokenizer.from_file(str(folder / f"{side}_tokenizer.json"))
        assert loaded.encode("frog").ids == run.task.src_tokenizer.encode(["frog"])[0]


def test_a_run_is_on_disk_before_it_is_started(tiny, make_run, until, tmp_path):
    run = make_run(tiny(), archive=Archive(tmp_path / "run"), every_step=False)
    until(lambda: (tmp_path / "run" / "run.json").exists())
    facts = facts_of(tmp_path / "run")
    assert (facts["state"], facts["step"], facts["id"]) == ("idle", 0, run.id)
    assert is_whole(tmp_path / "run", run.view)


def test_a_run_that_has_already_taken_steps_can_be_saved_from_then_on(tiny, make_run, until, tmp_path):
    run = make_run(tiny(steps=12), every_step=False)
    run.advance(7).result(20.0)
    assert run.wait(20)
    run.keep_in(Archive(tmp_path / "run")).result(20.0)
    until(lambda: (tmp_path / "run" / "run.json").exists())
    assert facts_of(tmp_path / "run")["step"] == 7
    assert read_run(tmp_path / "run").view.frames.steps == tuple(range(8))
    run.resume()
    until(lambda: run.view.state == "finished")
    run.close()
    run.join()
    assert is_whole(tmp_path / "run", run.view)


def test_frames_and_weights_that_a_run_thins_out_are_removed_from_its_folder_too(tiny, tmp_path, monkeypatch):
    """Frames and weights stay within their limits, and the folder lists exactly those that are left."""
    monkeypatch.setattr("transformer.runs.run_recording.MEMORY_LIMIT", 60_000)
    monkeypatch.setattr("transformer.recording.weights.DISK_LIMIT", 1_000_000)
    monkeypatch.setattr(module, "KEPT_SECONDS", 0.05)
    run = finished_run(tiny(steps=150, evaluate_every=150), tmp_path / "run")
    assert len(run.view.frames) < 100
    assert (tmp_path / "run" / "weights.bin").stat().st_size < 1_200_000
    assert is_whole(tmp_path / "run", run.view)
    snapshots = read_run(tmp_path / "run").view.snapshots
    assert {0, 150} <= {one.step for one in snapshots}
    assert len(snapshots) < 75
    assert all(one.weights for one in snapshots)


def test_a_folder_that_is_not_empty_is_refused_and_left_unchanged(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(InputError, match="is not empty") as refused:
        Archive(tmp_path)
    assert refused.value.field == "out"
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_folder_whose_run_was_killed_before_it_was_saved_takes_another_run(tiny, make_run, until, tmp_path):
    folder = tmp_path / "run"
    first = Archive(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["run.lock", "writer.json"]
    with pytest.raises(InputError, match="^Another process is training the run in "):
        Archive(folder)
    first.close()
    run = make_run(tiny(), archive=Archive(folder), every_step=False)
    run.start()
    until(lambda: run.view.state == "finished" and run.kept)
    assert facts_of(folder)["state"] == "finished"


def test_a_run_that_fails_leaves_its_reason_and_its_losses_on_disk(tiny, make_run, until, tmp_path):
    run = make_run(tiny(learning_rate=1e30), archive=Archive(tmp_path / "run"))
    run.start()
    until(lambda: run.view.state == "failed")
    run.join()
    assert facts_of(tmp_path / "run")["reason"] == run.view.reason
    assert is_whole(tmp_path / "run", run.view)


def test_a_run_hands_the_archive_its_view_at_the_set_interval(tiny, make_run, until, tmp_path, monkeypatch):
    handed = []
    hand = Archive.hand

    def noted(archive, view, *others):
        handed.append((view.step, time.monotonic()))
        hand(archive, view, *others)

    monkeypatch.setattr(Archive, "hand", noted)
    monkeypatch.setattr(module, "KEPT_SECONDS", 0.1)
    config = tiny(steps=10_000, evaluate_every=10_000)
    run = make_run(config, archive=Archive(tmp_path / "run"), every_step=False)
    run.start()
    until(lambda: len(handed) > 5)
    run.close()
    run.join()
    steps, times = zip(*handed, strict=True)
    assert steps[0] == 0
    assert list(steps[:-1]) == sorted(set(steps[:-1]))
    assert min(np.diff(times)[:-1]) >= 0.1  # the last was handed over because the run was closed
    assert facts_of(tmp_path / "run")["step"] == steps[-1] == run.view.step


# Disk errors.


@pytest.mark.parametrize("name", ["append", "sync", "write_whole"])
def test_a_run_on_a_full_disk_finishes_in_memory_reports_it_and_is_saved_later(
    tiny, make_run, until, losses, tmp_path, monkeypatch, name
):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    writes = getattr(module, name)
    monkeypatch.setattr(module, "AGAIN_SECONDS", 0.05)
    run = make_run(tiny(), archive=Archive(tmp_path / "run"), every_step=False)
    until(lambda: (tmp_path / "run" / "run.json").exists())
    monkeypatch.setattr(module, name, full)
    run.start()
    until(lambda: run.view.state == "finished" and run.view.unsaved)
    assert run.view.metrics.column("loss").tolist() == losses(tiny())
    assert "are not on disk (No space left on device)" in run.view.unsaved
    assert facts_of(tmp_path / "run")["state"] == "idle"
    monkeypatch.setattr(module, name, writes)
    until(lambda: not run.view.unsaved)
    assert facts_of(tmp_path / "run")["state"] == "finished"
    assert is_whole(tmp_path / "run", run.view)


def test_a_programming_error_while_saving_is_reported_and_ends_no_run(
    tiny, make_run, until, tmp_path, monkeypatch
):
    def wrong(*_):
        raise TypeError("a step is no word")

    monkeypatch.setattr(module, "to_record", wrong)
    run = make_run(tiny(), archive=Archive(tmp_path / "run"), every_step=False)
    run.start()
    until(lambda: run.view.state == "finished" and run.view.unsaved)
    assert "are not on disk (TypeError: a step is no word)" in run.view.unsaved

"""A run on disk: whole files that anyone can read, and from which the same maps come again."""

from __future__ import annotations

import json
import time
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from tokenizers import Tokenizer

from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.storage import archive as module
from transformer.storage.archive import Archive
from transformer.storage.saved import read_run

NOTHING_TAKEN = {"ablated": [], "blocked": [], "masks": []}


def facts_of(folder):
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))


@pytest.fixture
def archived(tiny, make_run, until, tmp_path):
    """A finished run and its folder."""
    folder = tmp_path / "runs" / "first"
    run = make_run(tiny(steps=60, evaluate_every=20), words=("frog", "ox"), archive=Archive(folder))
    run.start()
    until(lambda: run.view.state == "finished")
    run.close()
    run.join()
    return run, folder


def test_the_folder_holds_what_it_should_and_nothing_half_written(archived):
    _, folder = archived
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


def test_run_json_carries_the_configuration_and_how_it_ended(archived):
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
        "right": list(view.right),
        "every": 1,
        "moments": [asdict(moment) for moment in view.moments],
        "interventions": NOTHING_TAKEN,
        "words": ["frog", "ox"],
    }


def test_the_table_has_the_losses_of_the_run(archived):
    run, folder = archived
    table = pd.read_parquet(folder / "metrics.parquet")
    assert table["step"].tolist() == list(range(1, 61))
    assert table["loss"].tolist() == run.view.metrics.column("loss").tolist()
    pd.testing.assert_frame_equal(table, run.view.metrics.table())
    assert table["exact"].notna().tolist() == [step % 20 == 0 for step in range(1, 61)]


@pytest.mark.parametrize("side", ["src", "tgt"])
def test_the_tokenizers_are_read_by_their_own_package(archived, side):
    run, folder = archived
    loaded = Tokenizer.from_file(str(folder / f"{side}_tokenizer.json"))
    assert loaded.encode("frog").ids == run.task.src_tokenizer.encode(["frog"])[0]


def test_frames_and_weights_on_disk_are_those_of_the_run_each_step_once(archived):
    run, folder = archived
    found = read_run(folder).view
    assert found.frames.steps == run.view.frames.steps == tuple(range(61))
    for ours, theirs in zip(found.frames, run.view.frames, strict=True):
        assert ours.probes == theirs.probes
        assert (ours.seconds, ours.loss, ours.axes) == (theirs.seconds, theirs.loss, theirs.axes)
        assert (ours.evaluation, ours.measurement.step) == (theirs.evaluation, theirs.measurement.step)
        assert ours.clearest == theirs.clearest
        for site, scores in theirs.head_scores.items():
            assert all(np.array_equal(ours.head_scores[site][name], of) for name, of in scores.items())
            for row in range(2):
                np.testing.assert_array_equal(ours.map(row, site), theirs.map(row, site))
    assert [one.step for one in found.snapshots] == list(range(61))
    for ours, theirs in zip(found.snapshots, run.view.snapshots, strict=True):
        assert {name: w.tobytes() for name, w in ours.weights.items()} == {
            name: w.tobytes() for name, w in theirs.weights.items()
        }


def test_a_run_is_on_disk_before_it_is_started(tiny, make_run, until, tmp_path):
    run = make_run(tiny(), archive=Archive(tmp_path / "run"), every_step=False)
    until(lambda: (tmp_path / "run" / "run.json").exists())
    facts = facts_of(tmp_path / "run")
    assert (facts["state"], facts["step"], facts["id"]) == ("idle", 0, run.id)
    found = read_run(tmp_path / "run").view
    assert (found.frames.steps, [one.step for one in found.snapshots]) == ((0,), [0])


def test_a_run_that_has_gone_on_for_a_while_can_be_kept_from_now_on(tiny, make_run, until, tmp_path):
    run = make_run(tiny(steps=12), every_step=False)
    assert run.advance(7).wait(20.0)
    assert run.wait(20)
    assert run.keep_in(Archive(tmp_path / "run")).wait(20.0)
    until(lambda: (tmp_path / "run" / "run.json").exists())
    assert facts_of(tmp_path / "run")["step"] == 7
    assert read_run(tmp_path / "run").view.frames.steps == tuple(range(8))
    run.resume()
    until(lambda: run.view.state == "finished")
    run.close()
    run.join()
    assert is_whole(tmp_path / "run", run.view)


def test_what_the_run_has_thinned_out_leaves_the_folder_too(tiny, make_run, until, tmp_path, monkeypatch):
    """Frames and weights within their limits, however often; and what is said of them is what is there."""
    monkeypatch.setattr("transformer.runs.recorded_training.MEMORY_LIMIT", 60_000)
    monkeypatch.setattr("transformer.recording.weights.DISK_LIMIT", 1_000_000)
    monkeypatch.setattr(module, "KEPT_SECONDS", 0.05)
    run = make_run(tiny(steps=300, evaluate_every=300), archive=Archive(tmp_path / "run"))
    run.start()
    until(lambda: run.view.state == "finished")
    run.close()
    run.join()
    assert len(run.view.frames) < 200
    assert (tmp_path / "run" / "weights.bin").stat().st_size < 1_200_000
    found = read_run(tmp_path / "run").view
    assert found.frames.steps == run.view.frames.steps
    kept = [one.step for one in found.snapshots]
    assert kept == [one.step for one in run.view.snapshots]  # whoever looks at it is told what there is
    assert {0, 300} <= {*kept}
    assert len(kept) < 150
    assert all(one.weights for one in found.snapshots)


def test_a_folder_that_holds_something_is_refused_and_left_alone(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(InputError) as refused:
        Archive(tmp_path)
    assert str(refused.value) == f"The folder {tmp_path} is not empty; choose a new one."
    assert refused.value.field == "out"
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_folder_in_which_a_run_was_killed_before_it_was_kept_takes_another(tiny, make_run, until, tmp_path):
    folder = tmp_path / "run"
    first = Archive(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["run.lock", "writer.json"]
    with pytest.raises(InputError, match="^Another process trains the run in "):
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
    facts = facts_of(tmp_path / "run")
    assert (facts["state"], facts["reason"]) == ("failed", run.view.reason)
    table = pd.read_parquet(tmp_path / "run" / "metrics.parquet")
    assert table["loss"].tolist() == run.view.metrics.column("loss").tolist()


# How often.


def test_a_run_hands_over_what_there_is_whenever_that_is_due(tiny, make_run, until, tmp_path, monkeypatch):
    handed = []
    hand = Archive.hand

    def noted(archive, view, *others):
        handed.append((view.step, time.monotonic()))
        hand(archive, view, *others)

    monkeypatch.setattr(Archive, "hand", noted)
    monkeypatch.setattr(module, "KEPT_SECONDS", 0.1)
    run = make_run(
        tiny(steps=10_000, evaluate_every=10_000), archive=Archive(tmp_path / "run"), every_step=False
    )
    run.start()
    until(lambda: len(handed) > 5)
    run.close()
    run.join()
    steps, times = zip(*handed, strict=True)
    assert steps[0] == 0
    assert list(steps[:-1]) == sorted(set(steps[:-1]))
    assert min(np.diff(times)[:-1]) >= 0.1  # the last was handed over because the run was closed
    assert facts_of(tmp_path / "run")["step"] == steps[-1] == run.view.step


# A disk that refuses.


FULL = (
    "What is new in this run is not on disk (No space left on device). It goes on in memory, and is kept as "
    "soon as that is possible again."
)
WRITERS = ("append", "sync", "write_whole")


@pytest.fixture
def disk(monkeypatch):
    """Full from now on, for some of the ways in which files are written; or empty again."""
    writing = {name: getattr(module, name) for name in WRITERS}

    def refuse(*_, **__):
        raise OSError(28, "No space left on device")

    def set_full(full, names=WRITERS):
        for name in names:
            monkeypatch.setattr(module, name, refuse if full else writing[name])

    monkeypatch.setattr(module, "AGAIN_SECONDS", 0.05)
    return set_full


def is_whole(folder, view):
    """Whether the folder holds all that the view has."""
    table = pd.read_parquet(folder / "metrics.parquet")
    assert table["loss"].tolist() == view.metrics.column("loss").tolist()
    assert (facts_of(folder)["state"], facts_of(folder)["step"]) == (view.state, view.step)
    found = read_run(folder).view
    assert found.frames.steps == view.frames.steps
    assert [one.step for one in found.snapshots] == [one.step for one in view.snapshots]
    return True


@pytest.mark.parametrize("names", [WRITERS, *((name,) for name in WRITERS)], ids=" ".join)
def test_where_the_disk_refuses_the_run_finishes_in_memory_says_so_and_is_kept_later(
    tiny, make_run, until, losses, tmp_path, disk, names
):
    run = make_run(tiny(), archive=Archive(tmp_path / "run"), every_step=False)
    until(lambda: (tmp_path / "run" / "run.json").exists())
    disk(True, names)
    run.start()
    until(lambda: run.view.state == "finished" and run.view.unsaved)
    assert run.view.metrics.column("loss").tolist() == losses(tiny())
    assert run.view.unsaved == FULL
    assert facts_of(tmp_path / "run")["state"] == "idle"
    disk(False)
    until(lambda: not run.view.unsaved)
    assert facts_of(tmp_path / "run")["state"] == "finished"
    assert is_whole(tmp_path / "run", run.view)


def test_a_mistake_of_ours_while_keeping_is_told_and_ends_no_run(
    tiny, make_run, until, tmp_path, monkeypatch
):
    def wrong(*_):
        raise TypeError("a step is no word")

    monkeypatch.setattr(module, "to_record", wrong)
    run = make_run(tiny(), archive=Archive(tmp_path / "run"), every_step=False)
    run.start()
    until(lambda: run.view.state == "finished" and run.view.unsaved)
    assert "is not on disk (TypeError: a step is no word). It goes on in memory" in run.view.unsaved

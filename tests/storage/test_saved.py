"""Saved runs are read back unchanged."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest

from tests.conftest import facts_of
from tests.storage.conftest import with_facts
from transformer.errors import InputError
from transformer.player.index import Index
from transformer.recording.records import scan
from transformer.recording.view import RunView
from transformer.runs.queue import Lease
from transformer.runs.remote import Remote
from transformer.runs.watched import reopened
from transformer.storage import saved as module
from transformer.storage.archive import Archive
from transformer.storage.saved import Reader, read_run


def test_a_finished_run_is_read_back_unchanged(saved):
    view, folder = saved
    read = read_run(folder)
    ours, theirs = ({one.name: getattr(v, one.name) for one in fields(RunView)} for v in (read.view, view))
    for name in ("frames", "snapshots", "metrics", "steps_per_second"):
        del ours[name], theirs[name]
    assert ours == theirs
    assert read.view.frames.steps == tuple(range(9))
    for one, other in zip(read.view.frames, view.frames, strict=True):
        assert (one.words, one.axes, one.interventions) == (other.words, other.axes, other.interventions)
        assert (one.seconds, one.loss, one.evaluation) == (other.seconds, other.loss, other.evaluation)
        assert (one.measurement.step, one.clearest) == (other.measurement.step, other.clearest)
        for site, scores in other.head_scores.items():
            assert all(np.array_equal(one.head_scores[site][name], of) for name, of in scores.items())
            np.testing.assert_array_equal(one.map(0, site), other.map(0, site))
    for one, other in zip(read.view.snapshots, view.snapshots, strict=True):
        assert (one.step, one.interventions) == (other.step, other.interventions)
        assert {name: w.tobytes() for name, w in one.weights.items()} == {
            name: w.tobytes() for name, w in other.weights.items()
        }
    np.testing.assert_array_equal(read.view.metrics.table(), view.metrics.table())
    assert (read.folder, read.words, read.can_go_on) == (folder, ("frog",), True)


@pytest.mark.parametrize("state", ["idle", "training"])
def test_a_run_whose_process_ended_is_paused_at_its_saved_step_without_later_records(saved, state):
    view, folder = saved
    (folder / "training.safetensors").unlink()
    with_facts(folder, state=state, reason="", step=5)
    found = read_run(folder)
    read = found.view
    assert (read.state, found.can_go_on) == ("paused", False)
    assert "the last saved step is 5" in read.reason
    assert read.metrics.column("step").tolist() == [1, 2, 3, 4, 5]
    assert read.metrics.column("loss").tolist() == view.metrics.column("loss").tolist()[:5]
    assert read.frames.steps == (0, 1, 2, 3, 4, 5)
    assert [snapshot.step for snapshot in read.snapshots] == [0, 1, 2, 3, 4, 5]


def test_the_training_state_takes_precedence_if_the_process_ended_before_run_json_was_written(saved):
    view, folder = saved
    with_facts(folder, state="training", step=3, kept=facts_of(folder)["kept"] - 1)
    assert (read_run(folder).view.step, read_run(folder).view.state) == (8, "finished")
    assert read_run(folder).view.moments == view.moments


def test_a_reader_continues_where_it_stopped(tiny_run, make_run, until, tmp_path, monkeypatch):
    """While a run is written, no record is read twice and none is missing."""
    folder, taken = tmp_path / "run", []
    run = make_run(tiny_run.with_changes(steps=60, evaluate_every=60), archive=Archive(folder))
    until(lambda: run.view.frames and run.kept)
    reader, body = Reader(folder), module.body_of
    monkeypatch.setattr(module, "body_of", lambda path, entry: taken.append(entry.at) or body(path, entry))
    for last in (7, 20, 33):
        run.advance(last - run.view.step).result(30)
        until(lambda last=last: run.view.state == "paused" and run.view.step == last and run.kept)
        found = reader.read().view
        assert found.frames.steps == tuple(range(last + 1))
        assert [one.step for one in found.snapshots] == [*range(last + 1)]
        for name, weights in found.snapshots[-1].weights.items():
            assert np.array_equal(weights, run.view.snapshots[-1].weights[name])
    assert len(taken) == len(set(taken)) == len([*scan(folder / "frames.bin")])


def test_a_failed_run_that_is_newer_than_its_training_state_is_not_damaged(saved):
    _, folder = saved
    with_facts(folder, state="failed", kept=99)
    assert (read_run(folder).view.state, read_run(folder).damage) == ("failed", "")


def test_reading_the_table_leaves_no_arrow_thread_that_could_abort_the_process_at_exit(saved):
    _, folder = saved
    script = f"""
import os
from pathlib import Path
import pyarrow.parquet
from transformer.storage.saved import read_metrics
before = len(os.listdir("/proc/self/task"))
read_metrics(Path({str(folder / "metrics.parquet")!r}))
print(len(os.listdir("/proc/self/task")) - before)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"


GONE = {"language": "en", "digits": 4, "to_words": False, "pad_to": None}
"""Removed settings, as stored in folders of earlier versions."""


def as_before(folder, **train):
    """Write a folder's configuration as an earlier version would have."""
    config = facts_of(folder)["config"]
    with_facts(folder, config={**config, "train": {**config["train"], **GONE, **train}})


def test_a_run_with_removed_settings_is_read_and_can_be_resumed(saved):
    view, folder = saved
    as_before(folder)
    read = read_run(folder)
    assert (read.view.config, read.view.own, read.can_go_on, read.damage) == (view.config, None, True, "")
    as_before(folder, pad=3)
    with pytest.raises(InputError, match="TrainConfig has no setting 'pad'"):
        read_run(folder)


def test_a_run_of_a_removed_task_can_be_viewed_and_shows_why_it_cannot_go_on(saved):
    view, folder = saved
    as_before(folder, task="numbers")
    read = read_run(folder)
    assert read.view.own.problem.startswith("This run learned numbers in words, a task that Headlight no lon")
    assert read.view.frames.steps == view.frames.steps
    assert read.view.kinds == ("encoder", "decoder", "cross")
    for site, maps in view.frame.maps[0].items():
        np.testing.assert_array_equal(read.view.frame.maps[0][site], maps)
    assert isinstance(reopened(folder, Lease(), lambda: None), Remote)
    kinds = Index(read.view.config).whole(read.view)["kinds"]
    assert kinds["cross"]["sites"] == ["decoder.0.cross", "decoder.1.cross"]

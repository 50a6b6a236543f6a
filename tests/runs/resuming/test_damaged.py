"""A damaged or missing part of the file of a killed process: the run goes on, or shows why it cannot."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from tests.conftest import change, with_facts
from tests.runs.resuming.conftest import advance_to, finish
from transformer.runs.run_recorder import RunRecorder
from transformer.storage.arrays import as_bytes
from transformer.storage.saved import read_run, read_training


def test_the_missing_past_of_a_word_is_computed_after_the_run_is_resumed(
    tiny, kept, go_on, killed, until, monkeypatch
):
    run = kept(tiny(steps=40, evaluate_every=40))
    advance_to(run, 6)
    with monkeypatch.context() as patched:
        patched.setattr(RunRecorder, "has_backfill", False)
        run.add_word("sheep")
        until(lambda: run.view.frames.steps_of("sheep"))
        folder = killed(run)
    assert read_run(folder).view.frames.steps_of("sheep") == (6,)
    again = go_on(folder)
    until(lambda: again.view.frames.steps_of("sheep") == tuple(range(7)))


def changed(how):
    """Return a function that changes the arrays and facts of a saved training, which stays valid."""

    def damage(path):
        arrays, facts = read_training(path, dict)
        how(arrays, facts)
        change(path, "UPDATE training SET data = ?", as_bytes(arrays, facts))

    return damage


def training_in(path):
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT * FROM training").fetchall()


UNFIT = "The saved training does not fit its own configuration ("
UNREADABLE = "The saved training cannot be read ("
DAMAGE = {
    "a weight is missing": (changed(lambda a, f: a.pop("model/to_logits.bias")), UNFIT),
    "a momentum is missing": (changed(lambda a, f: a.pop("optimizer/to_logits.bias/exp_avg")), UNFIT),
    "a momentum of another shape": (
        changed(lambda a, f: a.update({"optimizer/to_logits.bias/exp_avg": np.zeros(3, dtype=np.float32)})),
        UNFIT,
    ),
    "too few random numbers": (changed(lambda a, f: a.update(dropout=np.zeros(9, dtype=np.uint8))), UNFIT),
    "another step": (
        changed(lambda a, f: f["progress"].update(step=3)),
        "The saved training mixes two different steps or plans.",
    ),
    "no memory": (changed(lambda a, f: f.pop("memory")), UNREADABLE),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_training_is_reported_its_past_is_shown_and_its_recording_stays(
    tiny, kept, go_on, killed, damage
):
    damaged, told = DAMAGE[damage]
    run = kept(tiny(steps=10))
    advance_to(run, 5)
    folder = killed(run)
    damaged(folder)
    before = training_in(folder)
    again = go_on(folder)
    again.resume()
    assert again.ready.wait(30)
    again.close()
    again.join()
    assert again.view.state == "failed"
    assert again.view.reason.startswith(told)
    assert again.view.frames.steps == tuple(range(6))
    assert again.view.metrics.column("loss").tolist() == run.view.metrics.column("loss").tolist()
    assert training_in(folder) == before
    assert read_run(folder).view.frames.steps == tuple(range(6))


def test_a_run_without_its_maps_and_weights_goes_on_and_can_be_stopped(tiny, kept, go_on, killed, losses):
    run = kept(tiny(steps=10, evaluate_every=100))
    advance_to(run, 5)
    path = killed(run)
    for table in ("map", "measurement", "weights"):
        change(path, f"DELETE FROM {table}")
    again = go_on(path)
    again.stop().result(30)
    assert (again.view.state, again.view.reason) == ("stopped", "Stopped at step 5.")
    assert [frame.step for frame in again.view.frames] == [5]
    assert [snapshot.step for snapshot in again.view.snapshots] == [5]
    again.close()
    again.join()
    with_facts(path, state="paused")
    view = finish(go_on(path))
    assert view.metrics.column("loss").tolist() == losses(tiny(steps=10, evaluate_every=100))

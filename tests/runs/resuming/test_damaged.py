"""Leftover, damaged and missing files of a killed process: the run goes on, or shows why it cannot."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.conftest import facts_of
from tests.runs.resuming.conftest import advance_to, finish
from transformer.runs.run_recording import RunRecording
from transformer.storage.arrays import as_bytes, read_arrays, read_facts
from transformer.storage.claim import WRITER
from transformer.storage.saved import read_run


def contents(folder):
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != WRITER)
    return {path: path.read_bytes() for path in files}


@pytest.mark.parametrize("left", ["half a record", "more than the training"])
def test_frames_that_a_killed_process_wrote_beyond_its_saved_step_are_not_part_of_the_resumed_run(
    tiny, kept, go_on, killed, tmp_path, left
):
    run = kept(tiny(steps=40, evaluate_every=40))
    advance_to(run, 8)
    folder = killed(run)
    advance_to(run, 12)
    run.close()
    run.join()
    whole = (tmp_path / "run" / "frames.bin").read_bytes()
    (folder / "frames.bin").write_bytes(whole if left.startswith("more") else whole[: len(whole) // 2])
    again = go_on(folder)
    advance_to(again, 10)
    again.close()
    again.join()
    frames = read_run(folder).view.frames
    assert frames.steps == again.view.frames.steps
    assert {0, 9, 10} <= {*frames.steps} <= {*range(11)}
    assert [frame.step for frame in frames] == [*frames.steps]


def test_the_missing_past_of_a_word_is_developed_after_the_run_is_resumed(
    tiny, kept, go_on, killed, until, monkeypatch
):
    run = kept(tiny(steps=40, evaluate_every=40))
    advance_to(run, 6)
    with monkeypatch.context() as patched:
        patched.setattr(RunRecording, "owes_a_past", False)
        run.add_word("sheep")
        until(lambda: run.view.frames.steps_of("sheep"))
        folder = killed(run)
    assert read_run(folder).view.frames.steps_of("sheep") == (6,)
    again = go_on(folder)
    until(lambda: again.view.frames.steps_of("sheep") == tuple(range(7)))


def changed(change):
    """Return a function that changes the arrays and facts of a saved training, in a valid file."""

    def damage(folder):
        path = folder / "training.safetensors"
        arrays, facts = read_arrays(path), json.loads(read_facts(path))
        change(arrays, facts)
        path.write_bytes(as_bytes(arrays, json.dumps(facts)))

    return damage


UNFIT = "The saved training does not fit its own configuration ("
UNREADABLE = "killed/training.safetensors cannot be read ("
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
        "killed/training.safetensors mixes two different steps or plans.",
    ),
    "no memory": (changed(lambda a, f: f.pop("memory")), UNREADABLE),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_training_is_reported_its_past_is_shown_and_its_folder_stays_unchanged(
    tiny, kept, go_on, killed, damage
):
    change, told = DAMAGE[damage]
    run = kept(tiny(steps=10))
    advance_to(run, 5)
    folder = killed(run)
    change(folder)
    before = contents(folder)
    again = go_on(folder)
    again.resume()
    assert again.ready.wait(30)
    again.close()
    again.join()
    assert again.view.state == "failed"
    assert again.view.reason.startswith(told)
    assert again.view.frames.steps == tuple(range(6))
    assert again.view.metrics.column("loss").tolist() == run.view.metrics.column("loss").tolist()
    assert contents(folder) == before


@pytest.mark.slow
def test_a_run_without_its_frames_and_weights_goes_on_and_can_be_stopped(tiny, kept, go_on, killed, losses):
    """A user may delete these files to free space on the disk."""
    run = kept(tiny(steps=10, evaluate_every=100))
    advance_to(run, 5)
    folder = killed(run)
    for name in ("frames.bin", "weights.bin"):
        (folder / name).unlink()
    again = go_on(folder)
    again.stop().result(30)
    assert (again.view.state, again.view.reason) == ("stopped", "Stopped at step 5.")
    assert [frame.step for frame in again.view.frames] == [5]
    assert [snapshot.step for snapshot in again.view.snapshots] == [5]
    again.close()
    again.join()
    (folder / "run.json").write_text(json.dumps({**facts_of(folder), "state": "paused"}))
    view = finish(go_on(folder))
    assert view.metrics.column("loss").tolist() == losses(tiny(steps=10, evaluate_every=100))

"""Saved runs are read back unchanged."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from tests.conftest import change, with_facts
from transformer.errors import InputError
from transformer.recording.view import RunView
from transformer.storage import saved as module
from transformer.storage.archive import Archive
from transformer.storage.saved import Reader, read_run


def test_a_finished_run_is_read_back_unchanged(saved):
    view, folder = saved
    read = read_run(folder)
    ours, theirs = (
        {field.name: getattr(v, field.name) for field in fields(RunView)} for v in (read.view, view)
    )
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
    assert (read.path, read.words, read.can_go_on) == (folder, ("frog",), True)


@pytest.mark.parametrize("state", ["idle", "training"])
def test_a_run_whose_process_ended_is_paused_at_its_saved_step(saved, state):
    _, path = saved
    with_facts(path, state=state, reason="")
    change(path, "DELETE FROM training")
    found = read_run(path)
    assert (found.view.state, found.can_go_on, found.damage) == ("paused", False, "")
    assert found.view.reason == "Its process ended; the last saved step is 8."


def test_a_run_that_was_paused_is_not_said_to_have_lost_its_process(saved):
    _, path = saved
    with_facts(path, state="paused", reason="")
    assert (read_run(path).view.state, read_run(path).view.reason) == ("paused", "")


def test_a_training_of_another_step_cannot_go_on_unless_the_run_has_failed(saved):
    _, path = saved
    change(path, "UPDATE training SET step = 7")
    assert (read_run(path).can_go_on, read_run(path).damage) == (
        False,
        "Its saved training is at another step than the run: 7.",
    )
    with_facts(path, state="failed")
    assert (read_run(path).view.state, read_run(path).damage) == ("failed", "")
    with_facts(path, state="paused")
    change(path, "UPDATE training SET step = 8")
    change(path, "DELETE FROM step WHERE step = 8")
    assert read_run(path).damage == "It has the numbers of 7 of its 8 steps."


def test_a_reader_in_another_look_reads_only_what_is_new(tiny_run, make_run, until, tmp_path, monkeypatch):
    """While a run is written, no map is read twice and none is missing, also where others are thinned."""
    path, taken = tmp_path / "run.headlight", []
    run = make_run(tiny_run.with_changes(steps=60, evaluate_every=60), archive=Archive(path))
    until(lambda: run.view.frames and run.kept)
    reader, read = Reader(path), module.read_chunk
    monkeypatch.setattr(module, "read_chunk", lambda data: taken.append(read(data).steps) or read(data))
    for last in (7, 20, 33):
        run.advance(last - run.view.step).result(30)
        until(lambda last=last: run.view.state == "paused" and run.view.step == last and run.kept)
        found = reader.read().view
        assert found.frames.steps == tuple(range(last + 1))
        assert [snapshot.step for snapshot in found.snapshots] == [*range(last + 1)]
        assert found.metrics.column("step").tolist() == [*range(1, last + 1)]
        for name, weights in found.snapshots[-1].weights.items():
            assert np.array_equal(weights, run.view.snapshots[-1].weights[name])
    n_chunks = sum(len(run.view.frames.chunks_of(word)) for word in run.words)
    assert len(taken) == n_chunks
    before = found.frames.generation
    run.drop_word(run.words[0]).result(30)
    until(lambda: run.kept)
    found = reader.read().view
    assert found.frames.words == run.view.frames.words
    assert found.frames.generation > before


def test_only_damaged_maps_are_left_out_with_a_warning(saved, caplog):
    view, path = saved
    change(path, "UPDATE map SET data = substr(data, 1, 5000) || x'ff' || substr(data, 5002) WHERE first = 0")
    read = read_run(path)
    assert {*read.view.frames.steps} < {*view.frames.steps}
    assert not read.whole  # the next transaction writes all again
    assert "what was recorded at step 0 is left out: its numbers are not those that were writ" in caplog.text


def test_only_a_measurement_without_the_scores_of_its_task_is_left_out(saved):
    view, path = saved
    other = "CAST(replace(CAST(data AS TEXT), '\"mirror\"', '\"horror\"') AS BLOB)"
    change(path, f"UPDATE measurement SET data = {other} WHERE step = 8")
    read = read_run(path)
    assert read.view.frames.steps == view.frames.steps
    assert {measurement.step for measurement in view.frames.measurements} - {
        measurement.step for measurement in read.view.frames.measurements
    } == {8}
    assert not read.whole


def test_damaged_weights_are_reported_when_they_are_read(saved):
    _, path = saved
    change(path, "UPDATE weights SET data = substr(data, 1, length(data) - 1) || x'7e' WHERE step = 4")
    change(path, "DELETE FROM weights WHERE step = 6")
    snapshots = read_run(path).view.snapshots
    assert [snapshot.step for snapshot in snapshots] == [*range(9)]
    with pytest.raises(InputError, match=r"^The weights of step 4 in run\.headlight are damaged \("):
        dict(snapshots[4].weights)
    with pytest.raises(InputError, match=r"^The weights of step 6 are not kept any more"):
        dict(snapshots[6].weights)
    assert snapshots[3].weights.keys() == snapshots[5].weights.keys()

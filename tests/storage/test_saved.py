"""A saved run, read again: the same past, weights and configuration, and damage told in words."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import fields

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file, save_file

from transformer.errors import InputError
from transformer.interventions import Block, Interventions
from transformer.recording.metrics import COLUMNS
from transformer.recording.records import scan
from transformer.recording.view import RunView
from transformer.runs.run import Run
from transformer.storage import saved as module
from transformer.storage.archive import Archive
from transformer.storage.saved import Reader, read_run

TAKEN = Interventions(
    ablated=(("decoder.1.cross", 2),), blocked=(Block(site="encoder.0", head=1, row=2, token="[EOS]"),)
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, tiny_run, changed_midway):
    folder = tmp_path_factory.mktemp("saved") / "run"
    run = Run(tiny_run, words=("frog",), archive=Archive(folder))
    return changed_midway(run, 6, TAKEN), folder


@pytest.fixture
def saved(finished, tmp_path):
    """The view of a finished run that was changed in mid-run, and a copy of its folder."""
    view, folder = finished
    return view, shutil.copytree(folder, tmp_path / "run")


def facts_of(folder):
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))


def cut_off(path, n_bytes):
    path.write_bytes(path.read_bytes()[:-n_bytes])


def rewritten(path, facts):
    """The same arrays with other facts."""
    save_file(load_file(path), path, {"facts": facts})


def damaged(path, record, at):
    """One bit of the body of a record is another."""
    entry, data = [*scan(path)][record], bytearray(path.read_bytes())
    data[entry.at + at] ^= 1
    path.write_bytes(data)


def with_facts(folder, **changes):
    (folder / "run.json").write_text(json.dumps({**facts_of(folder), **changes}), encoding="utf-8")


def refusal(folder):
    with pytest.raises(InputError) as refused:
        read_run(folder)
    return str(refused.value)


# The whole run.


def test_a_finished_run_comes_back_as_it_was(saved):
    view, folder = saved
    read = read_run(folder)
    ours, theirs = ({one.name: getattr(v, one.name) for one in fields(RunView)} for v in (read.view, view))
    for name in ("frames", "snapshots", "metrics", "steps_per_second"):
        del ours[name], theirs[name]
    assert ours == theirs
    assert read.view.frames.steps == tuple(range(9))
    for one, other in zip(read.view.frames, view.frames, strict=True):
        assert (one.probes, one.axes, one.interventions) == (other.probes, other.axes, other.interventions)
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
def test_a_run_whose_process_ended_is_paused_at_its_step_and_what_lies_beyond_is_not_kept(saved, state):
    view, folder = saved
    (folder / "training.safetensors").unlink()
    with_facts(folder, state=state, reason="", step=5)
    found = read_run(folder)
    read = found.view
    assert (read.state, found.can_go_on) == ("paused", False)
    assert "the last step that was kept is 5" in read.reason
    assert read.metrics.column("step").tolist() == [1, 2, 3, 4, 5]
    assert read.metrics.column("loss").tolist() == view.metrics.column("loss").tolist()[:5]
    assert read.frames.steps == (0, 1, 2, 3, 4, 5)
    assert [snapshot.step for snapshot in read.snapshots] == [0, 1, 2, 3, 4, 5]


def test_the_training_is_believed_where_the_process_ended_before_run_json_was_written(saved):
    view, folder = saved
    with_facts(folder, state="training", step=3, kept=facts_of(folder)["kept"] - 1)
    assert (read_run(folder).view.step, read_run(folder).view.state) == (8, "finished")
    assert read_run(folder).view.moments == view.moments


@pytest.mark.parametrize("name", ["frames.bin", "weights.bin"])
def test_of_a_file_that_is_cut_off_all_that_stands_before_is_read(saved, name):
    view, folder = saved
    entries = [*scan(folder / name)]
    for n_whole in (len(entries) - 1, len(entries) // 2, 0):
        (folder / name).write_bytes((folder / name).read_bytes()[: entries[n_whole].end - 3])
        read = read_run(folder).view
        steps = read.frames.steps if name == "frames.bin" else tuple(one.step for one in read.snapshots)
        assert steps == view.frames.steps[: len(steps)]
        assert len(steps) < len(view.frames) or n_whole == len(entries) - 1
        assert (len(steps) == 0) == (n_whole == 0)
        assert read.metrics.column("step").tolist() == [*range(1, 9)]


def test_a_damaged_map_is_left_out_with_a_warning_and_nothing_else(saved, caplog):
    view, folder = saved
    chunk = next(i for i, one in enumerate(scan(folder / "frames.bin")) if one.nbytes)
    damaged(folder / "frames.bin", chunk, 5)
    read = read_run(folder).view
    assert len(read.frames) < len(view.frames)
    assert {*read.frames.steps} < {*view.frames.steps}
    assert "frames.bin is damaged at byte " in caplog.text


def test_damaged_weights_are_told_when_they_are_asked_for(saved):
    _, folder = saved
    damaged(folder / "weights.bin", 4, 100)
    snapshots = read_run(folder).view.snapshots
    assert [one.step for one in snapshots] == [*range(9)]
    with pytest.raises(InputError, match=r"^weights\.bin is damaged at byte [\d,]+\.$"):
        dict(snapshots[4].weights)
    assert snapshots[3].weights.keys() == snapshots[5].weights.keys()
    (folder / "weights.bin").unlink()
    with pytest.raises(InputError, match=r"^weights\.bin cannot be read \(No such file or directory\)\.$"):
        dict(snapshots[3].weights)


def test_a_reader_goes_on_where_it_stopped(tiny_run, make_run, until, tmp_path, monkeypatch):
    """While another writes: what was read is not read again, and nothing is missing or double."""
    folder, taken = tmp_path / "run", []
    run = make_run(tiny_run.with_changes(steps=60, evaluate_every=60), archive=Archive(folder))
    until(lambda: run.view.frames and run.kept)
    reader, body = Reader(folder), module.body_of
    monkeypatch.setattr(module, "body_of", lambda path, entry: taken.append(entry.at) or body(path, entry))
    for last in (7, 20, 33):
        run.advance(last - run.view.step).wait(30)
        until(lambda last=last: run.view.state == "paused" and run.view.step == last and run.kept)
        found = reader.read().view
        assert found.frames.steps == tuple(range(last + 1))
        assert [one.step for one in found.snapshots] == [*range(last + 1)]
        for name, weights in found.snapshots[-1].weights.items():
            assert np.array_equal(weights, run.view.snapshots[-1].weights[name])
    assert len(taken) == len(set(taken)) == len([*scan(folder / "frames.bin")])


def bomb(path):
    """Ten million rows of nothing: a quarter of a megabyte on disk, and a gigabyte in memory."""
    part = pa.table({name: pa.nulls(1_000_000, pa.float64()) for name in COLUMNS})
    with pq.ParquetWriter(path, part.schema) as writer:
        for _ in range(10):
            writer.write_table(part)
    assert path.stat().st_size < 300_000


def of_texts(path):
    pq.write_table(pa.table({name: ["one"] * 5 for name in COLUMNS}), path)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda path: path.write_bytes(b"PAR1 and nothing PAR1"), ""),
        (bomb, "10,000,000 rows in "),
        (of_texts, "its columns hold string"),
    ],
    ids=["no table", "bomb", "texts"],
)
def test_a_table_that_cannot_be_read_is_told(saved, damage, why):
    _, folder = saved
    damage(folder / "metrics.parquet")
    assert refusal(folder).startswith(f"metrics.parquet of run cannot be read ({why}")


def with_older_training(folder):
    facts = facts_of(folder)
    with_facts(folder, kept=facts["kept"] + 1, state="stopped")


def with_training_of_another(folder):
    with_facts(folder, id="another", state="stopped")


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda f: cut_off(f / "training.safetensors", 300), "run/training.safetensors cannot be read ("),
        (
            lambda f: rewritten(f / "training.safetensors", '{"run": {}}'),
            "run/training.safetensors cannot be read (Object missing required field",
        ),
        (with_training_of_another, "run/training.safetensors is of another run."),
        (with_older_training, "run/training.safetensors is of step 8, and the run is not."),
    ],
    ids=["cut off", "no facts", "of another run", "older"],
)
def test_a_run_without_a_whole_training_can_be_looked_at_and_says_why_it_cannot_go_on(saved, damage, told):
    view, folder = saved
    damage(folder)
    read = read_run(folder)
    assert not read.can_go_on
    assert read.damage.startswith(told)
    assert read.damage.count("training.safetensors") == 1
    assert read.view.step == 8
    assert read.view.frames.steps == view.frames.steps
    assert read.view.metrics.column("loss").tolist() == view.metrics.column("loss").tolist()


def test_a_failed_run_is_newer_than_its_training_and_that_is_no_damage(saved):
    _, folder = saved
    with_facts(folder, state="failed", kept=99)
    assert (read_run(folder).view.state, read_run(folder).damage) == ("failed", "")


# What is refused.


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    assert refusal(tmp_path).startswith(f"{tmp_path} is no saved run: run.json cannot be read (")


@pytest.mark.parametrize(
    "text", ["", "[]", '{"format": 3}', '{"config": {}}', "\udcff", '{"format": 3, "a": ' + 9999 * "["]
)
def test_a_damaged_run_json_is_told(saved, text):
    _, folder = saved
    (folder / "run.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert refusal(folder).startswith(f"{folder} is no saved run: run.json is damaged (")


def test_a_configuration_that_does_not_exist_is_told(saved):
    _, folder = saved
    config = facts_of(folder)["config"]
    config["model"]["d_modle"] = 12
    with_facts(folder, config=config)
    assert "no setting 'd_modle'; did you mean 'd_model'" in refusal(folder)


@pytest.mark.parametrize("version", [2, "3", None])
def test_another_version_is_refused(saved, version):
    _, folder = saved
    with_facts(folder, format=version)
    assert f"has format {json.dumps(version)}; this version reads format 3" in refusal(folder)


def test_reading_the_table_leaves_no_thread_of_arrow_that_could_abort_the_process_at_its_end(saved):
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

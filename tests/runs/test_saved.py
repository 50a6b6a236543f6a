"""A saved run, read again: the same past, weights and configuration, and damage told in words."""

from __future__ import annotations

import json
import shutil
from dataclasses import fields

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from transformer.errors import InputError
from transformer.interventions import NOTHING, Block, Interventions
from transformer.runs.archive import Archive
from transformer.runs.run import Run
from transformer.runs.saved import saved_config, saved_run, saved_snapshots
from transformer.runs.view import RunView

TAKEN = Interventions(
    ablated=(("decoder.1.cross", 2),), blocked=(Block(site="encoder.0", head=1, row=2, token="[EOS]"),)
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, tiny_run, changed_midway):
    folder = tmp_path_factory.mktemp("saved") / "run"
    run = Run(tiny_run, words=("frog",), archive=Archive(folder), live=False)
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
    with safe_open(path, framework="np") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}
        order = file.metadata()["order"]
    save_file(arrays, path, {"order": order, "facts": facts})


def with_facts(folder, **changes):
    (folder / "run.json").write_text(json.dumps({**facts_of(folder), **changes}), encoding="utf-8")


def refusal(read, folder):
    with pytest.raises(InputError) as refused:
        read(folder)
    return str(refused.value)


# The whole run.


def test_a_finished_run_comes_back_as_it_was(saved):
    view, folder = saved
    read = saved_run(folder)
    ours, theirs = ({one.name: getattr(v, one.name) for one in fields(RunView)} for v in (read.view, view))
    for name in ("frames", "snapshots", "metrics", "steps_per_second"):
        del ours[name], theirs[name]
    assert ours == theirs
    assert [frame.step for frame in read.view.frames] == [frame.step for frame in view.frames]
    assert [snapshot.step for snapshot in read.view.snapshots] == [0, 1, 2, 3, 4, 5, 6, 8]
    np.testing.assert_array_equal(read.view.metrics.table(), view.metrics.table())
    assert (read.folder, read.words, read.can_go_on) == (folder, ("frog",), True)
    assert read.view.steps_per_second == 0.0


@pytest.mark.parametrize("state", ["idle", "queued", "training", "paused"])
def test_a_run_whose_process_ended_is_paused_and_says_why(saved, state):
    _, folder = saved
    (folder / "training.safetensors").unlink()
    with_facts(folder, state=state, reason="", step=6)
    read = saved_run(folder)
    assert (read.view.state, read.view.reason) == (
        "paused",
        "Its process ended when this run stood at step 6.",
    )
    assert not read.can_go_on


@pytest.mark.parametrize("state", ["finished", "stopped", "failed"])
def test_a_run_that_had_ended_has_ended(saved, state):
    _, folder = saved
    (folder / "training.safetensors").unlink()
    with_facts(folder, state=state, reason="So it was.")
    assert (saved_run(folder).view.state, saved_run(folder).view.reason) == (state, "So it was.")


def test_what_lies_beyond_the_step_is_of_a_past_that_is_not_kept(saved):
    view, folder = saved
    (folder / "training.safetensors").unlink()
    with_facts(folder, state="training", step=5)
    read = saved_run(folder).view
    assert read.metrics.column("step").tolist() == [1, 2, 3, 4, 5]
    assert read.metrics.column("loss").tolist() == view.metrics.column("loss").tolist()[:5]
    assert [frame.step for frame in read.frames] == [0, 4]
    assert [snapshot.step for snapshot in read.snapshots] == [0, 1, 2, 3, 4, 5]


def test_the_training_is_believed_where_the_process_ended_before_run_json_was_written(saved):
    view, folder = saved
    with_facts(folder, state="training", step=3, kept=facts_of(folder)["kept"] - 1)
    assert (saved_run(folder).view.step, saved_run(folder).view.state) == (8, "finished")
    assert saved_run(folder).view.moments == view.moments


def test_nothing_in_the_folder_is_changed_by_reading_it(saved):
    _, folder = saved
    (folder / "frames" / "000004.safetensors").write_bytes(b"damaged")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    saved_run(folder)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_damaged_frame_or_snapshot_is_left_out_with_a_warning(saved, caplog):
    _, folder = saved
    for name in ("frames/000004.safetensors", "snapshots/000003.safetensors"):
        cut_off(folder / name, 9)
    read = saved_run(folder).view
    assert [frame.step for frame in read.frames] == [0, 6, 8]
    assert [snapshot.step for snapshot in read.snapshots] == [0, 1, 2, 4, 5, 6, 8]
    first, second = (record.getMessage() for record in caplog.records)
    assert first.startswith("frames/000004.safetensors cannot be read (")
    assert second.startswith("snapshots/000003.safetensors cannot be read (")


def test_a_frame_or_snapshot_under_the_name_of_another_step_is_left_out(saved, caplog):
    """In order of step is how every page looks for them."""
    _, folder = saved
    shutil.copy(folder / "frames" / "000008.safetensors", folder / "frames" / "000004.safetensors")
    assert [frame.step for frame in saved_run(folder).view.frames] == [0, 6, 8]
    assert "frames/000004.safetensors is of step 8" in caplog.text


def test_a_table_that_cannot_be_read_is_told(saved):
    _, folder = saved
    (folder / "metrics.parquet").write_bytes(b"PAR1 and nothing PAR1")
    assert refusal(saved_run, folder).startswith("metrics.parquet of run cannot be read (")


def test_a_small_table_that_would_fill_the_memory_is_told(saved):
    """Ten million rows of nothing are a quarter of a megabyte on disk, and a gigabyte in memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    _, folder = saved
    names = pq.read_schema(folder / "metrics.parquet").names
    part = pa.table({name: pa.nulls(1_000_000, pa.float64()) for name in names})
    with pq.ParquetWriter(folder / "metrics.parquet", part.schema) as writer:
        for _ in range(10):
            writer.write_table(part)
    assert (folder / "metrics.parquet").stat().st_size < 300_000
    assert refusal(saved_run, folder).startswith("metrics.parquet of run cannot be read (")


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
            lambda f: (f / "training.safetensors").write_bytes(b""),
            "run/training.safetensors cannot be read (",
        ),
        (
            lambda f: rewritten(f / "training.safetensors", '{"run": {}}'),
            "run/training.safetensors cannot be read (Object missing required field",
        ),
        (with_training_of_another, "run/training.safetensors is of another run."),
        (with_older_training, "run/training.safetensors is of step 8, and the run is not."),
    ],
    ids=["cut off", "empty", "no facts", "of another run", "older"],
)
def test_a_run_without_a_whole_training_can_be_looked_at_and_says_why_it_cannot_go_on(saved, damage, told):
    view, folder = saved
    damage(folder)
    read = saved_run(folder)
    assert not read.can_go_on
    assert read.damage.startswith(told)
    assert read.damage.count("training.safetensors") == 1
    assert read.view.step == 8
    assert [frame.step for frame in read.view.frames] == [frame.step for frame in view.frames]
    assert read.view.metrics.column("loss").tolist() == view.metrics.column("loss").tolist()


def test_a_failed_run_is_newer_than_its_training_and_that_is_no_damage(saved):
    _, folder = saved
    with_facts(folder, state="failed", kept=99)
    assert (saved_run(folder).view.state, saved_run(folder).damage) == ("failed", "")


# Only its weights and its configuration.


def test_weights_and_what_was_taken_away_come_back_oldest_first(saved):
    view, folder = saved
    snapshots = saved_snapshots(folder)
    assert [s.step for s in snapshots] == [s.step for s in view.snapshots] == [0, 1, 2, 3, 4, 5, 6, 8]
    for ours, theirs in zip(snapshots, view.snapshots, strict=True):
        assert ours.interventions == theirs.interventions == (TAKEN if ours.step >= 6 else NOTHING)
        assert list(ours.weights) == list(theirs.weights)
        assert all(np.array_equal(ours.weights[name], theirs.weights[name]) for name in theirs.weights)
        assert ours.nbytes == 0  # read when asked for


def test_steps_are_in_the_order_of_numbers_not_of_text(saved):
    _, folder = saved
    shutil.copy(folder / "snapshots" / "000008.safetensors", folder / "snapshots" / "1000000.safetensors")
    shutil.copy(folder / "snapshots" / "000005.safetensors", folder / "snapshots" / "999999.safetensors")
    assert [s.step for s in saved_snapshots(folder)] == [0, 1, 2, 3, 4, 5, 6, 8, 999999, 1000000]


def test_other_files_beside_the_weights_are_passed_over(saved):
    _, folder = saved
    for name in ("000009.safetensors.partial", "copy of 000008.safetensors", "notes.txt"):
        (folder / "snapshots" / name).write_bytes(b"?")
    assert [s.step for s in saved_snapshots(folder)] == [0, 1, 2, 3, 4, 5, 6, 8]


def test_the_configuration_comes_back_with_what_the_task_needed(saved):
    view, folder = saved
    assert saved_config(folder) == view.config
    assert saved_config(folder).model.src_vocab_size == 30


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    assert refusal(saved_config, tmp_path / "nowhere") == (
        f"{tmp_path / 'nowhere'} is no saved run: run.json cannot be read (No such file or directory)."
    )
    assert refusal(saved_snapshots, tmp_path) == (
        f"{tmp_path} holds no weights: there is no file in its folder snapshots."
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "3",
        '{"format": 2}',
        '{"config": {}}',
        "\udcff",
        '{"format": 2, "a": ' + 9999 * "[",
    ],
)
def test_a_damaged_run_json_is_told(saved, text):
    _, folder = saved
    (folder / "run.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    for read in (saved_config, saved_run):
        assert refusal(read, folder).startswith(f"{folder} is no saved run: run.json is damaged (")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("step", "8"),
        ("step", 8.5),
        ("moments", [{"step": 1}]),
        ("words", "frog"),
        ("config", [3]),
        ("kept", None),
    ],
)
def test_a_fact_of_another_kind_is_told_with_its_name(saved, name, value):
    _, folder = saved
    with_facts(folder, **{name: value})
    told = refusal(saved_run, folder)
    assert told.startswith(f"{folder} is no saved run: run.json is damaged (")
    assert f"`$.{name}" in told


def test_a_configuration_that_does_not_exist_is_told(saved):
    _, folder = saved
    config = facts_of(folder)["config"]
    config["model"]["d_modle"] = 12
    with_facts(folder, config=config)
    assert refusal(saved_config, folder) == "ModelConfig has no setting 'd_modle'; did you mean 'd_model'?"


@pytest.mark.parametrize("version", [1, 3, "2", None, [2]])
def test_another_version_is_refused(saved, version):
    _, folder = saved
    with_facts(folder, format=version)
    for read in (saved_config, saved_run):
        assert (
            refusal(read, folder)
            == f"{folder} has format {json.dumps(version)}; this version reads format 2."
        )


def test_a_run_of_the_first_version_is_refused_whatever_else_it_holds(tmp_path):
    (tmp_path / "run.json").write_text('{"format": 1, "id": "x", "config": {}}')
    assert refusal(saved_run, tmp_path) == f"{tmp_path} has format 1; this version reads format 2."


DAMAGE = {
    "empty": lambda path: path.write_bytes(b""),
    "another kind of file": lambda path: path.write_bytes(b"PK but not really"),
    "cut off": lambda path: cut_off(path, 400),
    "a single array": lambda path: np.save(path.open("wb"), np.zeros(3)),
    "broken JSON": lambda path: rewritten(path, "{"),
    "other JSON": lambda path: rewritten(path, "[1, 2]"),
    "deep JSON": lambda path: rewritten(path, 9999 * "["),
    "a block of another kind": lambda path: rewritten(path, '{"blocked": [{"place": "encoder.0"}]}'),
    "no facts": lambda path: save_file({"a": np.zeros(3)}, path),
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("damage", DAMAGE, ids=str)
def test_damaged_weights_are_told_with_their_file(saved, damage):
    _, folder = saved
    DAMAGE[damage](folder / "snapshots" / "000004.safetensors")
    assert refusal(saved_snapshots, folder).startswith("snapshots/000004.safetensors cannot be read (")


def test_weights_that_vanish_are_told_when_they_are_asked_for(saved):
    _, folder = saved
    snapshots = saved_snapshots(folder)
    (folder / "snapshots" / "000004.safetensors").unlink()
    with pytest.raises(InputError, match="^snapshots/000004.safetensors cannot be read "):
        dict(snapshots[4].weights)
    assert dict(snapshots[3].weights).keys() == set(snapshots[4].weights)


def test_a_name_that_is_not_there_is_no_damage(saved):
    _, folder = saved
    weights = saved_snapshots(folder)[0].weights
    assert weights.get("interventions") is None
    with pytest.raises(KeyError):
        weights["nobody"]

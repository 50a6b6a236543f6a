"""A saved run, read again: the same weights and configuration, and damage told in words."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from transformer.errors import InputError
from transformer.interventions import NOTHING, Block, Interventions
from transformer.runs.archive import Archive
from transformer.runs.run import Run
from transformer.runs.saved import saved_config, saved_snapshots

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


def refusal(read, folder):
    with pytest.raises(InputError) as refused:
        read(folder)
    return str(refused.value)


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
    shutil.copy(folder / "snapshots" / "000008.npz", folder / "snapshots" / "1000000.npz")
    shutil.copy(folder / "snapshots" / "000005.npz", folder / "snapshots" / "999999.npz")
    assert [s.step for s in saved_snapshots(folder)] == [0, 1, 2, 3, 4, 5, 6, 8, 999999, 1000000]


def test_other_files_beside_the_weights_are_passed_over(saved):
    _, folder = saved
    for name in ("000009.npz.partial", "copy of 000008.npz", "notes.txt"):
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


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "3", '{"format": 1}', '{"config": {}}', "\udcff"])
def test_a_damaged_run_json_is_told(saved, text):
    _, folder = saved
    (folder / "run.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert refusal(saved_config, folder).startswith(f"{folder} is no saved run: run.json is damaged (")


def test_a_configuration_that_does_not_exist_is_told(saved):
    _, folder = saved
    facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    facts["config"]["model"]["d_modle"] = 12
    (folder / "run.json").write_text(json.dumps(facts), encoding="utf-8")
    assert refusal(saved_config, folder) == "ModelConfig has no setting 'd_modle'; did you mean 'd_model'?"


def test_another_version_is_refused(saved):
    _, folder = saved
    facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    (folder / "run.json").write_text(json.dumps({**facts, "format": 2}), encoding="utf-8")
    assert refusal(saved_config, folder) == f"{folder} has format 2; this version reads format 1."


def rewritten(path, **changes):
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    np.savez(path, **{**arrays, **changes})


def as_bytes(text):
    return np.frombuffer(text.encode(), dtype=np.uint8)


DAMAGE = {
    "empty": lambda path: path.write_bytes(b""),
    "no archive": lambda path: path.write_bytes(b"PK but not really"),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-400]),
    "a single array": lambda path: np.save(path.open("wb"), np.zeros(3)),
    "broken JSON": lambda path: rewritten(path, interventions=as_bytes("{")),
    "other JSON": lambda path: rewritten(path, interventions=as_bytes("[1, 2]")),
    "a block of another kind": lambda path: rewritten(
        path, interventions=as_bytes('{"ablated": [], "blocked": [{"place": "encoder.0"}]}')
    ),
    "pickled": lambda path: rewritten(path, interventions=np.array([{}], dtype=object)),
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("damage", DAMAGE, ids=str)
def test_damaged_weights_are_told_with_their_file(saved, damage):
    _, folder = saved
    path = folder / "snapshots" / "000004.npz"
    DAMAGE[damage](path)
    assert refusal(saved_snapshots, folder).startswith(f"The weights in {path} cannot be read (")


def test_damage_inside_one_array_is_told_when_it_is_asked_for(saved):
    _, folder = saved
    path = folder / "snapshots" / "000004.npz"
    data = bytearray(path.read_bytes())
    for i in range(len(data) // 2, len(data) // 2 + 100):
        data[i] ^= 0xFF
    path.write_bytes(data)
    snapshot = saved_snapshots(folder)[4]
    assert snapshot.step == 4
    with pytest.raises(InputError, match="cannot be read"):
        dict(snapshot.weights)
    assert dict(saved_snapshots(folder)[3].weights).keys() == set(snapshot.weights)


def test_a_name_that_is_not_there_is_no_damage(saved):
    _, folder = saved
    weights = saved_snapshots(folder)[0].weights
    assert weights.get("interventions") is None
    with pytest.raises(KeyError):
        weights["nobody"]

"""A run on disk: whole files that anyone can read, and from which the same maps come again."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
import torch
from tokenizers import Tokenizer

from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.interventions import Block, Interventions
from transformer.model.transformer import Transformer
from transformer.recording.tape import record
from transformer.runs import archive as module
from transformer.runs.archive import Archive


@pytest.fixture
def archived(tiny, make_run, until, tmp_path):
    """A finished run and its folder."""
    folder = tmp_path / "runs" / "first"
    run = make_run(
        tiny(steps=60, evaluate_every=20), words=("frog", "ox"), archive=Archive(folder), live=False
    )
    run.start()
    until(lambda: run.view.state == "finished")
    run.close()
    run.join()
    return run, folder


def arrays(path):
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def test_the_folder_holds_what_it_should_and_nothing_half_written(archived):
    _, folder = archived
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*")) == [
        "frames/000000.npz",
        "frames/000020.npz",
        "frames/000040.npz",
        "frames/000060.npz",
        "metrics.parquet",
        "run.json",
        *(f"snapshots/{step:06d}.npz" for step in (0, 1, 2, 3, 4, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 60)),
        "src_tokenizer.json",
        "tgt_tokenizer.json",
    ]


def test_run_json_carries_the_configuration_and_how_it_ended(archived):
    run, folder = archived
    facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert RunConfig.from_json(json.dumps(facts.pop("config"))) == run.view.config
    assert facts == {
        "format": 1,
        "id": run.id,
        "state": "finished",
        "reason": run.view.reason,
        "step": 60,
        "seconds": run.view.seconds,
        "device": "cpu",
        "threads": 1,
        "parameters": run.view.parameters,
        "first_step_at": {},
        "right_by_length": {str(n): list(counts) for n, counts in run.view.frame.by_length.items()},
        "moments": [asdict(moment) for moment in run.view.moments],
        "interventions": [],
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


def test_frames_on_disk_are_those_of_the_run(archived):
    run, folder = archived
    for frame in run.view.frames:
        stored = arrays(folder / "frames" / f"{frame.step:06d}.npz")
        facts = json.loads(stored.pop("facts").tobytes())
        assert (facts["format"], facts["step"], facts["loss"]) == (1, frame.step, frame.loss)
        assert tuple(facts["clearest"]) == frame.clearest
        assert tuple(facts["exact"]) == frame.exact
        assert {int(n): tuple(c) for n, c in facts["by_length"].items()} == frame.by_length
        assert sum(asked for _, asked in frame.by_length.values()) == frame.exact[1]
        assert facts["interventions"] == {"ablated": [], "blocked": [], "masks": {}}
        assert [
            (probe["text"], probe["output"], tuple(probe["src_tokens"])) for probe in facts["probes"]
        ] == [(probe.text, probe.output, probe.src_tokens) for probe in frame.probes]
        assert facts["axes"]["decoder.1.self"] == {
            "query": "tgt",
            "key": "tgt",
            "writes": True,
            "causal": True,
            "padding": True,
        }
        expected = {f"maps/{site}": weights for site, weights in frame.maps.items()}
        for site, scores in frame.head_scores.items():
            assert set(scores) >= {"diagonal", "first", "entropy"}
            expected |= {f"scores/{site}/{name}": values for name, values in scores.items()}
        assert "scores/decoder.1.cross/mirror" in stored
        assert stored.keys() == expected.keys()
        for name, array in expected.items():
            assert np.array_equal(stored[name], array)
            assert stored[name].dtype == array.dtype


@pytest.mark.parametrize("step", [0, 60])
def test_a_snapshot_in_a_new_model_gives_the_maps_of_its_frame(archived, step):
    run, folder = archived
    facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    model = Transformer(RunConfig.from_json(json.dumps(facts["config"])).model)
    weights = arrays(folder / "snapshots" / f"{step:06d}.npz")
    assert json.loads(weights.pop("interventions").tobytes()) == {"ablated": [], "blocked": [], "masks": {}}
    model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    batch = run.task.encode(["frog", "ox"])
    with record(model) as tape:
        model(torch.from_numpy(batch.src), torch.from_numpy(batch.tgt_in))
    stored = arrays(folder / "frames" / f"{step:06d}.npz")
    for site, maps in tape.weights.items():
        np.testing.assert_allclose(maps, stored[f"maps/{site}"], atol=1e-3)
    assert len(tape.weights) == 5


def test_what_is_taken_away_after_the_end_is_on_disk_at_once(tiny, make_run, until, tmp_path):
    run = make_run(tiny(), archive=Archive(tmp_path / "run"), live=False)
    run.start()
    until(lambda: run.view.state == "finished")
    taken = Interventions(
        ablated=(("decoder.0.self", 2),), blocked=(Block(site="encoder.0", head=1, token="[EOS]"),)
    )
    assert run.intervene(taken).wait(20.0)
    facts = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    assert facts["interventions"] == [[8, "intervene", taken.to_dict()]]
    assert facts["moments"] == [asdict(moment) for moment in run.view.moments]
    assert [(m["step"], m["text"]) for m in facts["moments"] if m["kind"] == "intervention"] == [
        (8, taken.text())
    ]
    assert facts["state"] == "finished"
    snapshot = arrays(tmp_path / "run" / "snapshots" / "000008.npz")
    assert json.loads(snapshot["interventions"].tobytes()) == taken.to_dict()
    frame = json.loads(arrays(tmp_path / "run" / "frames" / "000008.npz")["facts"].tobytes())
    assert frame["interventions"] == taken.to_dict()


def test_a_folder_that_holds_something_is_refused_and_left_alone(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(InputError) as refused:
        Archive(tmp_path)
    assert str(refused.value) == f"The folder {tmp_path} is not empty; choose a new one."
    assert refused.value.field == "out"
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_folder_that_cannot_be_made_is_refused_with_the_reason(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError) as refused:
        Archive(tmp_path / "file" / "run")
    assert (
        str(refused.value) == f"The folder {tmp_path / 'file' / 'run'} cannot be written (Not a directory)."
    )


def test_a_crash_in_the_middle_of_a_file_leaves_the_old_one_whole(tmp_path):
    archive = Archive(tmp_path / "run")
    archive._write_text("run.json", "old")

    def crash(file):
        file.write(b"ne")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        archive._write("run.json", crash)
    assert (tmp_path / "run" / "run.json").read_text() == "old"


def test_a_run_that_fails_leaves_its_reason_and_its_losses_on_disk(tiny, make_run, until, tmp_path):
    run = make_run(tiny(learning_rate=1e30), archive=Archive(tmp_path / "run"))
    run.start()
    until(lambda: run.view.state == "failed")
    run.join()
    facts = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    assert (facts["state"], facts["reason"]) == ("failed", run.view.reason)
    table = pd.read_parquet(tmp_path / "run" / "metrics.parquet")
    assert table["loss"].tolist() == run.view.metrics.column("loss").tolist()


def test_a_disk_that_fails_in_mid_run_ends_the_run_as_failed(tiny, make_run, until, tmp_path, monkeypatch):
    run = make_run(tiny(), archive=Archive(tmp_path / "run"))
    until(lambda: run.view.frame)

    def full(file, arrays):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "_save_arrays", full)
    run.start()
    until(lambda: run.view.state == "failed")
    run.join()
    assert run.view.reason == "OSError: [Errno 28] No space left on device"
    assert json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))["state"] == "failed"

"""A run on disk: whole files that anyone can read, and from which the same maps come again."""

from __future__ import annotations

import json
import time
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

SNAPSHOTS = (0, 1, 2, 3, 4, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 60)
NOTHING_TAKEN = {"ablated": [], "blocked": [], "masks": []}


def facts_of(folder):
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))


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


def test_the_folder_holds_what_it_should_and_nothing_half_written(archived):
    _, folder = archived
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*")) == [
        *(f"frames/{step:06d}.safetensors" for step in (0, 20, 40, 60)),
        "metrics.parquet",
        "run.json",
        "run.lock",
        *(f"snapshots/{step:06d}.safetensors" for step in SNAPSHOTS),
        "src_tokenizer.json",
        "tgt_tokenizer.json",
        "training.safetensors",
    ]


def test_run_json_carries_the_configuration_and_how_it_ended(archived):
    run, folder = archived
    facts, view = facts_of(folder), run.view
    assert RunConfig.from_json(json.dumps(facts.pop("config"))) == view.config
    assert facts.pop("kept") > 0
    assert facts == {
        "format": 2,
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
        "right_by_length": {str(n): list(counts) for n, counts in view.frame.by_length.items()},
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


def test_frames_on_disk_are_those_of_the_run(archived, opened):
    run, folder = archived
    for frame in run.view.frames:
        stored, facts = opened(folder / "frames" / f"{frame.step:06d}.safetensors")
        assert (facts["step"], facts["loss"]) == (frame.step, frame.loss)
        assert tuple(facts["clearest"]) == frame.clearest
        assert tuple(facts["exact"]) == frame.exact
        assert {int(n): tuple(c) for n, c in facts["by_length"].items()} == frame.by_length
        assert sum(asked for _, asked in frame.by_length.values()) == frame.exact[1]
        assert facts["interventions"] == NOTHING_TAKEN
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
        assert list(stored) == list(expected)
        for name, array in expected.items():
            assert np.array_equal(stored[name], array)
            assert stored[name].dtype == array.dtype


@pytest.mark.parametrize("step", [0, 60])
def test_a_snapshot_in_a_new_model_gives_the_maps_of_its_frame(archived, opened, step):
    run, folder = archived
    model = Transformer(RunConfig.from_json(json.dumps(facts_of(folder)["config"])).model)
    weights, taken = opened(folder / "snapshots" / f"{step:06d}.safetensors")
    assert taken == NOTHING_TAKEN
    model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    batch = run.task.encode(["frog", "ox"])
    with record(model) as tape:
        model(torch.from_numpy(batch.src), torch.from_numpy(batch.tgt_in))
    stored, _ = opened(folder / "frames" / f"{step:06d}.safetensors")
    for site, maps in tape.weights.items():
        np.testing.assert_allclose(maps, stored[f"maps/{site}"], atol=1e-3)
    assert len(tape.weights) == 5


def test_what_is_taken_away_after_the_end_is_on_disk_a_moment_later(tiny, make_run, until, tmp_path, opened):
    folder = tmp_path / "run"
    run = make_run(tiny(), archive=Archive(folder), live=False)
    run.start()
    until(lambda: run.view.state == "finished")
    taken = Interventions(
        ablated=(("decoder.0.self", 2),), blocked=(Block(site="encoder.0", head=1, token="[EOS]"),)
    )
    assert run.intervene(taken).wait(20.0)
    until(lambda: (folder / "run.json").exists() and facts_of(folder)["interventions"]["ablated"])
    facts = facts_of(folder)
    as_json = json.loads(json.dumps(asdict(taken)))
    assert facts["interventions"] == as_json
    assert facts["moments"] == [asdict(moment) for moment in run.view.moments]
    assert [(m["step"], m["text"]) for m in facts["moments"] if m["kind"] == "intervention"] == [
        (8, taken.text())
    ]
    assert facts["state"] == "finished"
    # What run.json tells of was there before it.
    assert opened(folder / "snapshots" / "000008.safetensors")[1] == as_json
    assert opened(folder / "frames" / "000008.safetensors")[1]["interventions"] == as_json
    assert opened(folder / "training.safetensors")[1]["progress"]["in_force"] == as_json


def test_a_run_is_on_disk_before_it_is_started(tiny, make_run, until, tmp_path):
    run = make_run(tiny(), archive=Archive(tmp_path / "run"), live=False)
    until(lambda: (tmp_path / "run" / "run.json").exists())
    facts = facts_of(tmp_path / "run")
    assert (facts["state"], facts["step"], facts["id"]) == ("idle", 0, run.id)
    assert (tmp_path / "run" / "frames" / "000000.safetensors").exists()
    assert (tmp_path / "run" / "snapshots" / "000000.safetensors").exists()


def test_a_run_that_has_gone_on_for_a_while_can_be_kept_from_now_on(tiny, make_run, until, tmp_path, opened):
    run = make_run(tiny(steps=12), live=False)
    assert run.advance(7).wait(20.0)
    assert run.wait(20)
    assert run.keep_in(Archive(tmp_path / "run")).wait(20.0)
    until(lambda: (tmp_path / "run" / "run.json").exists())
    assert facts_of(tmp_path / "run")["step"] == 7
    assert opened(tmp_path / "run" / "training.safetensors")[1]["progress"]["step"] == 7
    run.resume()
    until(lambda: run.view.state == "finished")
    run.close()
    run.join()
    assert facts_of(tmp_path / "run")["step"] == 12
    for name, things in (("frames", run.view.frames), ("snapshots", run.view.snapshots)):
        kept = sorted(int(path.stem) for path in (tmp_path / "run" / name).iterdir())
        assert kept == [one.step for one in things]


def test_what_the_run_has_thinned_out_leaves_the_folder_too(tiny, make_run, until, tmp_path, monkeypatch):
    monkeypatch.setattr("transformer.recording.reel.MOST", 20)
    run = make_run(tiny(steps=60, evaluate_every=60), archive=Archive(tmp_path / "run"))
    assert run.advance(50).wait(30)  # alone: a frame each
    assert run.wait(30)
    assert len(run.view.frames) <= 20
    run.close()
    run.join()
    kept = sorted(int(path.stem) for path in (tmp_path / "run" / "frames").iterdir())
    assert kept == [frame.step for frame in run.view.frames]


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
    assert sorted(path.name for path in folder.iterdir()) == [
        "frames",
        "run.lock",
        "snapshots",
        "writer.json",
    ]
    with pytest.raises(InputError, match="^Another process trains the run in "):
        Archive(folder)
    first.close()
    run = make_run(tiny(), archive=Archive(folder), live=False)
    run.start()
    until(lambda: run.view.state == "finished" and run._worker.kept)
    assert facts_of(folder)["state"] == "finished"


@pytest.mark.parametrize("name", ["frames/000000.safetensors", "frames", "photos/", "run.json"])
def test_a_folder_with_a_lock_and_anything_else_is_refused(tmp_path, name):
    file = tmp_path / name
    if name.endswith("/"):
        file.mkdir()
    else:
        file.parent.mkdir(exist_ok=True)
        file.write_text("")
    (tmp_path / "run.lock").write_text("")
    with pytest.raises(InputError, match="is not empty; choose a new one"):
        Archive(tmp_path)


def test_a_folder_that_cannot_be_made_is_refused_with_the_reason(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError) as refused:
        Archive(tmp_path / "file" / "run")
    assert (
        str(refused.value) == f"The folder {tmp_path / 'file' / 'run'} cannot be written (Not a directory)."
    )


def test_a_run_that_fails_leaves_its_reason_and_its_losses_on_disk(tiny, make_run, until, tmp_path):
    run = make_run(tiny(learning_rate=1e30), archive=Archive(tmp_path / "run"))
    run.start()
    until(lambda: run.view.state == "failed")
    run.join()
    facts = facts_of(tmp_path / "run")
    assert (facts["state"], facts["reason"]) == ("failed", run.view.reason)
    table = pd.read_parquet(tmp_path / "run" / "metrics.parquet")
    assert table["loss"].tolist() == run.view.metrics.column("loss").tolist()


# How often, and what that costs.


class Clock:
    """A clock that is put forward by hand."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.mark.parametrize(("copying", "again"), [(0.0, 1.0), (0.01, 1.0), (0.05, 1.0), (0.5, 10.0)])
def test_the_folder_is_a_second_old_at_most_unless_copies_take_long(
    tiny, make_run, tmp_path, clock, copying, again
):
    """Then only a twentieth of the run's time goes into them."""
    run = make_run(tiny(), live=False)
    assert run.ready.wait(20)
    archive = Archive(tmp_path / "run")
    assert archive.due

    def pack():
        clock.now += copying
        return run._worker._training()

    began = clock.now
    archive.begin(run.view, run.task, lambda: ("ox",))
    archive.hand(run.view, pack)
    archive.close()
    for since, due in ((0.0, False), (0.99 * again, False), (1.01 * again, True)):
        clock.now = began + since
        assert archive.due is due


def test_a_run_hands_over_what_there_is_whenever_that_is_due(tiny, make_run, until, tmp_path, monkeypatch):
    handed = []
    hand = Archive.hand

    def noted(archive, view, pack):
        handed.append((view.step, time.monotonic()))
        hand(archive, view, pack)

    monkeypatch.setattr(Archive, "hand", noted)
    monkeypatch.setattr(module, "KEPT_SECONDS", 0.1)
    run = make_run(tiny(steps=10_000, evaluate_every=10_000), archive=Archive(tmp_path / "run"), live=False)
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
WRITERS = ("store", "write_frame", "write_whole")


@pytest.fixture
def disk(monkeypatch):
    """Full from now on, for some of the ways in which files are written; or empty again."""
    writing = {name: getattr(module, name) for name in WRITERS}

    def refuse(*_):
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
    for name, things in (("frames", view.frames), ("snapshots", view.snapshots)):
        kept = sorted(int(path.stem) for path in (folder / name).iterdir())
        assert kept == [one.step for one in things]
    return True


@pytest.mark.parametrize("names", [WRITERS, *((name,) for name in WRITERS)], ids=" ".join)
def test_where_the_disk_refuses_the_run_finishes_in_memory_says_so_and_is_kept_later(
    tiny, make_run, until, losses, tmp_path, disk, names
):
    run = make_run(tiny(), archive=Archive(tmp_path / "run"), live=False)
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


def test_a_run_that_is_closed_while_the_disk_refuses_ends_and_has_said_so(
    tiny, make_run, until, tmp_path, disk
):
    disk(True)
    run = make_run(tiny(), archive=Archive(tmp_path / "run"), live=False)
    run.start()
    until(lambda: run.view.state == "finished")
    run.close()
    run.join(10)
    assert not run._thread.is_alive()
    assert run.view.unsaved == FULL
    assert not (tmp_path / "run" / "run.json").exists()


def test_a_mistake_of_ours_while_keeping_is_told_and_ends_no_run(
    tiny, make_run, until, tmp_path, monkeypatch
):
    def wrong(*_):
        raise TypeError("a step is no word")

    monkeypatch.setattr(module, "write_frame", wrong)
    run = make_run(tiny(), archive=Archive(tmp_path / "run"), live=False)
    run.start()
    until(lambda: run.view.state == "finished" and run.view.unsaved)
    assert "is not on disk (TypeError: a step is no word). It goes on in memory" in run.view.unsaved

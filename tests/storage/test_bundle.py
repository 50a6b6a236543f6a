"""A run as one file: it is restored completely and trains on to the same losses; other files are refused."""

from __future__ import annotations

import io
import json
import os
import time
import zipfile
from itertools import product

import numpy as np
import pytest

from transformer.errors import InputError
from transformer.runs import remote
from transformer.runs.limits import Limits
from transformer.runs.registry import Registry
from transformer.storage import bundle as module
from transformer.storage.bundle import pack, unpack
from transformer.storage.library import Library
from transformer.storage.tokens import new_token


@pytest.fixture
def servers(tmp_path):
    """The registry where a run is trained, and the registry where its file is opened."""
    both = tuple(Registry(Limits(), Library(tmp_path / name)) for name in ("home", "stage"))
    yield both
    for registry in both:
        registry.close()


@pytest.fixture
def paused(servers, tiny, until):
    """A visitor's run, paused after 5 of 12 steps and saved on disk."""
    home, _ = servers
    run = home.draft(tiny(steps=12), ("frog", "ox"), token=new_token())
    home.adopt(run)
    run.advance(5).result(30)
    assert run.wait(30)
    until(
        lambda: home.library.facts_of_run(run.id) is not None and home.library.facts_of_run(run.id).step == 5
    )
    return run


def bring(registry, data, token="a token"):
    return registry.open_file(data, visitor="somebody", token=token).id


def rewritten(data, change):
    """Return the archive after `change` has modified its files, a dict by name."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        files = {name: file.read(name) for name in file.namelist()}
    change(files)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in files.items():
            file.writestr(name, content)
    return made.getvalue()


def saying(*part, **values):
    """Return a function that changes values in run.json, or a part of it, and removes the training state."""

    def change(files):
        facts = changed = json.loads(files["run.json"])
        for name in part:
            changed = changed[name]
        changed.update(values)
        files["run.json"] = json.dumps(facts).encode()
        del files["training.safetensors"]

    return change


def test_a_temporary_folder_that_a_killed_server_left_is_removed_and_a_recent_one_stays(servers, paused):
    home, stage = servers
    for name, age in ((".opening-old", 7200), (".opening-new", 60)):
        (stage.library.folder / name / "run").mkdir(parents=True)
        (stage.library.folder / name / "run" / "metrics.parquet").write_bytes(b"half")
        os.utime(stage.library.folder / name, (time.time() - age,) * 2)
    brought = bring(stage, home.file_of(paused))
    kept = {path.name for path in stage.library.folder.iterdir()}
    assert kept == {".opening-new", brought}


def test_a_run_opened_from_a_file_shows_the_same_and_trains_on_to_the_same_losses(
    servers, paused, losses, until
):
    home, stage = servers
    id_ = bring(stage, home.file_of(paused), token="mine")
    run = stage.control(id_, "mine")
    assert run.ready.wait(30)
    there, here = paused.view, run.view
    assert id_ == here.id != there.id
    assert (here.state, here.reason) == ("paused", "Saved as a file at step 5.")
    assert here.config == there.config
    assert here.frames.steps == there.frames.steps == tuple(range(6))
    for one, other in zip(here.frames, there.frames, strict=True):
        for row, site in product(range(2), other.axes):
            np.testing.assert_array_equal(one.map(row, site), other.map(row, site))
    assert [one.step for one in here.snapshots] == [*range(6)]
    assert [question.text for question in run.questions] == ["frog", "ox"]
    run.resume()
    until(lambda: run.view.state == "finished")
    assert run.view.metrics.column("loss").tolist() == losses(paused.config)
    assert paused.view.step == 5


def test_the_visitor_who_opens_a_file_owns_the_new_run_but_not_the_original(servers, paused):
    home, stage = servers
    data = home.file_of(paused)
    secret = (home.library.folder / paused.id / "owner.sha256").read_bytes()
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        assert not [name for name in file.namelist() if secret in file.read(name)]
    here, there = bring(home, data, token="one"), bring(stage, data, token="other")
    assert home.owners.is_owner(here, "one")
    assert not home.owners.is_owner(paused.id, "one")
    assert not home.owners.is_owner(here, "other")
    assert stage.owners.is_owner(there, "other")
    assert len({here, there, paused.id}) == 3


def test_a_run_in_memory_alone_is_packed_without_its_training_state(servers, bundles, tiny_run, monkeypatch):
    _, stage = servers
    id_ = bring(stage, bundles[1], token="mine")
    replay = stage.get(id_)
    assert replay.view.frames.steps == tuple(range(tiny_run.train.steps + 1))
    assert [one.step for one in replay.view.snapshots] == [*replay.view.frames.steps]
    with pytest.raises(InputError, match="cannot be changed here"):
        stage.control(id_, "mine")
    monkeypatch.setattr(remote, "FREE_SECONDS", 0.0)
    assert stage.get(id_) is replay  # not read again on every request


def test_replays_leave_memory_before_runs_of_visitors(tmp_path, tiny, bundles):
    stage = Registry(Limits(kept=2), Library(tmp_path / "stage"))
    for started in (stage.draft(tiny(seed=1)), stage.draft(tiny(seed=2))):
        stage.start(started)
        assert started.wait(60)
    first, _ = bring(stage, bundles[1]), bring(stage, bundles[1])
    assert first not in [one.id for one in stage.listed()]
    assert stage.facts_of_run(first).state == "finished"
    assert stage.get(first).view.frames
    for one in stage.listed():
        one.put_away()


def test_a_run_trained_on_a_gpu_is_opened_with_the_device_auto_where_there_is_no_gpu(servers, bundles):
    _, stage = servers
    id_ = bring(stage, rewritten(bundles[0], saying("config", device="cuda")))
    assert stage.get(id_).view.config.device == "auto"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda files: files.pop("run.json"), "there is no run.json in it"),
        (lambda files: files.update({"weights.bin": bytes(30_000_000)}), "more than a run of its size"),
        (lambda files: files.update({"training.safetensors": b"{}"}), "cannot be read"),
        (saying("config", "model", n_heads="__import__('os').system('true')"), "n_heads"),
        (saying("config", "train", steps=100_001), "100,001 steps are too many for this server"),
        (saying(planned=10**12), "1,000,000,000,000 steps are too many for this server"),
        (saying(format=4), "has format 4; this version reads format 3"),
        (saying(step=13), "its numbers are none of a run"),
        (saying(words=["not4letters"]), "letters"),
        (saying(words=["frog"] * 13), "This file has 13 tracked words; a run has at most 12"),
        (saying(reason=os.urandom(2_000_000).hex()), "run.json is too large"),
    ],
)
def test_an_invalid_run_in_a_file_is_refused_with_the_reason_and_leaves_nothing(
    servers, bundles, change, why
):
    _, stage = servers
    data = rewritten(bundles[0], change)
    with pytest.raises(InputError, match=why) as refused:
        bring(stage, data)
    assert str(stage.library.folder) not in str(refused.value)
    assert list(stage.library.folder.iterdir()) == []


def test_unexpected_names_and_names_outside_the_folder_are_ignored(servers, bundles, tmp_path):
    _, stage = servers
    names = ["../outside.json", "/outside.json", "weights.bin/../../outside.bin", "owner.sha256", "run.lock"]
    names += ["x/../frames.bin", "x\\frames.bin", "x/run.json", "./metrics.parquet"]
    added = dict.fromkeys(names, b"it was written")
    id_ = bring(stage, rewritten(bundles[0], lambda files: files.update(added)))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if path.read_bytes() == b"it was written"]
    assert stage.owners.is_owner(id_, "a token")


def named(n):
    """Return an archive of n empty files."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for i in range(n):
            file.writestr(f"{i:0100d}", b"")
    return made.getvalue()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        *((data, "not a zip file") for data in (b"", b"PK", b"no archive at all" * 1000)),
        (named(12_000), "it names too many files"),  # refused by the total size of its names
    ],
    ids=["empty", "cut off", "text", "names"],
)
def test_an_invalid_archive_is_refused_with_advice(data, why):
    with pytest.raises(InputError, match=f"{why}.*Choose a file of"):
        unpack(data, None)


def test_an_opened_run_counts_towards_the_limit_of_its_visitor(servers, paused):
    home, stage = servers
    data = home.file_of(paused)
    for _ in range(Limits().per_visitor):
        bring(stage, data)
    with pytest.raises(InputError, match="You have 4 of 4 unfinished runs"):
        bring(stage, data)


def test_a_file_larger_than_the_server_allows_is_refused_unread(tmp_path):
    registry = Registry(Limits(upload_mb=1), Library(tmp_path))
    with pytest.raises(InputError, match=r"This file has 1\.1 MB; this server allows 1 MB"):
        bring(registry, bytes(1_100_000))


def test_a_file_keeps_every_frame_and_as_many_evenly_spaced_snapshots_as_fit(
    servers, tiny, until, monkeypatch
):
    home, stage = servers
    run = home.draft(tiny(steps=40, evaluate_every=40), ("frog",), token=new_token())
    home.start(run)
    until(lambda: run.view.state == "finished" and run.kept)
    each = run.view.snapshots[0].nbytes
    whole = len(home.file_of(run))
    monkeypatch.setattr(module, "MOST_BYTES", whole - 25 * each)
    data = home.file_of(run)
    assert len(data) <= whole - 24 * each
    view = stage.get(bring(stage, data)).view
    assert view.frames.steps == tuple(range(41))
    kept = [one.step for one in view.snapshots]
    assert 6 <= len(kept) <= 16
    assert {0, 40, *(moment.step for moment in view.moments)} <= {*kept}
    assert max(np.diff(kept)) <= 8


def test_a_run_can_be_packed_while_it_trains(servers, tiny, until):
    home, stage = servers
    run = home.draft(tiny(steps=100_000), token=new_token())
    home.start(run)
    until(
        lambda: home.library.facts_of_run(run.id) is not None and home.library.facts_of_run(run.id).step > 0
    )
    data = pack(home.library.folder / run.id)
    assert run.view.state == "training"
    run.stop()
    replay = stage.get(bring(stage, data))
    assert replay.ready.wait(30)
    assert replay.view.state == "paused"
    assert 0 < replay.view.step <= run.view.step
    assert replay.view.frames[-1].step <= replay.view.step

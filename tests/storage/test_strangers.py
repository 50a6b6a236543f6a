"""The file of a stranger: its run is copied part by part and trains on to the same losses."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import product

import numpy as np
import pytest

from tests.conftest import facts_of, with_facts
from tests.storage.conftest import finished_run, with_room_for
from transformer.errors import InputError
from transformer.runs import file_run
from transformer.runs.limits import Limits
from transformer.runs.registry import Registry
from transformer.storage import file
from transformer.storage import library as module
from transformer.storage.library import Library
from transformer.storage.saved import read_run
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
    until(lambda: run.kept)
    return run


@pytest.fixture(scope="module")
def in_memory(tiny_run, tmp_path_factory):
    """A finished run as a file: packed from memory, and as it is kept."""
    path = tmp_path_factory.mktemp("files") / "run.headlight"
    run = finished_run(tiny_run, path, words=("frog",))
    return module.packed(run.view, ("frog",), None), path.read_bytes()


def bring(registry, data, token="a token"):
    return registry.open_file(data, visitor="somebody", token=token).id


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
    assert [snapshot.step for snapshot in here.snapshots] == [*range(6)]
    assert [question.text for question in run.questions] == ["frog", "ox"]
    run.resume()
    until(lambda: run.view.state == "finished")
    assert run.view.metrics.column("loss").tolist() == losses(paused.config)
    assert paused.view.step == 5


def test_the_visitor_who_opens_a_file_owns_the_new_run_but_not_the_original(servers, paused):
    home, stage = servers
    data = home.file_of(paused)
    assert home.library.owner(paused.id).encode() not in data
    here, there = bring(home, data, token="one"), bring(stage, data, token="other")
    assert home.owners.is_owner(here, "one")
    assert not home.owners.is_owner(paused.id, "one")
    assert not home.owners.is_owner(here, "other")
    assert stage.owners.is_owner(there, "other")
    assert len({here, there, paused.id}) == 3


def test_a_run_in_memory_alone_is_packed_without_its_training_state(
    servers, in_memory, tiny_run, monkeypatch
):
    _, stage = servers
    id_ = bring(stage, in_memory[0], token="mine")
    replay = stage.get(id_)
    assert replay.view.frames.steps == tuple(range(tiny_run.train.steps + 1))
    assert [snapshot.step for snapshot in replay.view.snapshots] == [*replay.view.frames.steps]
    with pytest.raises(InputError, match="cannot be changed here"):
        stage.control(id_, "mine")
    monkeypatch.setattr(file_run, "FREE_SECONDS", 0.0)
    assert stage.get(id_) is replay  # not read again on every request


def test_replays_leave_memory_before_runs_of_visitors(tmp_path, tiny, in_memory):
    stage = Registry(Limits(kept=2), Library(tmp_path / "stage"))
    for started in (stage.draft(tiny(seed=1)), stage.draft(tiny(seed=2))):
        stage.start(started)
        assert started.wait(60)
    first, _ = bring(stage, in_memory[0]), bring(stage, in_memory[0])
    assert first not in [one.id for one in stage.listed()]
    assert stage.facts_of_run(first).state == "finished"
    assert stage.get(first).view.frames
    for one in stage.listed():
        one.put_away()


def with_config(part=None, **values):
    """Return a function that changes the configuration of a run in its file."""

    def change(path):
        config = facts_of(path)["config"]
        (config[part] if part else config).update(values)
        with_facts(path, config=config)

    return change


def changed(data, change, tmp_path):
    path = tmp_path / "changed.headlight"
    path.write_bytes(data)
    change(path)
    return path.read_bytes()


def test_a_run_trained_on_a_gpu_is_opened_with_the_device_auto_where_there_is_no_gpu(
    servers, in_memory, tmp_path
):
    id_ = bring(servers[1], changed(in_memory[1], with_config(device="cuda"), tmp_path))
    assert servers[1].get(id_).view.config.device == "auto"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda path: path.write_bytes(b""), "This file is "),
        (lambda path: path.write_bytes(path.read_bytes()[:70_000]), "This file is damaged"),
        (with_config("model", n_heads="__import__('os').system('true')"), "n_heads"),
        (with_config("model", d_modle=12), "no setting 'd_modle'; did you mean 'd_model'"),
        (with_config("train", steps=100_001), "100,001 steps are too many for this server"),
        (lambda path: with_facts(path, planned=10**12), "1,000,000,000,000 steps are too many"),
        (lambda path: with_facts(path, step=13), "its numbers are none of a run"),
        (lambda path: with_facts(path, words=["not4letters"]), "letters"),
        (lambda path: with_facts(path, words=["frog"] * 13), "has 13 tracked words; a run has at most 12"),
    ],
)
def test_an_invalid_run_in_a_file_is_refused_with_the_reason_and_leaves_nothing(
    servers, in_memory, tmp_path, change, why
):
    _, stage = servers
    data = changed(in_memory[1], change, tmp_path)
    with pytest.raises(InputError, match=why) as refused:
        bring(stage, data)
    assert str(stage.library.folder) not in str(refused.value)
    assert list(stage.library.folder.iterdir()) == []


@pytest.mark.parametrize("pages", [3, 12], ids=["while its tables are made", "while it is copied"])
def test_a_file_that_finds_the_disk_full_is_refused_and_leaves_nothing(
    servers, in_memory, monkeypatch, pages
):
    _, stage = servers
    with monkeypatch.context() as full:
        full.setattr(file.sqlite3, "connect", with_room_for(pages))
        with pytest.raises(InputError, match=r"^The run cannot be written .*\(database or disk is full\)"):
            bring(stage, in_memory[1])
    assert list(stage.library.folder.iterdir()) == []
    assert stage.get(bring(stage, in_memory[1])).view.state == "finished"


def test_only_checked_parts_of_a_file_are_copied(servers, in_memory, tmp_path):
    def more(path):
        with closing(sqlite3.connect(path)) as database:
            database.execute("INSERT INTO fact VALUES ('unknown', 'it was written')")
            database.execute("INSERT INTO fact VALUES ('owner', 'it was written')")
            database.execute("INSERT INTO weights VALUES (7777, 'it was written')")
            database.execute("INSERT INTO map VALUES (99, 3, 3, 'it was written')")
            database.commit()

    _, stage = servers
    id_ = bring(stage, changed(in_memory[1], more, tmp_path))
    assert b"it was written" not in stage.library.path_of(id_).read_bytes()
    assert stage.owners.is_owner(id_, "a token")


def test_an_opened_run_counts_towards_the_limit_of_its_visitor(servers, paused):
    home, stage = servers
    data = home.file_of(paused)
    for _ in range(Limits().per_visitor):
        bring(stage, data)
    with pytest.raises(InputError, match="You have 12 of 12 unfinished runs"):
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
    each, frames = run.view.snapshots[0].nbytes, run.view.frames.nbytes
    monkeypatch.setattr(module, "MOST_BYTES", frames + 20 * each)
    view = stage.get(bring(stage, home.file_of(run))).view
    assert view.frames.steps == tuple(range(41))
    kept = [snapshot.step for snapshot in view.snapshots]
    assert 6 <= len(kept) <= 20
    assert {0, 40, *(moment.step for moment in view.moments)} <= {*kept}
    assert max(np.diff(kept)) <= 8


def test_a_run_can_be_taken_away_while_it_trains(servers, tiny, until):
    home, stage = servers
    run = home.draft(tiny(steps=100_000), token=new_token())
    home.start(run)
    until(lambda: (facts := home.library.facts_of_run(run.id)) is not None and facts.step > 0)
    data = home.file_of(run)
    assert run.view.state == "training"
    run.stop()
    replay = stage.get(bring(stage, data))
    assert replay.ready.wait(30)
    assert replay.view.state == "paused"
    assert 0 < replay.view.step <= run.view.step
    assert replay.view.frames[-1].step <= replay.view.step


def test_no_run_is_opened_beyond_the_disk_limit(servers, in_memory):
    _, stage = servers
    packed, _ = in_memory
    first = bring(stage, packed)
    size = sum(path.stat().st_size for path in stage.library.folder.iterdir())
    with pytest.raises(InputError, match="The runs on this server take the"):
        stage.library.open_file(packed, "digest", 2, lambda saved: None, size + len(packed) - 1)
    assert [path.stem for path in stage.library.folder.glob("*.headlight")] == [first]


def test_an_opened_run_writes_no_event_files(servers, in_memory, tmp_path):
    path = tmp_path / "run.headlight"
    path.write_bytes(in_memory[1])
    config = facts_of(path)["config"]
    with_facts(path, config={**config, "train": {**config["train"], "tensorboard": True}})
    assert read_run(path).view.config.train.tensorboard
    opened = servers[1].get(bring(servers[1], path.read_bytes()))
    assert not opened.view.config.train.tensorboard


def test_a_run_that_cannot_be_opened_after_all_leaves_no_file(servers, in_memory, monkeypatch):
    _, stage = servers
    monkeypatch.setattr(stage, "get", lambda id_: None)
    with pytest.raises(InputError, match="cannot be opened on this server"):
        bring(stage, in_memory[0])
    assert [*stage.library.folder.iterdir()] == []

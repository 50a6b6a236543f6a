"""Runs on disk by id: none is found outside the folder, changed without its token or lost by eviction."""

from __future__ import annotations

import shutil
import time
from types import SimpleNamespace

import pytest

from tests.conftest import with_facts
from tests.runs.resuming.conftest import copied
from transformer.errors import InputError
from transformer.runs.limits import Limits
from transformer.runs.registry import Registry
from transformer.storage import archive
from transformer.storage import library as module
from transformer.storage.archive import Archive
from transformer.storage.file import Store, reading
from transformer.storage.library import Library
from transformer.storage.saved import read_run
from transformer.storage.tokens import digest_of, is_token_of, new_token


@pytest.fixture
def registry(tmp_path):
    return Registry(Limits(kept=1), Library(tmp_path / "runs"))


@pytest.fixture
def finished(registry, tiny, until):
    """A visitor's finished run, and its token."""
    token = new_token()
    run = registry.draft(tiny(), ("frog", "ox"), token=token)
    registry.start(run)
    until(lambda: run.view.state == "finished" and run.kept)
    yield run, token
    registry.close()


def test_a_run_can_be_changed_only_with_its_token_and_watched_without_one(registry, finished, tiny):
    run, token = finished
    assert registry.get(run.id) is run
    assert registry.control(run.id, token) is run
    for wrong in ("", token[:-1], token + "A", run.id, digest_of(token)):
        assert not registry.owners.is_owner(run.id, wrong)
        with pytest.raises(InputError, match="Only the owner of this run can change it"):
            registry.control(run.id, wrong)
    nobodys = registry.draft(tiny())
    assert not registry.owners.is_owner(nobodys.id, "")
    registry.discard(nobodys.id)
    nobodys.join()


def test_looking_up_unknown_ids_reads_each_file_only_once(tmp_path, tiny, make_run, until, monkeypatch):
    folders = tmp_path / "runs"
    first = make_run(tiny(), archive=Archive(folders / "night 0"))
    first.start()
    until(lambda: first.view.state == "finished" and first.kept)
    first.close()
    first.join()
    for n in range(1, 5):
        shutil.copy(folders / "night 0.headlight", folders / f"night {n}.headlight")
        with_facts(folders / f"night {n}.headlight", id=new_token())
    read, library = [], Library(folders)
    note = lambda path: read.append(path.stem) or reading(path)  # noqa: E731
    monkeypatch.setattr(module, "reading", note)
    for _ in range(50):
        assert library.facts_of_run(new_token()) is None
        assert library.owner(new_token()) is None
    assert sorted(name for name in read if name.startswith("night")) == [f"night {n}" for n in range(5)]
    read.clear()
    views = library.published()
    assert len(views) == 5
    assert read == []  # nothing has changed
    assert library.facts_of_run(views["night 3"].id).id == views["night 3"].id
    assert library.owner(views["night 3"].id) is None
    assert read == []
    with_facts(folders / "night 3.headlight", name="changed")
    assert library.published()["night 3"].name == "changed"
    assert read == ["night 3"]


def test_invalid_and_guessed_ids_find_no_run(registry, finished):
    ids = ["..", "../runs", "/etc", ".", "", "a/b", "x" * 22 + "/..", "\0" * 22, "é" * 22, "%2e%2e"]
    for id_ in (*ids, new_token()):
        assert registry.get(id_) is None
        assert registry.facts_of_run(id_) is None
        assert not registry.owners.is_owner(id_, finished[1])


def test_a_run_is_listed_as_training_only_while_a_process_writes_its_file(tmp_path, tiny, make_run, until):
    run = make_run(tiny(steps=100_000), archive=Archive(tmp_path / "night"))
    library = Library(tmp_path)
    run.start()
    until(lambda: library.published() and library.published()["night"].state == "training")
    copied(tmp_path / "night.headlight", tmp_path / "copy.headlight")  # as a killed process leaves it
    assert {name: view.state for name, view in library.published().items()} == {
        "copy": "paused",
        "night": "training",
    }


def test_a_run_whose_file_cannot_be_made_stays_in_memory_and_reports_it(tiny, until, tmp_path):
    (tmp_path / "runs").write_text("a file stands here")
    registry = Registry(Limits(), Library(tmp_path / "runs"))
    run = registry.draft(tiny())
    registry.start(run)
    until(lambda: run.view.state == "finished")
    assert "is not saved on disk (File exists)" in run.view.unsaved
    run.close()
    run.join()


def test_only_the_owner_sets_the_step_that_followers_are_shown(registry, finished):
    run, token = finished
    registry.owners.show(run.id, new_token(), 3)
    assert registry.owners.shown(run.id) is None
    registry.owners.show(run.id, token, 3)
    assert registry.owners.shown(run.id) == 3


def test_a_token_is_not_on_disk_but_can_be_verified(registry, finished, tmp_path, until):
    run, token = finished
    until(lambda: run.kept)  # the thread of the archive has finished writing
    kept = [path for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    assert len(kept) > 0
    assert all(token.encode() not in path.read_bytes() for path in kept)
    assert is_token_of(token, registry.library.owner(run.id))


# Removing runs.


def test_only_the_owner_removes_and_restores_a_run_and_nothing_of_it_is_lost(registry, finished, tmp_path):
    run, token = finished
    file = registry.library.path_of(run.id)
    assert file.exists()
    for wrong in ("", new_token(), run.id, digest_of(token)):
        with pytest.raises(InputError, match="Only the owner of this run can remove it"):
            registry.remove(run.id, wrong)
    assert registry.get(run.id) is run
    registry.remove(run.id, token)
    assert not file.exists()
    assert registry.get(run.id) is registry.facts_of_run(run.id) is None
    assert registry.library.published() == {}
    with pytest.raises(InputError, match="no longer on this server"):
        registry.remove(run.id, token)
    for wrong in ("", new_token()):
        with pytest.raises(InputError, match="this one is gone"):
            registry.restore(run.id, wrong)
    before = run.view
    registry.restore(run.id, token)
    again = registry.get(run.id)
    assert again is not run
    assert (again.view.step, again.view.state, again.view.frames.steps) == (
        before.step,
        before.state,
        before.frames.steps,
    )
    assert registry.control(run.id, token) is again


def test_a_run_whose_newest_change_is_not_written_yet_is_removed_with_it(registry, finished, monkeypatch):
    run, token = finished
    write = archive.Mirror.write
    monkeypatch.setattr(archive.Mirror, "write", lambda *args: time.sleep(0.3) or write(*args))
    run.rename("renamed").result(30)
    assert not run.kept
    registry.remove(run.id, token)
    registry.restore(run.id, token)
    assert registry.get(run.id).view.name == "renamed"


def test_a_run_whose_newest_change_cannot_be_written_keeps_its_file(registry, finished, monkeypatch):
    run, token = finished

    def fails(*_):
        time.sleep(0.3)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archive.Mirror, "write", fails)
    run.rename("renamed").result(30)
    with pytest.raises(InputError, match="not on disk; they could not be restored"):
        registry.remove(run.id, token)
    assert registry.library.path_of(run.id).exists()
    assert registry.get(run.id).view.state == "finished"


def test_a_run_that_is_not_on_disk_is_not_removed(tiny, until):
    registry, token = Registry(Limits(), Library(None)), new_token()
    run = registry.draft(tiny(), token=token)
    registry.start(run)
    until(lambda: run.view.state == "finished")
    with pytest.raises(InputError, match="not on disk; they could not be restored"):
        registry.remove(run.id, token)
    assert registry.get(run.id) is run
    registry.close()


def test_a_run_that_trains_here_or_in_another_process_is_not_removed(registry, tiny, until):
    token = new_token()
    run = registry.draft(tiny(steps=100_000), token=token)
    registry.start(run)
    until(lambda: run.view.step > 0)
    with pytest.raises(InputError, match="stop it first"):
        registry.remove(run.id, token)
    until(lambda: registry.library.owner(run.id))
    other = Registry(Limits(), Library(registry.library.folder))  # as another server with the same folder
    with pytest.raises(InputError, match="Another process trains this run"):
        other.remove(run.id, token)
    run.pause().result(30)
    registry.remove(run.id, token)
    registry.restore(run.id, token)
    assert registry.get(run.id).view.state == "paused"
    registry.close()


def test_a_removed_run_is_deleted_after_an_hour_or_when_the_disk_limit_needs_its_room(full, monkeypatch):
    registry, runs, _ = full
    tokens = {run.id: new_token() for run in runs}
    for id_, token in tokens.items():
        registry.owners.set_token(id_, token)
    removed = registry.library.folder / "removed"
    monkeypatch.setattr(module.time, "time", lambda: 1_000_000.0)
    registry.remove(runs[1].id, tokens[runs[1].id])
    assert len([*removed.iterdir()]) == 1
    monkeypatch.setattr(module.time, "time", lambda: 1_003_700.0)
    registry.remove(runs[2].id, tokens[runs[2].id])
    assert [path.name for path in removed.iterdir()] == [f"1003700.{runs[2].id}.headlight"]
    make_room(registry, nbytes_in(registry.library.folder))
    assert len([*removed.iterdir()]) == 1
    make_room(registry, nbytes_in(registry.library.folder) - 100_000)  # less than the removed file takes
    assert [*removed.iterdir()] == []
    assert kept_steps(registry.library, runs[0]) == [*range(61)]


# The disk limit.


def make_room(registry, nbytes):
    """Make room on disk as if `nbytes` were the limit."""
    registry.limits = SimpleNamespace(disk_mb=nbytes / 1e6)
    registry.make_room()


def nbytes_in(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def kept_steps(library, run):
    return [snapshot.step for snapshot in read_run(library.path_of(run.id)).view.snapshots]


@pytest.fixture
def full(tmp_path, tiny, until, monkeypatch):
    """A registry, its three ended runs (the first was viewed last), and the size of its folder."""
    monkeypatch.setattr(module, "ROOM_SECONDS", 0.0)
    registry, runs = Registry(Limits(training=1), Library(tmp_path / "runs")), []
    for seed in range(3):
        runs.append(registry.draft(tiny(seed=seed, steps=60, evaluate_every=60), token=new_token()))
        registry.start(runs[-1])
        until(lambda: runs[-1].view.state == "finished" and runs[-1].kept)
    runs[0].look()
    yield registry, runs, nbytes_in(registry.library.folder)
    registry.close()


def test_beyond_the_limit_only_weights_are_thinned_and_first_those_of_runs_viewed_longest_ago(full):
    registry, runs, nbytes = full
    each, library = runs[0].view.snapshots[0].nbytes, registry.library
    make_room(registry, nbytes)
    assert all(kept_steps(library, run) == [*range(61)] for run in runs)
    assert library.thinned == set()
    make_room(registry, nbytes - 20 * each)
    assert nbytes_in(library.folder) <= nbytes - 20 * each
    kept = {i: kept_steps(library, run) for i, run in enumerate(runs)}
    assert [len(steps) for steps in kept.values()] == [61, len(kept[1]), 61]
    assert {0, 60, *(moment.step for moment in runs[1].view.moments)} <= {*kept[1]}
    assert 16 <= len(kept[1]) <= 20
    assert library.thinned == {runs[1].id}
    assert [snapshot.step for snapshot in runs[1].view.snapshots] == kept[1]  # the view shows what is left
    make_room(registry, 0)
    assert all(len(kept_steps(library, run)) <= 3 + len(run.view.moments) for run in runs)
    assert all(read_run(library.path_of(run.id)).view.frames.steps == tuple(range(61)) for run in runs)


def test_a_run_that_is_only_on_disk_is_thinned_unless_another_process_writes_it(full, tmp_path):
    registry, runs, _ = full
    registry.close()
    held = Store(registry.library.path_of(runs[2].id), new=False)
    again = Registry(Limits(), Library(tmp_path / "runs"))
    make_room(again, 0)
    held.close()
    left = [len(kept_steps(registry.library, run)) for run in runs]
    assert left[2] == 61
    assert max(left[:2]) < 10


def test_the_disk_limit_holds_while_runs_train(tmp_path, tiny, until, monkeypatch):
    monkeypatch.setattr(module, "ROOM_SECONDS", 0.0)
    monkeypatch.setattr(archive, "KEPT_SECONDS", 0.05)
    registry = Registry(Limits(training=2), Library(tmp_path / "runs"))
    config = tiny(steps=120, evaluate_every=40)
    runs = [registry.draft(config.with_changes(seed=seed), token=new_token()) for seed in range(2)]
    for run in runs:
        registry.start(run)
    registry.limits = SimpleNamespace(disk_mb=3)
    thinned_while_training = False
    while not all(run.view.state == "finished" and run.kept for run in runs):
        training = any(run.view.state == "training" for run in runs)
        thinned_while_training |= training and bool(registry.library.thinned)
        time.sleep(0.02)
    assert thinned_while_training
    assert nbytes_in(registry.library.folder) <= 3.1e6
    assert all(run.view.frames.steps == tuple(range(121)) for run in runs)
    registry.close()

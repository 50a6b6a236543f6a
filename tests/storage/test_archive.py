"""A run on disk: one complete file that is kept up to date, and disk errors that are reported."""

from __future__ import annotations

import io
import json
import sqlite3
import struct
import time
from contextlib import closing
from dataclasses import asdict
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import load
from tensorboardX import record_writer
from tensorboardX.proto.event_pb2 import Event
from tokenizers import Tokenizer

from tests.conftest import change, fact_of, facts_of
from tests.storage.conftest import finished_run
from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.storage import archive as module
from transformer.storage import file
from transformer.storage.archive import Archive
from transformer.storage.file import Store, Taken
from transformer.storage.saved import read_run


def is_whole(path, view):
    """Assert that the file holds all that the view has, and return True."""
    assert (facts_of(path)["state"], facts_of(path)["step"]) == (view.state, view.step)
    found = read_run(path).view
    assert found.metrics.column("loss").tolist() == view.metrics.column("loss").tolist()
    assert found.frames.steps == view.frames.steps
    assert [snapshot.step for snapshot in found.snapshots] == [snapshot.step for snapshot in view.snapshots]
    return True


@pytest.fixture(scope="module")
def archived(tiny_run, tmp_path_factory):
    """A finished run and its file."""
    path = tmp_path_factory.mktemp("runs") / "first.headlight"
    config = tiny_run.with_changes(steps=60, evaluate_every=20)
    return finished_run(config, path, words=("frog", "ox")), path


def test_an_ended_run_is_one_file_that_says_what_it_is(archived):
    run, path = archived
    assert [one.name for one in path.parent.iterdir()] == ["first.headlight"]
    with closing(sqlite3.connect(path)) as database:
        pragmas = ("application_id", "user_version", "page_size", "auto_vacuum", "freelist_count")
        found = [database.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas]
        assert found == [0x484C4454, 1, 65536, 2, 0]
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        (sizes,) = database.execute("SELECT (SELECT * FROM pragma_page_count) * 65536").fetchone()
    assert sizes == path.stat().st_size
    assert is_whole(path, run.view)


def test_the_fact_run_holds_the_configuration_and_the_final_state(archived):
    run, path = archived
    facts, view = facts_of(path), run.view
    assert RunConfig.from_json(json.dumps(facts.pop("config"))) == view.config
    names = ("id", "state", "step", "planned", "seconds", "device", "words")
    assert [facts[name] for name in names] == [
        *(run.id, "finished", 60, 60, view.seconds, "cpu"),
        ["frog", "ox"],
    ]
    assert facts["moments"] == [asdict(moment) for moment in view.moments]


def test_other_programs_read_numbers_weights_and_tokenizers(archived):
    run, path = archived
    with closing(sqlite3.connect(path)) as database:
        rows = database.execute("SELECT step, numbers FROM step ORDER BY step").fetchall()
        (weights,) = database.execute("SELECT data FROM weights WHERE step = 60").fetchone()
    assert [step for step, _ in rows] == list(range(1, 61))
    losses = [struct.unpack_from("<d", numbers)[0] for _, numbers in rows]
    assert losses == run.view.metrics.column("loss").tolist()
    found, known = load(weights), run.view.snapshots[-1].weights
    assert {name: array.tobytes() for name, array in found.items()} == {
        name: array.tobytes() for name, array in known.items()
    }
    for side in ("src", "tgt"):
        loaded = Tokenizer.from_str(fact_of(path, f"{side}_tokenizer").decode())
        assert loaded.encode("frog").ids == run.task.src_tokenizer.encode(["frog"])[0]


def test_a_run_is_on_disk_before_it_is_started(tiny, make_run, until, tmp_path):
    run = make_run(tiny(), archive=Archive(tmp_path / "run"), every_step=False)
    until(lambda: facts_of(tmp_path / "run.headlight"))
    facts = facts_of(tmp_path / "run.headlight")
    assert (facts["state"], facts["step"], facts["id"]) == ("idle", 0, run.id)
    assert is_whole(tmp_path / "run.headlight", run.view)


def test_a_run_that_has_already_taken_steps_can_be_saved_from_then_on(tiny, make_run, until, tmp_path):
    run = make_run(tiny(steps=12), every_step=False)
    run.advance(7).result(20.0)
    assert run.wait(20)
    run.keep_in(Archive(tmp_path / "run")).result(20.0)
    until(lambda: facts_of(tmp_path / "run.headlight"))
    assert facts_of(tmp_path / "run.headlight")["step"] == 7
    assert read_run(tmp_path / "run.headlight").view.frames.steps == tuple(range(8))
    run.resume()
    until(lambda: run.view.state == "finished")
    run.close()
    run.join()
    assert is_whole(tmp_path / "run.headlight", run.view)


def test_frames_and_weights_that_a_run_thins_out_are_removed_from_its_file_too(tiny, tmp_path, monkeypatch):
    """Frames and weights stay within their limits, and the file lists exactly those that are left."""
    monkeypatch.setattr("transformer.runs.run_recorder.MEMORY_LIMIT", 60_000)
    monkeypatch.setattr("transformer.recording.weights.DISK_LIMIT", 1_000_000)
    monkeypatch.setattr(module, "KEPT_SECONDS", 0.05)
    run = finished_run(tiny(steps=150, evaluate_every=150), tmp_path / "run")
    assert len(run.view.frames) < 100
    with closing(sqlite3.connect(tmp_path / "run.headlight")) as database:
        assert database.execute("SELECT sum(length(data)) FROM weights").fetchone()[0] < 1_200_000
    assert is_whole(tmp_path / "run.headlight", run.view)
    snapshots = read_run(tmp_path / "run.headlight").view.snapshots
    assert {0, 150} <= {snapshot.step for snapshot in snapshots}
    assert len(snapshots) < 75
    assert all(snapshot.weights for snapshot in snapshots)


def test_a_file_that_holds_something_is_refused_and_left_unchanged(archived, tmp_path):
    path = tmp_path / "letter.headlight"
    path.write_text("dear")
    with pytest.raises(InputError, match="no run of Headlight \\(file is not a database\\)"):
        Archive(path)
    assert path.read_text() == "dear"
    before = archived[1].read_bytes()
    with pytest.raises(Taken, match="exists; choose a new one"):
        Archive(archived[1].with_suffix(""))
    assert archived[1].read_bytes() == before


def test_a_file_whose_run_was_killed_before_it_was_saved_takes_another_run(tiny, make_run, until, tmp_path):
    path = tmp_path / "run.headlight"
    first = Archive(path)
    with pytest.raises(Taken, match="^Another process is training the run in "):
        Archive(path)
    first.close()
    run = make_run(tiny(), archive=Archive(path), every_step=False)
    run.start()
    until(lambda: run.view.state == "finished" and run.kept)
    assert facts_of(path)["state"] == "finished"


def test_a_run_hands_the_archive_its_view_at_the_set_interval(tiny, make_run, until, tmp_path, monkeypatch):
    handed = []
    hand = Archive.hand

    def noted(archive, view, *others):
        handed.append((view.step, time.monotonic()))
        hand(archive, view, *others)

    monkeypatch.setattr(Archive, "hand", noted)
    monkeypatch.setattr(module, "KEPT_SECONDS", 0.1)
    config = tiny(steps=10_000, evaluate_every=10_000)
    run = make_run(config, archive=Archive(tmp_path / "run"), every_step=False)
    run.start()
    until(lambda: len(handed) > 5)
    run.close()
    run.join()
    steps, times = zip(*handed, strict=True)
    assert steps[0] <= 1
    assert list(steps[:-1]) == sorted(set(steps[:-1]))
    assert min(np.diff(times)[:-1]) >= 0.1  # the last was handed over because the run was closed
    assert facts_of(tmp_path / "run.headlight")["step"] == steps[-1] == run.view.step


@pytest.mark.parametrize(("seconds", "due"), [(0.9, []), (1.1, [1]), (2.9, [1, 2]), (3.1, [1, 2, 3])])
def test_each_of_n_runs_that_take_turns_is_saved_every_n_seconds(
    tiny, make_run, until, tmp_path, monkeypatch, seconds, due
):
    archive = Archive(tmp_path / "run")
    run = make_run(tiny(), archive=archive)
    run.start().result()
    run.wait()
    until(lambda: archive.whole)
    began = archive._handed_at
    clock = SimpleNamespace(monotonic=lambda: began + seconds, thread_time=time.thread_time)
    monkeypatch.setattr(module, "time", clock)
    assert [runs for runs in (1, 2, 3) if archive.due(runs)] == due


# Disk errors.


@pytest.fixture
def full(monkeypatch):
    """Fill the disk, or empty it again: SQLite's own limit stands for that of the disk."""
    opened, database = [], Store._claim

    def claim(store, **named):
        database(store, **named)
        opened.append(store._database)

    monkeypatch.setattr(Store, "_claim", claim)
    monkeypatch.setattr(module, "AGAIN_SECONDS", 0.05)

    def set_full(is_full):
        for one in opened:
            pages = one.execute("PRAGMA page_count").fetchone()[0] if is_full else 2**30
            one.execute(f"PRAGMA max_page_count = {pages}")

    return set_full


def test_a_run_on_a_full_disk_finishes_in_memory_reports_it_and_is_saved_later(
    tiny, make_run, until, losses, tmp_path, full
):
    path = tmp_path / "run.headlight"
    run = make_run(tiny(steps=60), archive=Archive(path), every_step=False)
    until(lambda: facts_of(path) and run.kept)
    full(True)
    run.start()
    until(lambda: run.view.state == "finished" and run.view.unsaved)
    assert run.view.metrics.column("loss").tolist() == losses(tiny(steps=60))
    assert "are not on disk (database or disk is full)" in run.view.unsaved
    assert facts_of(path)["state"] in ("idle", "training")
    assert read_run(path).can_go_on  # it is of one moment, an earlier one
    full(False)
    until(lambda: not run.view.unsaved)
    assert is_whole(path, run.view)


def test_a_run_whose_file_another_program_holds_learns_the_same_reports_it_and_is_saved_later(
    tiny, make_run, until, losses, tmp_path, monkeypatch
):
    monkeypatch.setattr(module, "AGAIN_SECONDS", 0.05)
    monkeypatch.setattr(file, "WAITING_SECONDS", 0.05)
    path = tmp_path / "run.headlight"
    run = make_run(tiny(), archive=Archive(path), every_step=False)
    until(lambda: run.kept)
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        run.start()
        until(lambda: run.view.state == "finished" and run.view.unsaved)
        assert run.view.metrics.column("loss").tolist() == losses(tiny())
        assert "are not on disk (database is locked)" in run.view.unsaved
        assert facts_of(path)["state"] == "idle"
    until(lambda: not run.view.unsaved)
    assert is_whole(path, run.view)


def scalars(folder):
    """The numbers in all event files of a folder, as {(name, step)}; incomplete records are left out."""
    found = set()
    for path in folder.iterdir():
        data = path.read_bytes()
        while len(data) > 16 and len(data) >= (end := 16 + int.from_bytes(data[:8], "little")):
            event = Event.FromString(data[12 : end - 4])
            found |= {(value.tag, event.step) for value in event.summary.value}
            data = data[end:]
    return found


def test_curves_for_tensorboard_are_refused_on_a_full_disk_and_whole_once_there_is_room(
    archived, tmp_path, monkeypatch
):
    view, is_full = archived[0].view, [True]

    class Disk(io.FileIO):
        def write(self, data):
            if is_full[0]:
                raise OSError(28, "No space left on device")
            return super().write(data)

    monkeypatch.setattr(record_writer, "open_file", lambda path: io.BufferedWriter(Disk(path, "w")))
    board = module.Board(tmp_path / "curves")
    for _ in range(2):
        with pytest.raises(OSError, match="No space left on device"):
            board.note(view)
    is_full[0] = False
    board.note(view)
    board.close()
    losses = [step for name, step in sorted(scalars(tmp_path / "curves")) if name == "loss/training"]
    assert losses == list(range(1, 61))


def test_a_file_that_is_deleted_is_reported_while_the_run_goes_on(tiny, make_run, until, tmp_path):
    run = make_run(tiny(), archive=Archive(tmp_path / "run"), every_step=False)
    until(lambda: run.kept)
    (tmp_path / "run.headlight").unlink()
    run.start()
    until(lambda: run.view.state == "finished" and run.view.unsaved)
    assert "are not on disk (No such file or directory)" in run.view.unsaved


def test_a_writer_whose_file_another_process_took_over_writes_no_more(tiny, make_run, until, tmp_path):
    path = tmp_path / "run.headlight"
    run = make_run(tiny(), archive=Archive(path), every_step=False)
    until(lambda: run.kept)
    change(path, "UPDATE fact SET value = '{}' WHERE name = 'writer'")
    run.start()
    until(lambda: run.view.state == "finished" and run.view.unsaved)
    assert "another process writes this file now" in run.view.unsaved
    assert facts_of(path)["state"] == "idle"


def test_a_programming_error_while_saving_is_reported_and_ends_no_run(
    tiny, make_run, until, tmp_path, monkeypatch
):
    def wrong(*_):
        raise TypeError("a step is no word")

    monkeypatch.setattr("transformer.recording.chunk.as_bytes", wrong)
    run = make_run(tiny(), archive=Archive(tmp_path / "run"), every_step=False)
    run.start()
    until(lambda: run.view.state == "finished" and run.view.unsaved)
    assert "are not on disk (TypeError: a step is no word)" in run.view.unsaved

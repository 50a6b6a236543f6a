"""A run that is not needed is evicted from memory, and reopened once its file is free."""

from __future__ import annotations

import gc
import logging
import subprocess
import sys
import threading
import weakref

import pytest

from tests.runs.conftest import unseen_for
from transformer.errors import InputError
from transformer.runs import any_run, file_run
from transformer.runs.file_run import FileRun
from transformer.runs.owners import Visitor
from transformer.runs.run import Run
from transformer.storage import archive
from transformer.storage.archive import Archive
from transformer.storage.file import Store, is_held
from transformer.storage.tokens import new_token

OTHER = """
import sys, time
from pathlib import Path
from transformer.config import RunConfig
from transformer.storage.library import Library
from transformer.runs.limits import Limits
from transformer.runs.owners import Visitor
from transformer.runs.registry import Registry

registry = Registry(Limits(), Library(Path(sys.argv[1])))
run = registry.draft(RunConfig.from_json(sys.argv[2]), token=sys.argv[3])
registry.start(run)
print(run.id, flush=True)
time.sleep(600)
"""
"""The program of another server, which trains a run of its own."""


@pytest.fixture
def run_of(tiny, until):
    """Start a visitor's run and wait until it finishes or pauses at a step; return it."""

    def start(registry, at=None, token=""):
        run = registry.draft(tiny(), token=token)
        registry.adopt(run)
        if at is None:
            run.start()
        else:
            run.advance(at)
        until(lambda: run.view.state == ("finished" if at is None else "paused"))
        until(lambda: registry.library.folder is None or run.kept)
        return run

    return start


def ask_for_something(registry, tiny):
    draft = registry.draft(tiny(seed=99))
    registry.discard(draft.id)
    draft.join()


@pytest.mark.parametrize("at", [3, None], ids=["paused", "finished"])
def test_a_run_unviewed_for_an_hour_leaves_memory_and_is_reopened_unchanged(
    server, run_of, tiny, until, losses, caplog, at
):
    caplog.set_level(logging.INFO, logger="headlight.runs")
    registry, token = server(library=True), new_token()
    run = run_of(registry, at, token)
    registry.owners.show(run.id, token, 2)
    pages = Visitor(), Visitor()
    assert all(registry.owners.enter(run.id, token, page) for page in pages)
    unseen_for(run, 59)
    ask_for_something(registry, tiny)
    assert registry.listed() == [run]
    unseen_for(run, 1)
    ask_for_something(registry, tiny)
    assert registry.listed() == []
    assert f"evict {run.id[:6]}: {run.view.state} at step {run.view.step}, " in caplog.text
    assert registry.owners.shown(run.id) is None
    assert run.join()
    assert registry.facts_of_run(run.id).step == run.view.step
    assert registry.owners.is_owner(run.id, token)
    assert not registry.owners.is_owner(run.id, new_token())
    back = registry.control(run.id, token)
    assert back is not run
    assert back.view.state == run.view.state
    back.resume().result(20)
    until(lambda: back.view.state == "finished")
    back.pause().result(20)  # by now the end of the run has been logged
    assert caplog.text.count(f"finish {run.id[:6]}") == 1
    assert back.view.metrics.column("loss").tolist() == losses(tiny())


@pytest.mark.parametrize("begun", [True, False], ids=["trained", "draft"])
def test_a_run_that_left_memory_is_freed_without_a_garbage_collection(server, run_of, tiny, until, begun):
    registry = server(library=True)
    run = run_of(registry) if begun else registry.draft(tiny())
    assert run.ready.wait(20)
    alive, view = weakref.ref(run), weakref.ref(run.view)
    gc.disable()
    try:
        if begun:
            unseen_for(run, 60)
            ask_for_something(registry, tiny)
        else:
            registry.discard(run.id)
        assert run.join()
        del run
        until(lambda: alive() is None and view() is None)
    finally:
        gc.enable()


def test_a_training_queued_or_recently_viewed_or_requested_run_stays_in_memory(server, run_of, tiny, until):
    registry = server(library=True, training=1, unseen_minutes=1_000)
    seen, asked = run_of(registry, 3), run_of(registry, 3)
    training, waiting = (registry.draft(tiny(steps=100_000, evaluate_every=100_000)) for _ in range(2))
    training.set_pace(1.0)
    registry.start(training)
    until(lambda: training.view.state == "training")
    registry.start(waiting)
    until(lambda: waiting.place and waiting.kept)
    for run in (training, waiting, seen, asked):
        unseen_for(run, 60)
    seen.look()
    assert registry.get(asked.id) is asked
    ask_for_something(registry, tiny)
    assert registry.listed() == [waiting, training, asked, seen]


def test_a_run_kept_only_in_memory_is_never_evicted(server, run_of, tiny):
    registry = server()
    run = run_of(registry)
    unseen_for(run, 60)
    ask_for_something(registry, tiny)
    assert registry.listed() == [run]


def test_a_run_that_could_not_be_saved_stays_in_memory_until_it_is(server, run_of, tiny, until, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    registry = server(library=True)
    run = run_of(registry, 3)
    monkeypatch.setattr(archive, "AGAIN_SECONDS", 0.05)
    monkeypatch.setattr(Store, "transaction", refuse)
    run.advance(1)
    until(lambda: run.view.state == "paused" and run.view.unsaved)
    unseen_for(run, 60)
    ask_for_something(registry, tiny)
    assert registry.listed() == [run]
    monkeypatch.undo()
    until(lambda: not run.view.unsaved)
    ask_for_something(registry, tiny)
    assert registry.listed() == []


def test_a_run_requested_before_its_thread_releases_the_file_can_be_changed_once_it_is_released(
    server, run_of, tiny, until, monkeypatch
):
    close, may_close = Archive.close, threading.Event()
    monkeypatch.setattr(Archive, "close", lambda self: (may_close.wait(20), close(self)))
    registry, token = server(library=True), new_token()
    run = run_of(registry, 3, token)
    unseen_for(run, 60)
    ask_for_something(registry, tiny)
    assert isinstance(registry.get(run.id), FileRun)
    with pytest.raises(InputError, match="cannot be changed here"):
        registry.control(run.id, token)
    may_close.set()
    until(lambda: isinstance(registry.get(run.id), Run))
    back = registry.control(run.id, token)
    assert registry.listed() == [back]
    back.resume()
    until(lambda: back.view.state == "finished")


def test_a_run_whose_process_was_killed_can_be_changed_here(server, tiny, until, tmp_path, monkeypatch):
    monkeypatch.setattr(file_run, "FREE_SECONDS", 0.0)
    token = new_token()
    config = tiny(steps=100_000, evaluate_every=100_000).to_json()
    command = [sys.executable, "-c", OTHER, str(tmp_path / "runs"), config, token]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        id_, registry = other.stdout.readline().strip(), server(library=True)
        until(lambda: registry.get(id_) and registry.get(id_).view.step > 0, 60)
        watched = registry.get(id_)
        assert isinstance(watched, FileRun)
        assert watched.view.state == "training"
        assert registry.get(id_) is watched
        other.kill()
    until(lambda: isinstance(registry.get(id_), Run))
    run = registry.control(id_, token)
    assert run.view.state == "paused"
    step = run.view.step
    run.advance(2).result(20)
    until(lambda: run.view.step == step + 2)


def test_a_run_that_cannot_be_trained_for_lack_of_memory_is_viewed_and_can_be_changed_later(
    server, run_of, tiny, until, monkeypatch
):
    registry, token = server(library=True), new_token()
    run = run_of(registry, 3, token)
    unseen_for(run, 60)
    ask_for_something(registry, tiny)
    until(lambda: registry.listed() == [])

    attempts = []

    def refuse(*_, **__):
        attempts.append(1)
        raise InputError("too little memory")

    with monkeypatch.context() as patched:
        patched.setattr(any_run, "Run", refuse)
        watched = registry.get(run.id)
        assert isinstance(watched, FileRun)
        assert watched.view.step == run.view.step
        with pytest.raises(InputError, match="cannot be changed here"):
            registry.control(run.id, token)
        watched._asked_at -= 10
        assert registry.get(run.id) is watched
        assert len(attempts) == 1  # each costs as much as to open the run
    watched._asked_at -= 60
    assert isinstance(registry.get(run.id), Run)


def test_a_run_in_a_named_file_stays_read_only_and_is_not_claimed(server, tiny, make_run, until, tmp_path):
    folder = tmp_path / "runs" / "night"
    run = make_run(tiny(), archive=Archive(folder), every_step=False)
    run.advance(3).result(20)
    until(lambda: run.kept)
    registry = server(library=True)
    watched = registry.get(run.id)
    assert isinstance(watched, FileRun)
    run.put_away()
    run.join()
    watched._asked_at -= 10
    assert registry.get(run.id) is watched
    assert not is_held(folder.with_suffix(".headlight"))  # so that `--resume` can claim it
    later = server(library=True)  # opens the file when its process has ended
    assert isinstance(later.get(run.id), FileRun)
    assert not is_held(folder.with_suffix(".headlight"))

"""A process that is killed at any time leaves a complete run to resume, and loses about a second."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from tests.conftest import facts_of
from tests.runs.resuming.conftest import advance_to, finish, numbers
from transformer.errors import InputError
from transformer.storage import archive as module
from transformer.storage.archive import Archive
from transformer.storage.saved import read_run

ROOT = Path(__file__).parents[3]


class Witness:
    """Copy a folder before a file in it is replaced or removed: all states that a kill could leave."""

    def __init__(self, folder, into):
        self.folder, self._into = folder, into
        self.copies = []

    def look(self):
        copy = self._into / f"{len(self.copies):04d}"
        shutil.copytree(self.folder, copy)
        self.copies.append(copy)

    def before(self, act):
        def seen(path, *arguments, **named):
            if self.folder in path.parents:
                self.look()
            return act(path, *arguments, **named)

        return seen


@pytest.fixture
def witness(tmp_path, monkeypatch):
    one = Witness(tmp_path / "run", tmp_path / "copies")
    monkeypatch.setattr(Path, "replace", one.before(Path.replace))
    monkeypatch.setattr(Path, "unlink", one.before(Path.unlink))
    return one


@pytest.mark.slow
def test_a_process_killed_at_any_time_leaves_a_complete_run(tiny, kept, go_on, witness, until, monkeypatch):
    monkeypatch.setattr("transformer.runs.run_recording.MEMORY_LIMIT", 60_000)  # to thin out frames
    monkeypatch.setattr("transformer.recording.frames.DENSE", 2)
    run = kept(tiny(steps=9, evaluate_every=1))
    for step in range(9):
        advance_to(run, step)
        until(lambda: run.kept, 60)  # each step is in the folder once, even on a slow disk
    finish(run)
    run.close()
    run.join()
    whole, steps = run.view, []
    frames = {*whole.frames.steps}
    assert len(frames) < 10
    began = next(i for i, copy in enumerate(witness.copies) if (copy / "run.json").exists())
    assert len(witness.copies) > began + 20
    for copy in witness.copies[:began]:
        with pytest.raises(InputError, match="is not a saved run: run.json cannot be read"):
            read_run(copy)
    for copy in witness.copies[began:]:
        saved = read_run(copy)
        step = saved.view.step
        assert (saved.can_go_on, saved.damage) == (True, "")
        assert len(saved.view.metrics) == step
        if step:
            assert saved.view.metrics.column("loss").tolist() == whole.metrics.column("loss").tolist()[:step]
        assert saved.view.frames[0].step == saved.view.snapshots[0].step == 0
        assert saved.view.frames[-1].step <= step  # this frame may have been thinned out since
        assert {f for f in frames if f <= step} <= {*saved.view.frames.steps}
        steps.append(step)
    assert steps == sorted(steps)
    assert set(steps) == set(range(10))
    middle = steps.index(5)
    for copy in witness.copies[began + middle : began + middle + 3]:
        assert numbers(finish(go_on(copy))) == numbers(whole)


def test_partial_files_of_a_killed_process_are_removed(tiny, kept, go_on, killed):
    run = kept(tiny(steps=10))
    advance_to(run, 5)
    folder = killed(run)
    for name in ("frames.bin", "weights.bin", "training.safetensors", "run.json"):
        (folder / f"{name}.partial").write_bytes(b"half")
    again = go_on(folder)
    finish(again)
    again.close()
    again.join()
    assert [path for path in folder.rglob("*") if "partial" in path.name] == []


@pytest.fixture
def process():
    """Start processes that react to Ctrl-C even if the tests run in the background; kill them at the end.

    Processes that a shell starts in the background ignore Ctrl-C, and so do their child processes.
    """
    begun, before = [], signal.signal(signal.SIGINT, signal.default_int_handler)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}

    def begin(*arguments):
        program = [sys.executable, "-m", "transformer", "train", *map(str, arguments)]
        begun.append(subprocess.Popen(program, cwd=ROOT, **pipes))
        return begun[-1]

    yield begin
    signal.signal(signal.SIGINT, before)
    for one in begun:
        one.kill()
        one.communicate()


@pytest.fixture
def config_file(tiny, tmp_path):
    def written(**changes):
        path = tmp_path / "config.json"
        path.write_text(tiny(**changes).to_json(), encoding="utf-8")
        return path

    return written


def saved_step(folder):
    return facts_of(folder)["step"] if (folder / "run.json").exists() else -1


ENDLESS = {"steps": 1_000_000, "dropout": 0.1, "evaluate_every": 100_000, "schedule": "constant"}


@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])])
def test_a_process_killed_at_random_times_learns_the_same_and_loses_about_a_second(
    process, config_file, until, losses, tiny, tmp_path, kills
):
    chance, folder = random.Random(os.urandom(4).hex()), tmp_path / "run"
    one = process("--config", config_file(**ENDLESS), "--out", folder)
    until(lambda: saved_step(folder) > 0, seconds=60)
    stood, behind = [], []
    for _ in range(kills):
        time.sleep(chance.uniform(0.0, 1.5))
        one.kill()
        behind.append(time.time() - (folder / "run.json").stat().st_mtime)
        assert one.wait(10) == -signal.SIGKILL
        assert facts_of(folder)["state"] == "training"
        stood.append(read_run(folder).view.step)
        one = process("--resume", folder, "--json")
        until(lambda: saved_step(folder) > stood[-1], seconds=60)
    assert stood == sorted(stood)
    assert max(behind) < 3.0  # a second, plus the time of saving and a margin for busy machines
    one.send_signal(signal.SIGINT)
    out, error = one.communicate(timeout=60)
    assert one.returncode == 1, error
    steps = json.loads(out)["steps"]
    assert (facts_of(folder)["state"], facts_of(folder)["step"]) == ("stopped", steps)
    table = pd.read_parquet(folder / "metrics.parquet")
    assert table["step"].tolist() == list(range(1, steps + 1))
    assert table["loss"].tolist() == losses(tiny(**{**ENDLESS, "steps": steps}))
    recorded = read_run(folder).view
    for found in (recorded.frames.steps, tuple(one.step for one in recorded.snapshots)):
        assert found == tuple(sorted({*found}))
        assert (found[0], found[-1]) == (0, steps)


def test_resuming_a_run_is_refused_until_its_current_writer_releases_the_folder(tiny, kept, until, tmp_path):
    run = kept(tiny(steps=100_000, evaluate_every=100_000))
    run.start()
    folder = tmp_path / "run"
    until(lambda: saved_step(folder) > 0)
    with pytest.raises(InputError, match="^Another process is training the run in "):
        Archive(folder, resumed=True)
    with pytest.raises(InputError, match="is not empty; choose a new one"):
        Archive(folder)
    assert run.view.state == "training"
    run.close()
    run.join()
    Archive(folder, resumed=True).close()


def test_a_folder_can_be_read_at_any_time_while_it_is_written(tiny, kept, until, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "KEPT_SECONDS", 0.02)
    monkeypatch.setattr(module, "KEEPING_SHARE", 1e9)
    run = kept(tiny(steps=100_000, evaluate_every=3))
    run.start()
    until(lambda: saved_step(tmp_path / "run") > 0)
    steps = []
    began = time.monotonic()
    while time.monotonic() < began + 2.0 or (len(set(steps)) <= 3 and time.monotonic() < began + 60.0):
        saved = read_run(tmp_path / "run")
        steps.append(saved.view.step)
        assert len(saved.view.metrics) == steps[-1]
        assert (saved.can_go_on, saved.damage) == (True, "")
        assert saved.view.frames[-1].step <= steps[-1]
    assert steps == sorted(steps)
    assert len(set(steps)) > 3

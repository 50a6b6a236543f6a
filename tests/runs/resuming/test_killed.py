"""A process that is killed at any time leaves a complete run to resume, and loses about a second."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import facts_of, table_of
from transformer.errors import InputError
from transformer.storage import archive as module
from transformer.storage.archive import Archive
from transformer.storage.file import stamp_of
from transformer.storage.saved import read_run

ROOT = Path(__file__).parents[3]


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
    return facts_of(folder).get("step", -1)


ENDLESS = {"steps": 1_000_000, "dropout": 0.1, "evaluate_every": 100_000, "schedule": "constant"}


@pytest.mark.parametrize("kills", [1, pytest.param(50, marks=[pytest.mark.slow, pytest.mark.timeout(3000)])])
def test_a_process_killed_at_random_times_learns_the_same_and_loses_about_a_second(
    process, config_file, until, losses, tiny, tmp_path, kills
):
    chance, folder = random.Random(os.urandom(4).hex()), tmp_path / "run.headlight"
    one = process("--config", config_file(**ENDLESS), "--out", folder)
    until(lambda: saved_step(folder) > 0, seconds=60)
    stood, behind = [], []
    for _ in range(kills):
        time.sleep(chance.uniform(0.0, 1.5))
        one.kill()
        behind.append(time.time() - max(stamp_of(folder)) / 1e9)
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
    table = table_of(folder)
    assert table["step"].tolist() == list(range(1, steps + 1))
    assert table["loss"].tolist() == losses(tiny(**{**ENDLESS, "steps": steps}))
    recorded = read_run(folder).view
    for found in (recorded.frames.steps, tuple(one.step for one in recorded.snapshots)):
        assert found == tuple(sorted({*found}))
        assert (found[0], found[-1]) == (0, steps)


def test_resuming_a_run_is_refused_until_its_current_writer_releases_the_file(tiny, kept, until, tmp_path):
    run = kept(tiny(steps=100_000, evaluate_every=100_000))
    run.start()
    folder = tmp_path / "run.headlight"
    until(lambda: saved_step(folder) > 0)
    with pytest.raises(InputError, match="^Another process is training the run in "):
        Archive(folder, resumed=True)
    with pytest.raises(InputError, match="exists; choose a new one"):
        Archive(folder)
    assert run.view.state == "training"
    run.close()
    run.join()
    Archive(folder, resumed=True).close()


def test_a_file_can_be_read_at_any_time_while_it_is_written(tiny, kept, until, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "KEPT_SECONDS", 0.02)
    monkeypatch.setattr(module, "KEEPING_SHARE", 1e9)
    run = kept(tiny(steps=100_000, evaluate_every=3))
    run.start()
    until(lambda: saved_step(tmp_path / "run.headlight") > 0)
    steps = []
    began = time.monotonic()
    while time.monotonic() < began + 2.0 or (len(set(steps)) <= 3 and time.monotonic() < began + 60.0):
        saved = read_run(tmp_path / "run.headlight")
        steps.append(saved.view.step)
        assert len(saved.view.metrics) == steps[-1]
        assert (saved.can_go_on, saved.damage) == (True, "")
        assert saved.view.frames[-1].step <= steps[-1]
    assert steps == sorted(steps)
    assert len(set(steps)) > 3

"""A process that is killed at any time leaves a complete run to resume, and loses about a second."""

from __future__ import annotations

import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from subprocess import PIPE
from types import ModuleType

import pytest

from tests.conftest import facts_of, table_of
from transformer.__main__ import main
from transformer.errors import InputError
from transformer.storage.archive import Archive
from transformer.storage.file import stamp_of
from transformer.storage.saved import read_run

ROOT = Path(__file__).parents[3]
ENDLESS = {"steps": 1_000_000, "dropout": 0.1, "evaluate_every": 100_000, "schedule": "constant"}
WATCH = """
import sys, time
from pathlib import Path
from transformer.storage.saved import Reader

reader, steps = Reader(Path(sys.argv[1])), set()
while not Path(sys.argv[2]).exists():
    saved = reader.read()
    view = saved.view
    assert saved.whole and saved.can_go_on, saved.damage
    assert len(view.metrics) == view.step >= max([*steps, view.frames[-1].step]), (view.step, steps)
    steps.add(view.step)
    time.sleep(0.02)
print(len(steps))
"""
"""A program that reads a run's file all the time, and prints how many of its moments it has seen."""


def train(*arguments):
    """Train by the command line, without output: under the test runner there may be nowhere to write it."""
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell ignores it for what it runs in the background
    sys.stdout = sys.stderr = Path(os.devnull).open("w", encoding="utf-8")
    return main(["train", *map(str, arguments)])


@pytest.fixture
def trained(monkeypatch):
    """Start processes that train, with these arguments; kill them at the end.

    They are copies of a process that has imported PyTorch, so that they start at once.
    """
    # A process first runs the file of the main module, which after a test of a page is the page's script.
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    begun, context = [], multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["transformer.commands.train", "transformer.runs.training_session"])

    def begin(*arguments):
        begun.append(context.Process(target=train, args=arguments))
        begun[-1].start()
        return begun[-1]

    yield begin
    for one in begun:
        one.kill()
        one.join()


def fill_the_disk(process, path):
    """Let no file of a process grow any more."""
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (path.stat().st_size, resource.RLIM_INFINITY))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the files of another process")
@pytest.mark.parametrize("kills", [2, pytest.param(50, marks=[pytest.mark.slow, pytest.mark.timeout(3000)])])
def test_a_process_killed_at_random_times_learns_the_same_and_loses_about_a_second(
    trained, until, losses, tiny, tmp_path, kills
):
    """Every second time the disk has been full before; a second writer is refused, and a reader reads on."""
    chance, path = random.Random(os.urandom(4).hex()), tmp_path / "run.headlight"
    (tmp_path / "config.json").write_text(tiny(**ENDLESS).to_json(), encoding="utf-8")
    one = trained("--config", tmp_path / "config.json", "--out", path)
    until(lambda: facts_of(path).get("step", -1) > 0)
    command, pipes = [sys.executable, "-c", WATCH, path, tmp_path / "over"], {"stdout": PIPE, "stderr": PIPE}
    watching, stood, behind = subprocess.Popen(command, cwd=ROOT, text=True, **pipes), [[]], []
    for i in range(kills):
        time.sleep(chance.uniform(0.0, 1.5))
        with pytest.raises(InputError, match="^Another process is training the run in "):
            Archive(path, resumed=True)
        if full := i % 2 == 1:
            fill_the_disk(one, path)
            time.sleep(chance.uniform(0.0, 3.0))
        one.kill()
        behind.append(0.0 if full else time.time() - max(stamp_of(path)) / 1e9)
        one.join(10)
        assert one.exitcode == -signal.SIGKILL
        saved = read_run(path)
        assert (saved.state, saved.can_go_on, saved.whole) == ("training", True, True)
        stood.append(saved.view.metrics.column("loss").tolist())
        one = trained("--resume", path)
        until(lambda: facts_of(path)["step"] > len(stood[-1]))
    assert max(behind) < 3.0  # a second, plus the time of saving and a margin for busy machines
    os.kill(one.pid, signal.SIGINT)
    one.join(60)
    (tmp_path / "over").touch()
    n_seen, error = watching.communicate(timeout=60)
    assert int(n_seen or 0) > kills, error
    table, steps = table_of(path), facts_of(path)["step"]
    assert facts_of(path)["state"] == "stopped"
    assert table["step"].tolist() == list(range(1, steps + 1))
    assert table["loss"].tolist() == losses(tiny(**{**ENDLESS, "steps": steps}))
    for before, after in pairwise([*stood, table["loss"].tolist()]):
        assert after[: len(before)] == before
    recorded = read_run(path).view
    for found in (recorded.frames.steps, tuple(snapshot.step for snapshot in recorded.snapshots)):
        assert found == tuple(sorted({*found}))
        assert (found[0], found[-1]) == (0, steps)
    Archive(path, resumed=True).close()

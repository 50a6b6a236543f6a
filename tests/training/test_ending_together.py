"""Processes that train together end together: at the goal, by a signal, or because one has failed."""

from __future__ import annotations

import json
import signal
import subprocess
import time

import pytest

from tests.conftest import facts_of
from tests.training.conftest import MODULE, ROOT, command, complaints, environment, launch
from transformer.errors import LEFT_ALONE


def state_on_disk(path):
    facts = facts_of(path)
    return facts["state"], facts["reason"]


@pytest.fixture
def program(tmp_path):
    """Write a program that runs the given code and then the command line."""

    def write(deed):
        path = tmp_path / "program.py"
        path.write_text(f"{deed}\nfrom transformer.__main__ import main\nraise SystemExit(main())\n")
        return path

    return write


EVERY_RIGHT = """
from types import SimpleNamespace
from transformer.training import evaluation
evaluation.spell = lambda model, task, words, **_: SimpleNamespace(exact=[True] * len(words), loss=0.0)
"""


AT_STEP_3 = """
import os, signal
from transformer.tasks import Task
batch = Task.batch

def spoiled(task, seed, k):
    if (os.environ["RANK"], k) == ({rank!r}, 3):
        {deed}
    return batch(task, seed, k)

Task.batch = spoiled
"""


RUN_OUT = "raise RuntimeError('the letters have run out')"
KILLED = "os.kill(os.getpid(), signal.SIGKILL)"


@pytest.fixture
def kept(config_file, tmp_path):
    """The arguments that train the tiny run in a folder."""
    return "train", "--config", config_file, "--out", tmp_path / "run"


@pytest.mark.slow
def test_the_goal_ends_all_processes(program, kept, tmp_path):
    done = launch(program(EVERY_RIGHT), *kept, "--target", "0.9", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["steps"] == 4
    assert state_on_disk(tmp_path / "run.headlight")[0] == "finished"


OUT = "RuntimeError: the letters have run out"


@pytest.mark.parametrize(
    ("rank", "deed", "told", "reason"),
    [
        ("1", RUN_OUT, [f"Process 2 of 2 has failed. {OUT}", LEFT_ALONE], LEFT_ALONE),
        ("1", KILLED, [LEFT_ALONE], LEFT_ALONE),
        ("0", RUN_OUT, [OUT], OUT),
    ],
    ids=["another fails", "another is killed", "the first fails"],
)
@pytest.mark.slow
def test_a_process_that_fails_ends_all_with_a_message(program, kept, tmp_path, rank, deed, told, reason):
    began = time.monotonic()
    done = launch(program(AT_STEP_3.format(rank=rank, deed=deed)), *kept)
    assert done.returncode != 0
    assert time.monotonic() - began < 60, "the launcher had to kill somebody who waited"
    assert sorted(complaints(done.stderr)) == sorted(told)
    assert state_on_disk(tmp_path / "run.headlight") == ("failed", reason)


@pytest.mark.parametrize("request_to_stop", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.slow
def test_an_interrupted_run_is_stopped_in_all_processes(kept, tmp_path, request_to_stop):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    started = command(*MODULE, *kept, "--steps", "1000000")
    with subprocess.Popen(started, cwd=ROOT, env=environment(), **pipes) as launched:
        try:
            end = time.monotonic() + 60
            while not facts_of(tmp_path / "run.headlight"):
                assert time.monotonic() < end, "it has not begun"
                time.sleep(0.05)
            launched.send_signal(request_to_stop)
            said, error = launched.communicate(timeout=25)  # shorter than the launcher's own timeout
        finally:
            launched.kill()
    assert launched.returncode != 0
    assert said.startswith("Stopped at step ")
    assert complaints(error) == []
    assert state_on_disk(tmp_path / "run.headlight")[0] == "stopped"


@pytest.mark.slow
def test_a_refusal_of_the_first_process_alone_ends_all_with_one_line(config_file, tmp_path):
    done = launch(*MODULE, "train", "--config", config_file, "--out", tmp_path.parent)
    assert done.returncode != 0
    assert complaints(done.stderr) == [f"The folder {tmp_path.parent} is not empty; choose a new one."]

"""Helpers that start several processes with PyTorch's launcher."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from transformer.commands.line import NAMES

ROOT = Path(__file__).parents[2]
MODULE = ("-m", "transformer")


def command(*arguments, n=2):
    """Return the command line of the launcher, with the Python of the tests."""
    return [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(n), *map(str, arguments)]


def environment():
    """Return the environment without a launcher's variables, with one thread per process."""
    clean = {name: value for name, value in os.environ.items() if name not in NAMES}
    return clean | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


def launch(*arguments, n=2):
    """Run the launcher and return its result; the carriage returns of the progress bar are kept."""
    done = subprocess.run(
        command(*arguments, n=n), cwd=ROOT, env=environment(), capture_output=True, timeout=120
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def complaints(error):
    """Return the error lines of Headlight, without those of the launcher."""
    return [line.removeprefix("headlight: ") for line in error.splitlines() if line.startswith("headlight: ")]


@pytest.fixture(scope="module")
def config_file(tiny_run, tmp_path_factory):
    path = tmp_path_factory.mktemp("distributed") / "tiny.json"
    path.write_text(tiny_run.to_json(), encoding="utf-8")
    return path

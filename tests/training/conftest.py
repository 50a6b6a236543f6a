"""Commands of a launcher that starts several processes."""

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
    """What a person would type, with the Python of the tests."""
    return [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(n), *map(str, arguments)]


def environment():
    """As on a shell where nothing is started yet; each process has a thread, and the launcher is quiet."""
    clean = {name: value for name, value in os.environ.items() if name not in NAMES}
    return clean | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


def launch(*arguments, n=2):
    """What became of it; line ends are left as they were, for a bar draws itself anew without a new line."""
    done = subprocess.run(
        command(*arguments, n=n), cwd=ROOT, env=environment(), capture_output=True, timeout=120
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def complaints(error):
    """What a person is told beside the launcher's own words."""
    return [line.removeprefix("headlight: ") for line in error.splitlines() if line.startswith("headlight: ")]


@pytest.fixture(scope="module")
def config_file(tiny_run, tmp_path_factory):
    path = tmp_path_factory.mktemp("distributed") / "tiny.json"
    path.write_text(tiny_run.to_json(), encoding="utf-8")
    return path

"""Fixtures for runs that are killed and resumed from their file, and for comparing two runs."""

from __future__ import annotations

import subprocess

import pytest

from transformer.recording.metrics import COLUMNS
from transformer.storage.archive import Archive
from transformer.storage.saved import read_run

MEASURED = [name for name in COLUMNS if name not in ("seconds", "tokens_per_second")]
"""All metrics that do not depend on the clock."""


def numbers(view):
    """Return the metrics of a run as bytes, by column."""
    return {name: view.metrics.column(name).tobytes() for name in MEASURED}


@pytest.fixture
def kept(make_run, tmp_path):
    """Make a run that is saved in a file."""

    def make(config, **settings):
        return make_run(config, archive=Archive(tmp_path / "run"), **settings)

    return make


@pytest.fixture
def go_on(make_run):
    """Reopen a saved run in its file, paused."""

    def make(folder, **settings):
        saved = read_run(folder)
        archive = Archive(folder, resumed=True)
        return make_run(saved.view.config, archive=archive, saved=saved, **settings)

    return make


@pytest.fixture
def killed(until, tmp_path):
    """Copy the file of a run, as a process killed now would leave it."""

    def leave(run):
        until(lambda: run.kept)
        return copied(tmp_path / "run.headlight", tmp_path / "killed.headlight")

    return leave


def copied(path, other):
    """Copy the file of a run by another process: closing a copy here would release the locks of SQLite."""
    for suffix in ("", "-wal"):
        if path.with_name(path.name + suffix).exists():
            subprocess.run(["cp", f"{path}{suffix}", f"{other}{suffix}"], check=True)
    return other


def advance_to(run, step):
    """Advance a run to this step and wait until it stands still."""
    if step > run.view.step:
        run.advance(step - run.view.step).result(30)
    assert run.wait(60)
    assert run.view.step == step, run.view.reason


def finish(run):
    run.resume().result(60)
    assert run.wait(120)
    assert run.view.state == "finished", run.view.reason
    return run.view

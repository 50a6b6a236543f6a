"""Runs that are killed and go on from their folder, and how two of them are compared."""

from __future__ import annotations

import shutil

import pytest

from transformer.recording.metrics import COLUMNS
from transformer.storage.archive import Archive
from transformer.storage.saved import read_run

MEASURED = [name for name in COLUMNS if name not in ("seconds", "tokens_per_second")]
"""All that is no matter of the clock."""


def numbers(view):
    """The table of a run, bit by bit."""
    return {name: view.metrics.column(name).tobytes() for name in MEASURED}


@pytest.fixture
def kept(make_run, tmp_path):
    """A run with a folder."""

    def make(config, **settings):
        return make_run(config, archive=Archive(tmp_path / "run"), **settings)

    return make


@pytest.fixture
def go_on(make_run):
    """A saved run that goes on in its folder, from a pause."""

    def make(folder, **settings):
        saved = read_run(folder)
        archive = Archive(folder, resumed=True)
        return make_run(saved.view.config, archive=archive, saved=saved, **settings)

    return make


@pytest.fixture
def killed(until, tmp_path):
    """What a process that is killed now would leave behind: another folder with the same files."""

    def leave(run):
        until(lambda: run.kept)
        return shutil.copytree(tmp_path / "run", tmp_path / "killed")

    return leave


def to(run, step):
    """Take steps up to this one, and stand still."""
    if step > run.view.step:
        run.advance(step - run.view.step).result(30)
    assert run.wait(60)
    assert run.view.step == step, run.view.reason


def finish(run):
    run.resume().result(60)
    assert run.wait(120)
    assert run.view.state == "finished", run.view.reason
    return run.view

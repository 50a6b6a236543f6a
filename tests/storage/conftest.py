"""Fixtures for the storage tests: a finished run, in a folder and as a file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import facts_of
from transformer.config import RunConfig
from transformer.interventions import Block, Interventions
from transformer.runs.run import Run
from transformer.storage.archive import Archive
from transformer.storage.bundle import pack, pack_view


def finished_run(config: RunConfig, folder: Path, **settings: object) -> Run:
    """Train a run to its end in a folder and return it; its thread has ended."""
    run = Run(config, archive=Archive(folder), **settings)
    run.start()
    assert run.wait(60)
    run.close()
    run.join()
    assert run.view.state == "finished", run.view.reason
    return run


@pytest.fixture(scope="module")
def bundles(tiny_run: RunConfig, tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """A finished run as a file: packed from its folder, and packed from memory."""
    folder = tmp_path_factory.mktemp("bundles") / "run"
    run = finished_run(tiny_run, folder, words=("frog",))
    return pack(folder), pack_view(run.view, run.task, ("frog",))


TAKEN = Interventions(
    ablated=(("decoder.1.cross", 2),), blocked=(Block(site="encoder.0", head=1, row=2, token="[EOS]"),)
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, tiny_run, changed_midway):
    folder = tmp_path_factory.mktemp("saved") / "run"
    run = Run(tiny_run, words=("frog",), archive=Archive(folder))
    return changed_midway(run, 6, TAKEN), folder


@pytest.fixture
def saved(finished, tmp_path):
    """The view of a finished run with an intervention in mid-run, and a copy of its folder."""
    view, folder = finished
    return view, shutil.copytree(folder, tmp_path / "run")


def with_facts(folder, **changes):
    (folder / "run.json").write_text(json.dumps({**facts_of(folder), **changes}), encoding="utf-8")

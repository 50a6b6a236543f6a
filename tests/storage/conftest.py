"""Fixtures for the storage tests: a finished run in its file."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from transformer.config import RunConfig
from transformer.runs.run import Run
from transformer.shared.interventions import Block, Interventions
from transformer.storage.archive import Archive
from transformer.storage.file import PAGE

OBJECTS = (
    "CREATE TRIGGER t AFTER INSERT ON fact BEGIN DELETE FROM step; END",
    "CREATE VIEW v AS SELECT * FROM fact",
    "CREATE TABLE other(x)",
    "CREATE INDEX i ON step(numbers)",
    "CREATE VIRTUAL TABLE v USING fts5(x)",
    "ALTER TABLE step ADD COLUMN x",
    "ALTER TABLE map RENAME COLUMN data TO body",
    "DROP TABLE measurement",
)
"""Statements that make a file no run, since only our tables may be in it."""


def with_room_for(pages: int) -> Callable[..., sqlite3.Connection]:
    """`sqlite3.connect` on a disk with room for so many pages of a file: SQLite's own limit stands for it."""
    connect = sqlite3.connect

    def limited(*arguments: Any, **named: Any) -> sqlite3.Connection:
        database = connect(*arguments, **named)
        database.execute(f"PRAGMA page_size = {PAGE}")
        database.execute(f"PRAGMA max_page_count = {pages}")
        return database

    return limited


def finished_run(config: RunConfig, path: Path, **settings: object) -> Run:
    """Train a run to its end in a file and return it; its thread has ended."""
    run = Run(config, archive=Archive(path), **settings)
    run.start()
    assert run.wait(60)
    run.close()
    run.join()
    assert run.view.state == "finished", run.view.reason
    return run


TAKEN = Interventions(
    ablated=(("decoder.1.cross", 2),), blocked=(Block(site="encoder.0", head=1, row=2, token="[EOS]"),)
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, tiny_run, changed_midway):
    path = tmp_path_factory.mktemp("saved") / "run.headlight"
    run = Run(tiny_run, words=("frog",), archive=Archive(path))
    return changed_midway(run, 6, TAKEN), path


@pytest.fixture
def saved(finished, tmp_path):
    """The view of a finished run with an intervention in mid-run, and a copy of its file."""
    view, path = finished
    return view, Path(shutil.copy(path, tmp_path / "run.headlight"))

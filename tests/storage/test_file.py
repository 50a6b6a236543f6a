"""A run's file: who may write it, and what is refused before anything in it is used."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
import zipfile
from contextlib import closing

import pytest

from tests.conftest import change, fact_of
from tests.storage.conftest import OBJECTS, with_room_for
from transformer.errors import InputError
from transformer.storage import file as module
from transformer.storage.archive import Archive
from transformer.storage.file import SILENT_SECONDS, Store, Taken, is_held, on_network
from transformer.storage.saved import read_run

OTHER = """
import sys, time
from pathlib import Path
from transformer.storage.file import Store

store = Store(Path(sys.argv[1]), new=False)
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def other(saved):
    """Another process that writes the file."""
    process = subprocess.Popen(
        [sys.executable, "-c", OTHER, str(saved[1])], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_file_is_held_from_its_opening_to_its_end(saved):
    _, path = saved
    assert not is_held(path)
    store = Store(path, new=False)
    assert is_held(path)
    with pytest.raises(Taken, match="^Another process is training the run in "):
        Store(path, new=False)
    store.close()
    assert not is_held(path)
    assert [one.name for one in path.parent.iterdir()] == ["run.headlight"]


def test_another_process_holds_a_file_until_it_ends_even_if_it_is_killed(saved, other):
    _, path = saved
    assert is_held(path)
    other.kill()
    other.wait()
    assert fact_of(path, "writer")  # a killed process leaves its note
    assert not is_held(path)
    Store(path, new=False).close()


def test_neither_a_later_process_with_the_same_pid_nor_a_copy_of_the_file_is_taken_for_held(saved, tmp_path):
    _, path = saved
    store = Store(path, new=False)
    note = json.loads(fact_of(path, "writer"))
    assert note["pid"] == os.getpid()
    subprocess.run(["cp", path, tmp_path / "copy"], check=True)
    subprocess.run(["cp", f"{path}-wal", tmp_path / "copy-wal"], check=True)
    assert not is_held(tmp_path / "copy")
    store.close()
    for started, held in ((note["started"], True), (note["started"] - 100, False)):
        text = json.dumps(note | {"started": started}).encode()
        change(path, "INSERT OR REPLACE INTO fact VALUES ('writer', ?)", text)
        assert is_held(path) is held


@pytest.mark.parametrize(("age", "held"), [(1.0, True), (SILENT_SECONDS + 5, False)])
def test_another_machine_holds_a_file_as_long_as_it_writes(saved, age, held):
    _, path = saved
    note = {"host": "elsewhere", "pid": 1, "started": 1, "file": path.stat().st_ino, "time": 0.0}
    change(path, "INSERT OR REPLACE INTO fact VALUES ('writer', ?)", json.dumps(note).encode())
    os.utime(path, (time.time() - age,) * 2)
    assert is_held(path) is held


def test_a_file_that_cannot_be_written_says_why(tmp_path):
    (tmp_path / "letter").write_text("dear")
    with pytest.raises(InputError, match=r"cannot be written \((Not a directory|File exists)\)") as refused:
        Archive(tmp_path / "letter" / "run")
    assert refused.value.field == "out"


@pytest.mark.parametrize("pages", [1, 3], ids=["at once", "after some pages"])
def test_a_new_file_on_a_full_disk_leaves_nothing_and_is_made_once_there_is_room(
    tmp_path, monkeypatch, pages
):
    with monkeypatch.context() as full:
        full.setattr(module.sqlite3, "connect", with_room_for(pages))
        with pytest.raises(InputError, match=r"cannot be written \(database or disk is full\)"):
            Archive(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []
    Store(tmp_path / "run.headlight", new=True).close()


def test_a_file_that_another_program_holds_is_not_called_damaged_and_is_read_once_it_is_free(
    saved, monkeypatch
):
    monkeypatch.setattr(module, "WAITING_SECONDS", 0.05)
    view, path = saved
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InputError, match=r"run\.headlight is held by another program\. Close it there"):
            read_run(path)
        with pytest.raises(InputError, match="is held by another program"):
            Store(path, new=False)
    assert read_run(path).view.frames.steps == view.frames.steps


def test_a_file_in_a_folder_that_cannot_be_written_is_read(saved, monkeypatch):
    view, path = saved
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert read_run(path).view.frames.steps == view.frames.steps
    with pytest.raises(InputError, match=r"cannot be written \(Permission denied\)"):
        Store(path, new=False)


MOUNTS = "22 1 8:1 / / rw - ext4 /dev/sda rw\n30 22 0:9 / {} rw,relatime shared:1 - {} host:/x rw\n"


@pytest.mark.parametrize(("kind", "journal"), [("nfs4", "delete"), ("ext4", "wal")])
def test_on_a_network_file_system_a_run_is_written_without_wal(tmp_path, monkeypatch, kind, journal):
    read = module.Path.read_text
    monkeypatch.setattr(
        module.Path,
        "read_text",
        lambda path, *_: MOUNTS.format(tmp_path.resolve(), kind) if path.name == "mountinfo" else read(path),
    )
    assert on_network(tmp_path / "run.headlight") is (kind == "nfs4")
    store = Store(tmp_path / "run.headlight", new=True)
    assert store._database.execute("PRAGMA journal_mode").fetchone() == (journal.encode(),)
    store.close()


# What is refused.


def written(path, *statements):
    with closing(sqlite3.connect(path)) as database:
        for sql in statements:
            database.execute(sql)
        database.commit()


@pytest.mark.parametrize(
    ("statements", "why"),
    [
        *(([sql], "it has other tables") for sql in OBJECTS),
        (
            ["DROP TABLE step", "CREATE TABLE step(step INTEGER PRIMARY KEY, numbers BLOB, x AS (1))"],
            "it has other tables",
        ),
        (["PRAGMA application_id = 7"], "is a database, but no run of Headlight"),
        (["PRAGMA user_version = 2"], "has format 2; this version reads format 1"),
        (["DELETE FROM fact WHERE name = 'run'"], "No run has been written to this file yet"),
        (["UPDATE fact SET value = 7 WHERE name = 'run'"], "a value is int and not bytes"),
        (["UPDATE fact SET value = '{' WHERE name = 'run'"], "damaged"),
        (["UPDATE fact SET value = x'ff' WHERE name = 'run'"], "damaged"),
        (["UPDATE step SET numbers = x'00' WHERE step = 2"], "not those that were written"),
        (["UPDATE step SET step = 1000 WHERE step = 8"], "not those of a step of this run"),
        (["DELETE FROM step WHERE step = 2"], "the numbers of the step before step 3 are missing"),
    ],
)
@pytest.mark.parametrize("strange", [False, True])
def test_a_database_that_is_not_exactly_a_run_is_refused_with_the_reason(saved, statements, why, strange):
    _, path = saved
    written(path, *statements)
    before = path.read_bytes()
    with pytest.raises(InputError, match=why):
        read_run(path, strange=strange)
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == ["run.headlight"]


def test_folders_and_zip_files_of_before_are_refused_with_what_to_do(tmp_path):
    (tmp_path / "old").mkdir()
    with zipfile.ZipFile(tmp_path / "old.zip", "w") as old:
        old.writestr("run.json", "{}")
    for path, what in ((tmp_path / "old", "folder"), (tmp_path / "old.zip", "ZIP file")):
        with pytest.raises(InputError) as refused:
            read_run(path)
        assert str(refused.value) == (
            f"{path} is a {what}. A run is now one file, NAME.headlight; the folders and ZIP files of "
            "earlier versions cannot be read. Train the run again."
        )


def test_files_beside_a_strangers_file_are_not_read(saved, tmp_path):
    _, path = saved
    store = Store(path, new=False)
    with store.transaction() as database:
        database.execute("DELETE FROM step")
    shutil.copyfile(f"{path}-wal", tmp_path / "strange-wal")
    subprocess.run(["cp", path, tmp_path / "strange"], check=True)
    store.close()
    assert len(read_run(tmp_path / "strange", strange=True).view.metrics) == 8

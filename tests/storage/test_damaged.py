"""Files that are damaged or forged anywhere are read as far as they are intact, or refused."""

from __future__ import annotations

import json
import random
import sqlite3
import struct
import time
from contextlib import closing, suppress
from functools import partial

import numpy as np
import pytest

from tests.own import own_run
from tests.storage.conftest import OBJECTS, finished_run
from transformer.errors import InputError
from transformer.runs.checks import check_saved
from transformer.runs.limits import Limits
from transformer.runs.training_session import unpack
from transformer.storage import file as file_module
from transformer.storage.format import sealed
from transformer.storage.library import Library
from transformer.storage.saved import read_run

SECONDS = 5.0
"""Maximum CPU time for reading a file."""
PAGE = 65536


@pytest.fixture(scope="module")
def files(tiny_run, tmp_path_factory):
    """Two intact runs, one of an own model, as bytes, with their readings."""
    place = tmp_path_factory.mktemp("intact")
    finished_run(tiny_run.with_changes(steps=4, evaluate_every=2), place / "whole", words=("frog",))
    paths = [place / "whole.headlight", own_run(place / "own", 4)]
    return [(path.read_bytes(), numbers_of(read_run(path))) for path in paths]


def numbers_of(saved):
    """Everything in a run that has a checksum, and is read at once: maps by word and step, and rows."""
    frames, metrics = saved.view.frames, saved.view.metrics
    maps = {
        (word, step): {site: codes[i].tobytes() for site, codes in chunk.maps.items()}
        for word in frames.words
        for chunk in frames.chunks_of(word)
        for i, step in enumerate(chunk.steps)
    }
    return maps, {row[1:].tobytes() for row in metrics.rows(0, len(metrics))}


def look_at(view):
    """Check a saved run and read all that pages show of it."""
    assert [f.step for f in view.frames] == sorted({f.step for f in view.frames})
    assert [s.step for s in view.snapshots] == sorted({s.step for s in view.snapshots})
    assert all(frame.step <= view.step for frame in view.frames)
    assert (view.metrics.column("step") <= view.step).all()
    for snapshot in view.snapshots:
        with suppress(InputError):
            assert all(weights.dtype == "f4" for weights in snapshot.weights.values())
    for frame in view.frames:
        assert isinstance(frame.clearest_score + frame.best[1], float)
        for site in frame.axes:
            for row in range(len(frame.words)):
                assert frame.map(row, site).ndim == 3
                assert frame.on_padding(row, site).ndim == 1
            assert frame.role(site, 0)
        assert all(tracked.marked is not None for tracked in frame.words)


# Damage: bytes that a disk or a person has changed. What is read has a checksum, so it is right.


def with_damaged_bytes(path, chance):
    """Cut off, flip, overwrite or exchange a part of a file."""
    data = bytearray(path.read_bytes())
    how = chance.choice(["cut", "bits", "bits", "bytes", "bytes", "zeros", "pages", "header"])
    used = list(range(0, len(data), PAGE))
    if how == "cut":
        del data[chance.randrange(len(data)) :]
    elif how == "header":
        data[chance.randrange(100)] = chance.randrange(256)
    elif how == "zeros":
        at = chance.randrange(len(data))
        n = min(chance.choice([1, 16, 4096, PAGE]), len(data) - at)
        data[at : at + n] = bytes(n)
    elif how == "pages":
        one, other = chance.choice(used), chance.choice(used)
        first, second = data[one : one + PAGE], data[other : other + PAGE]
        data[one : one + PAGE], data[other : other + PAGE] = second, first
    else:
        for _ in range(chance.randint(1, 8)):
            # The beginnings of pages hold the structure, the ends of pages the newest rows.
            at = chance.choice(used) + chance.choice([chance.randrange(64), -1 - chance.randrange(2000)])
            at = chance.choice([at, chance.randrange(len(data))]) % len(data)
            data[at] = data[at] ^ 1 << chance.randrange(8) if how == "bits" else chance.randrange(256)
    path.write_bytes(data)


# Forgery: a sound database with rows, or objects, that no run has.

ODD = (
    None,
    0,
    -1,
    7,
    2**63 - 1,
    -(2**63),
    0.5,
    1e308,
    "",
    "text",
    "é" * 999,
    b"",
    b"\xff" * 99,
    b"[" * 99_999,
)
ODD += (b"{}", b"[]", b"null", b'{"a":' * 999, b"1" * 9999, bytes(2_000_000), b"\n\n")
ODD_JSON = (None, True, 0, -1, 2**31, 2**63, 10**40, 0.5, 1e308, "", "x", "../..", "a\0b", [], {}, [None])


def with_forged_rows(path, chance):
    """Change rows by SQLite itself, or add what no run has."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        for _ in range(chance.randint(1, 2)):
            with suppress(
                sqlite3.Error
            ):  # not every value may be a key, and the last change may be in the way
                forge(database, chance)


def forge(database, chance):
    table = chance.choice(["fact", "fact", "step", "map", "weights", "measurement", "training"])
    columns = [name for _, name, *_ in database.execute(f"PRAGMA table_info({table})")]
    rows = [one for (one,) in database.execute(f"SELECT rowid FROM {table} ORDER BY rowid")]
    row, column, body = chance.choice([*rows, 1]), chance.choice(columns), columns[-1]
    found = database.execute(f"SELECT {body} FROM {table} WHERE rowid = ?", (row,)).fetchone()
    how = chance.choice(["odd", "odd", "forged", "forged", "forged", "exchanged", "gone", "more", "object"])
    if how == "object":
        database.execute(chance.choice(OBJECTS))
    elif how == "gone":
        database.execute(f"DELETE FROM {table} WHERE rowid = ?", (row,))
    elif how == "more":
        values = chance.choices(ODD, k=len(columns))
        database.execute(f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * len(values))})", values)
    elif how == "odd":
        sql = f"UPDATE OR REPLACE {table} SET {column} = ? WHERE rowid = ?"
        database.execute(sql, (chance.choice(ODD), row))
    elif found is not None:
        value = found[0]
        if how == "forged":
            with suppress(ValueError, TypeError, AttributeError, RecursionError):  # forged before, or no JSON
                value = forged(value, table, chance)
        row = chance.choice(rows) if how == "exchanged" else row
        database.execute(f"UPDATE {table} SET {body} = ? WHERE rowid = ?", (value, row))


def forged(data, table, chance):
    """Change what the value of a row says, and make its checksum right again."""
    if table in ("fact", "measurement"):
        return with_odd_part(data, chance)
    if table == "map":
        said, line, numbers = data[:-4].partition(b"\n")
        return sealed(with_odd_part(said, chance) + line + numbers)
    if table == "step":
        return sealed(
            np.array(chance.choices([0, -1, 1e308, np.nan], k=chance.choice([0, 12, 99]))).tobytes()
        )
    end = 8 + int.from_bytes(data[:8], "little")
    said = with_odd_part(data[8:end], chance)
    return chance.choice([len(said), 2**40]).to_bytes(8, "little") + said + data[end:]


def with_odd_part(text, chance):
    """Replace, remove or rename a part of a JSON document, at any depth."""
    whole = {"it": json.loads(text)}
    inside, name = whole, "it"
    while isinstance(inside[name], dict | list) and inside[name] and chance.random() < 0.8:
        inside = inside[name]
        name = chance.choice([*inside] if isinstance(inside, dict) else range(len(inside)))
    how = chance.choice(["odd", "odd", "odd", "gone", "renamed", "twice"])
    value = inside.pop(name)
    if how in ("odd", "twice") or inside is whole:
        value, how = (chance.choice(ODD_JSON) if how == "odd" else [value, value]), "odd"
    if isinstance(inside, list):
        inside[name:name] = [] if how == "gone" else [value]
    elif how != "gone":
        inside[name if how == "odd" else f"{name}s"] = value
    return json.dumps(whole.get("it", [])).encode()


SERIES = {"damaged": (with_damaged_bytes, False), "damaged, of a stranger": (with_damaged_bytes, True)}
SERIES["forged, of a stranger"] = with_forged_rows, True


@pytest.mark.parametrize("series", SERIES)
@pytest.mark.parametrize("n", [50, pytest.param(1700, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_a_damaged_or_forged_file_is_refused_or_read_with_the_right_numbers(files, tmp_path, n, series):
    (change, strange), chance = SERIES[series], random.Random(f"{n} {series}")
    path, library, n_read = tmp_path / "changed.headlight", Library(tmp_path / "runs"), 0
    for i in range(n):
        data, (maps, rows) = files[i % len(files)]
        path.write_bytes(data)
        change(path, chance)
        began = time.thread_time()
        try:
            opened = opened_by(library, path) if strange else path
            saved = read_run(opened)
        except InputError:
            continue
        finally:
            assert time.thread_time() - began < SECONDS
        n_read += 1
        look_at(saved.view)
        if change is with_damaged_bytes:
            found_maps, found_rows = numbers_of(saved)
            assert found_maps.items() <= maps.items()
            assert found_rows <= rows
        if saved.can_go_on:
            with suppress(InputError):
                unpack(saved)
        if strange:
            assert saved.whole  # it was written by us
            opened.unlink()
    assert 0 < n_read < n
    assert not [one for one in tmp_path.rglob("*") if one.is_file() and one != path]


def opened_by(library, path):
    """Open the file of a stranger as a server does; return the new file."""
    check = partial(check_saved, limits=Limits(memory_mb=200))
    return library.path_of(library.open_file(path.read_bytes(), "digest", 2, check, 10**9))


# Files made to take long: see `SECONDS`.


def interior(child, n, start=0):
    """Return a page of a table that names the same page n times."""
    page = bytearray(PAGE)
    struct.pack_into(">BHHHBI", page, start, 5, 0, n, PAGE - 5 * n, 0, child)
    struct.pack_into(f">{n}H", page, start + 12, *(PAGE - 5 * (i + 1) for i in range(n)))
    page[PAGE - 5 * n :] = (child.to_bytes(4) + b"\x01") * n
    return page


def test_pages_that_name_each_other_again_and_again_are_refused_in_time(files, tmp_path, monkeypatch):
    monkeypatch.setattr(file_module, "READING_SECONDS", 0.5)
    path, first, leaf = tmp_path / "endless.headlight", interior(2, 9000, 100), bytearray(PAGE)
    first[:100] = files[0][0][:28] + struct.pack(">I", 4) + files[0][0][32:100]
    leaf[:10] = struct.pack(">BHHHBH", 13, 0, 1, PAGE - 8, 0, PAGE - 8)
    leaf[-8:] = b"\x06\x01\x06" + bytes(5)  # a row of nothing
    path.write_bytes(first + interior(3, 9000) + interior(4, 9000) + leaf)
    for strange in (False, True):
        began = time.thread_time()
        with pytest.raises(InputError, match="damaged"):
            read_run(path, strange=strange)
        assert time.thread_time() - began < SECONDS


@pytest.mark.parametrize(
    ("n", "last", "why"),
    [
        (3, 9, "the maps of step 0 are there twice"),
        (1, 0, "the maps of step 0 are there twice"),
        (12_000, 9, "more frames than a run can have"),
    ],
)
def test_maps_that_overlap_or_are_too_many_are_refused_in_time(files, tmp_path, n, last, why):
    path = tmp_path / "many.headlight"
    path.write_bytes(files[0][0])
    with closing(sqlite3.connect(path)) as database:
        (data,) = database.execute("SELECT data FROM map WHERE first = 0").fetchone()
        rows = ((99 + i, 0, 0, data) for i in range(n))
        database.executemany("INSERT INTO map VALUES (?, ?, ?, ?)", rows)
        database.execute("DELETE FROM map WHERE first > ?", (last,))
        database.commit()
    began = time.thread_time()
    with pytest.raises(InputError, match=why):
        read_run(path, strange=True)
    assert time.thread_time() - began < SECONDS

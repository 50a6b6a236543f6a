"""Files that are damaged anywhere are read as far as they are intact, or refused with an InputError."""

from __future__ import annotations

import random
import time
from contextlib import suppress

import pytest

from tests.own import own_run
from tests.storage.conftest import finished_run
from transformer.errors import InputError
from transformer.runs.recorded_training import unpack
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
    """Everything in a run that has a checksum, and is read at once."""
    frames = saved.view.frames
    maps = {
        (word, step): {site: codes[i].tobytes() for site, codes in chunk.maps.items()}
        for word in frames.words
        for chunk in frames.chunks_of(word)
        for i, step in enumerate(chunk.steps)
    }
    return maps, saved.view.metrics.rows(0, len(saved.view.metrics)).tobytes()


def damaged(data, chance):
    """Cut off, flip, overwrite or exchange a part of a file."""
    data = bytearray(data)
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
        data[one : one + PAGE], data[other : other + PAGE] = (
            data[other : other + PAGE],
            data[one : one + PAGE],
        )
    else:
        for _ in range(chance.randint(1, 8)):
            # The beginnings of pages hold the structure, the ends of pages the newest rows.
            at = chance.choice(used) + chance.choice([chance.randrange(64), -1 - chance.randrange(2000)])
            at = chance.choice([at, chance.randrange(len(data))]) % len(data)
            data[at] = data[at] ^ 1 << chance.randrange(8) if how == "bits" else chance.randrange(256)
    return bytes(data)


def look_at(view):
    """Check a saved run and read all that pages show of it."""
    assert [f.step for f in view.frames] == sorted({f.step for f in view.frames})
    assert [s.step for s in view.snapshots] == sorted({s.step for s in view.snapshots})
    assert all(one.step <= view.step for one in view.frames)
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


@pytest.mark.parametrize("strange", [False, True])
@pytest.mark.parametrize("n", [100, pytest.param(2500, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_a_damaged_file_is_refused_or_read_with_the_right_numbers(files, tmp_path, n, strange):
    chance, read = random.Random(n + strange), 0
    path = tmp_path / "damaged.headlight"
    for i in range(n):
        data, (maps, rows) = files[i % len(files)]
        path.write_bytes(damaged(data, chance))
        began = time.thread_time()
        try:
            saved = read_run(path, strange=strange)
        except InputError:
            continue
        finally:
            assert time.thread_time() - began < SECONDS
        read += 1
        look_at(saved.view)
        found_maps, found_rows = numbers_of(saved)
        assert found_maps.items() <= maps.items()
        assert rows.startswith(found_rows)
        if saved.can_go_on:
            with suppress(InputError):
                unpack(saved)
    assert 0 < read < n
    assert [one.name for one in tmp_path.iterdir()] == ["damaged.headlight"]

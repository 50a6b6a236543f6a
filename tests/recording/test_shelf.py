"""Arrays on disk: the same numbers, one at a time, and no file left behind."""

from __future__ import annotations

import gc
import tempfile

import numpy as np
import pytest

from transformer.recording import stored as module
from transformer.recording.shelf import Shelf, bytes_in_memory

ARRAYS = {
    "decoder.0.cross": np.arange(24, dtype=np.float16).reshape(2, 3, 4) / 7,
    "to_logits.weight": np.linspace(-1, 1, 10, dtype=np.float32).reshape(5, 2),
    "steps": np.array([3, 1, 2]),
}


@pytest.fixture
def disk(tmp_path, monkeypatch):
    """Where temporary folders are made in this test: every file on it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def files():
        gc.collect()
        return sorted(path for path in tmp_path.rglob("*") if path.is_file())

    return files


def full(*arguments, **named):
    raise OSError(28, "No space left on device")


def test_what_was_put_away_is_the_same_in_name_order_kind_and_number(disk):
    shelved = Shelf().put(ARRAYS)
    assert list(shelved) == list(ARRAYS)
    assert len(shelved) == 3
    for name, array in ARRAYS.items():
        assert np.array_equal(shelved[name], array)
        assert shelved[name].dtype == array.dtype
    assert "steps" in shelved
    assert "allow_pickle" not in shelved
    with pytest.raises(KeyError, match="nobody"):
        shelved["nobody"]


def test_several_lie_side_by_side(disk):
    shelf = Shelf()
    kept = [shelf.put({"a": np.full(3, i)}) for i in range(4)]
    assert len(disk()) == 4
    assert [shelved["a"].tolist() for shelved in kept] == [[i] * 3 for i in range(4)]


def test_only_arrays_in_memory_take_memory(disk):
    assert bytes_in_memory(ARRAYS) == 24 * 2 + 10 * 4 + 3 * 8
    assert bytes_in_memory({}) == 0
    assert bytes_in_memory(Shelf().put(ARRAYS)) == 0


def test_a_file_vanishes_when_nobody_refers_to_it_and_the_folder_with_the_last(disk, tmp_path):
    shelf = Shelf()
    first, second = shelf.put(ARRAYS), shelf.put(ARRAYS)
    assert len(disk()) == 2
    del first
    assert len(disk()) == 1
    del shelf  # the second still holds on to it
    assert np.array_equal(second["steps"], [3, 1, 2])
    del second
    assert disk() == []
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_told_and_leaves_no_half_a_file(disk, monkeypatch):
    shelf = Shelf()
    kept = shelf.put(ARRAYS)

    monkeypatch.setattr(module.os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device"):
        shelf.put(ARRAYS)
    assert len(disk()) == 1
    assert np.array_equal(kept["steps"], [3, 1, 2])

"""A film that thins its own past: bounded, in order, and never losing what must stay."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pytest

from transformer.recording import shelf as module
from transformer.recording.reel import Reel
from transformer.recording.shelf import Array, bytes_in_memory

SIZE = 80
LIMIT = 20 * SIZE


@dataclass(frozen=True, eq=False)
class Thing:
    step: int
    arrays: Mapping[str, Array]

    @property
    def nbytes(self) -> int:
        return bytes_in_memory(self.arrays)


def thing(step, n=SIZE // 8):
    return Thing(step, {"numbers": np.full(n, float(step))})


@pytest.fixture
def disk(tmp_path, monkeypatch):
    """Every file in the folder of temporary folders."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def files():
        gc.collect()
        return [path for path in tmp_path.rglob("*") if path.is_file()]

    return files


@pytest.fixture
def make_reel(disk):
    def make(limit=LIMIT):
        return Reel(limit, lambda one, shelf: replace(one, arrays=shelf.put(one.arrays)))

    return make


def steps(reel):
    return [one.step for one in reel.kept]


def in_memory(reel):
    return sum(one.nbytes for one in reel.kept)


def whole(reel):
    """Every thing kept still holds the numbers of its step."""
    return all((one.arrays["numbers"] == one.step).all() for one in reel.kept)


def test_thousands_stay_within_the_limit_and_the_first_the_last_and_the_protected_are_there(make_reel, disk):
    reel, protected = make_reel(), set()
    for step in range(0, 9000, 3):
        if step in (600, 603, 5100):
            protected.add(step)
        reel.add(thing(step), protected)
        found = steps(reel)
        assert in_memory(reel) <= LIMIT
        assert (found[0], found[-1]) == (0, step)
        assert found == sorted(set(found))
        assert protected <= set(found)
        assert step < 60 or len(found) >= 9
    assert whole(reel)
    assert disk() == []  # there was no need


def test_nothing_goes_while_there_is_room(make_reel):
    reel = make_reel()
    for step in range(20):
        reel.add(thing(step), set())
    assert steps(reel) == list(range(20))
    reel.add(thing(20), set())
    assert len(reel.kept) == 16  # a quarter has gone, all of it from the older half
    assert steps(reel)[-11:] == list(range(10, 21))


def test_what_is_old_is_thinned_more_than_what_is_new(make_reel):
    reel = make_reel(40 * SIZE)
    for step in range(1000):
        reel.add(thing(step), set())
    gaps = np.diff(steps(reel))
    assert gaps[-10:].max() == 1
    assert gaps[2:9].min() > 8


@pytest.mark.parametrize("last", [400, 1000, 5000])
def test_no_stretch_of_the_past_is_forgotten_altogether_and_the_beginning_least(make_reel, last):
    reel = make_reel(40 * SIZE)
    for step in range(last + 1):
        reel.add(thing(step), set())
    found = np.array(steps(reel))
    assert np.diff(found).max() <= last / 3
    assert (found <= last / 10).sum() > (found <= last / 5).sum() / 2
    assert (found <= last / 2).sum() >= 8


def test_one_of_the_same_step_takes_the_place_of_the_newest(make_reel):
    reel = make_reel()
    for step in range(19):
        reel.add(thing(step), set())
    for _ in range(50):
        again = thing(18)
        reel.add(again, set())
    assert steps(reel) == list(range(19))
    assert reel.kept[-1] is again


def test_readers_keep_what_they_took(make_reel):
    reel = make_reel()
    for step in range(15):
        reel.add(thing(step), set())
    taken = reel.kept
    before = list(taken)
    for step in range(15, 300):
        reel.add(thing(step), {7})
    assert list(taken) == before
    assert [one.step for one in taken] == list(range(15))
    assert all((one.arrays["numbers"] == one.step).all() for one in taken)


def test_a_protected_flood_goes_to_disk_the_oldest_first_and_is_read_from_there(make_reel, disk):
    reel, protected = make_reel(), set()
    for step in range(500):
        protected.add(step)
        reel.add(thing(step), protected)
        assert in_memory(reel) <= LIMIT
    assert steps(reel) == list(range(500))
    assert whole(reel)
    assert [one.nbytes > 0 for one in reel.kept] == [False] * 480 + [True] * 20
    assert len(disk()) == 480


def test_what_is_not_protected_goes_before_anything_goes_to_disk(make_reel, disk):
    reel = make_reel()
    for step in range(200):
        reel.add(thing(step), set(range(0, 200, 20)))
    assert disk() == []
    assert set(range(0, 200, 20)) <= set(steps(reel))


def test_the_files_vanish_with_the_reel_but_not_under_a_reader(make_reel, disk):
    reel = make_reel(3 * SIZE)
    for step in range(8):
        reel.add(thing(step), set(range(8)))
    taken = reel.kept[:2]
    assert len(disk()) == 5
    del reel
    assert (taken[1].arrays["numbers"] == 1).all()
    assert len(disk()) == 2
    del taken
    assert disk() == []


def test_one_thing_may_be_larger_than_the_limit(make_reel, disk):
    reel = make_reel()
    reel.add(thing(0, n=1000), set())
    assert steps(reel) == [0]
    assert in_memory(reel) == 8000
    reel.add(thing(4, n=1000), set())  # the first stays, but not in memory: the newest is at hand
    assert steps(reel) == [0, 4]
    assert [one.nbytes for one in reel.kept] == [0, 8000]
    reel.add(thing(9, n=1000), set())
    assert steps(reel) == [0, 9]
    assert whole(reel)


@pytest.mark.parametrize("where", ["no room for the file", "no room for the folder"])
def test_a_full_disk_loses_nothing(make_reel, disk, monkeypatch, where):
    def full(*arguments, **named):
        raise OSError(28, "No space left on device")

    if where == "no room for the file":
        monkeypatch.setattr(module, "store", full)
    else:
        monkeypatch.setattr(module.tempfile, "mkdtemp", full)
    reel = make_reel()
    for step in range(60):
        reel.add(thing(step), set(range(60)))
    assert steps(reel) == list(range(60))
    assert whole(reel)
    assert in_memory(reel) == 60 * SIZE
    monkeypatch.undo()
    reel.add(thing(60), set(range(60)))  # there is room again
    assert in_memory(reel) <= LIMIT
    assert steps(reel) == list(range(61))
    assert whole(reel)


def test_things_put_on_disk_at_once_are_left_in_memory_from_where_it_was_full(make_reel, monkeypatch):
    reel, store, calls = make_reel(), module.store, []

    def full_at_third(*arguments, **named):
        calls.append(arguments)
        if len(calls) > 2:
            raise OSError(28, "No space left on device")
        store(*arguments, **named)

    monkeypatch.setattr(module, "store", full_at_third)
    things = reel.shelve_all([thing(step) for step in range(5)])
    assert [one.nbytes for one in things] == [0, 0, SIZE, SIZE, SIZE]
    assert len(calls) == 3
    assert all((one.arrays["numbers"] == one.step).all() for one in things)

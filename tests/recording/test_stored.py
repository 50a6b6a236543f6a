"""Arrays in a file: the same again in every respect, whole or absent; what is wrong is told with its name."""

from __future__ import annotations

import errno
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as of_numpy
from safetensors.numpy import load_file, save_file
from safetensors.torch import save_file as save_torch

from transformer.errors import InputError
from transformer.recording import stored as module
from transformer.recording.stored import Stored, store, stored_facts, write_whole

ROOT = Path(__file__).parents[2]
KINDS = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "bool")
ARRAYS = {
    "decoder.0.cross": np.arange(24, dtype=np.float16).reshape(2, 3, 4) / 7,
    "to_logits.weight": np.linspace(-1, 1, 10, dtype=np.float32).reshape(5, 2),
    "step": np.array(60.0, dtype=np.float32),
    "nobody": np.zeros((0, 3)),
    "a": np.array([3, 1, 2]),
    "": np.array([True, False]),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "frames" / "000003.safetensors"


@pytest.fixture
def kept(path):
    """A file that holds `ARRAYS`."""
    path.parent.mkdir()
    store(path, ARRAYS, '{"what": "ever"}')
    return path


def same(ours, theirs):
    assert list(ours) == list(theirs)
    for name, array in theirs.items():
        assert (ours[name].dtype, ours[name].shape) == (array.dtype, array.shape)
        assert ours[name].tobytes() == array.tobytes()


# The same again.


def test_names_are_in_order_and_arrays_equal_with_their_kind_and_shape(kept):
    stored = Stored(kept)
    same(stored, ARRAYS)
    assert len(stored) == len(ARRAYS)
    assert stored_facts(kept) == '{"what": "ever"}'
    assert "step" in stored
    assert "nothing" not in stored
    with pytest.raises(KeyError, match="nothing"):
        stored["nothing"]


def test_the_package_of_the_format_reads_the_same(kept):
    read = load_file(kept)
    same({name: read[name] for name in ARRAYS}, ARRAYS)


@settings(derandomize=True, deadline=None, database=None)
@given(
    st.dictionaries(
        st.text(max_size=8),
        of_numpy.arrays(st.sampled_from(KINDS), of_numpy.array_shapes(min_dims=0, max_dims=4, min_side=0)),
        max_size=4,
    ),
    st.text(),
)
def test_any_names_arrays_and_facts_come_back(tmp_path_factory, arrays, facts):
    path = tmp_path_factory.getbasetemp() / "any.safetensors"
    if "__metadata__" in arrays:  # the format's own name
        return
    store(path, arrays, facts)
    same(Stored(path), arrays)
    assert stored_facts(path) == facts


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.T,
        lambda a: a[::-1],
        lambda a: a[:, ::2],
        lambda a: np.asfortranarray(a),
        lambda a: a[1, 2],
    ],
    ids=["turned", "backwards", "every second", "columns first", "one number"],
)
def test_how_an_array_lies_in_memory_does_not_matter(path, view):
    path.parent.mkdir()
    array = view(np.arange(12.0).reshape(3, 4))
    store(path, {"a": array}, "")
    assert np.array_equal(Stored(path)["a"], array)
    assert Stored(path)["a"].shape == np.shape(array)


def test_numbers_that_are_none_and_endless_ones_stay_what_they_are(path):
    path.parent.mkdir()
    array = np.array([np.nan, -np.inf, np.inf, -0.0, 5e-324])
    store(path, {"a": array}, "")
    assert Stored(path)["a"].tobytes() == array.tobytes()


def test_what_is_read_belongs_to_who_read_it(kept):
    """Torch warns of arrays that cannot be written."""
    one, other = Stored(kept)["a"], Stored(kept)["a"]
    one += 1
    assert (one.tolist(), other.tolist()) == ([4, 2, 3], [3, 1, 2])
    assert torch.from_numpy(one).sum() == 9


def test_of_one_part_only_its_names_are_seen_without_their_beginning(path):
    path.parent.mkdir()
    store(path, {"maps/a": np.zeros(1), "scores/a": np.ones(1), "maps/b": np.full(1, 2.0)}, "")
    maps = Stored(path, "maps/")
    assert {name: values.tolist() for name, values in maps.items()} == {"a": [0.0], "b": [2.0]}
    with pytest.raises(KeyError):
        maps["scores/a"]
    assert list(Stored(path, "weights/")) == []


@pytest.mark.parametrize(
    "array",
    [np.array([{}], dtype=object), np.array(["a"]), np.array([1, 2], dtype="datetime64[s]")],
    ids=repr,
)
def test_what_is_no_number_is_not_written(path, array):
    path.parent.mkdir()
    with pytest.raises(Exception, match="(?i)dtype|type"):
        store(path, {"a": array}, "")
    assert list(path.parent.iterdir()) == []


# Damage.


def told(read, path):
    with pytest.raises(InputError) as refused:
        read(path)
    assert str(refused.value).startswith("frames/000003.safetensors cannot be read (")
    return str(refused.value)


def everything(path):
    return dict(Stored(path)), stored_facts(path)


def header_of(path):
    data = path.read_bytes()
    n = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8 : 8 + n]), data[8 + n :]


def written(path, header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)


def with_header(change):
    """The same file with a header that somebody has changed."""

    def damage(path):
        header, data = header_of(path)
        change(header)
        written(path, header, data)

    return damage


def with_order(order):
    return with_header(lambda header: header["__metadata__"].update(order=order))


def with_array(**changes):
    return with_header(lambda header: header["a"].update(changes))


HUGE = 2**62
DAMAGE = {
    "empty": lambda path: path.write_bytes(b""),
    "seven bytes": lambda path: path.write_bytes(path.read_bytes()[:7]),
    "without a header": lambda path: path.write_bytes(path.read_bytes()[:8]),
    "half a header": lambda path: path.write_bytes(path.read_bytes()[:60]),
    "without arrays": lambda path: written(path, header_of(path)[0]),
    "without the last byte": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "one byte too many": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "header of a gigabyte": lambda path: written(path, b"{}", length=2**30),
    "header of 99 megabytes": lambda path: written(path, b"{}", length=99_000_000),
    "header of all numbers": lambda path: written(path, b"{}", length=2**64 - 1),
    "another kind of file": lambda path: path.write_bytes(b"PK\3\4 is how a zip begins"),
    "text": lambda path: path.write_text("dear diary"),
    "no JSON": lambda path: written(path, b"{{{{"),
    "deep JSON": lambda path: written(path, 100_000 * b"["),
    "a list": lambda path: written(path, [1, 2]),
    "beyond the file": with_array(data_offsets=[0, HUGE], shape=[HUGE // 8]),
    "before the file": with_array(data_offsets=[-24, 0]),
    "backwards": with_array(data_offsets=[24, 0]),
    "an array larger than its bytes": with_array(shape=[2**40]),
    "a shape beyond all numbers": with_array(shape=[2**40, 2**40, 2**40]),
    "a shape below nothing": with_array(shape=[-3]),
    "an unknown kind": with_array(dtype="O"),
    "another name": with_header(lambda header: header.update(b=header.pop("a"))),
    "a name too many": with_order(json.dumps([*ARRAYS, "b"])),
    "a name too few": with_order(json.dumps(list(ARRAYS)[1:])),
    "without order": with_header(lambda header: header["__metadata__"].pop("order")),
    "without facts and order": with_header(lambda header: header.pop("__metadata__")),
    "an order that is none": with_order("{"),
    "an order of numbers": with_order("[1, [2], null]"),
    "one number for an order": with_order("7"),
    "a deep order": with_order(100_000 * "["),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "missing": lambda path: path.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE, ids=str)
def test_damage_is_told_with_the_name_of_the_file(kept, damage):
    DAMAGE[damage](kept)
    assert len(told(everything, kept)) < 2000


@pytest.mark.parametrize("part", range(1, 20))
def test_a_file_that_was_cut_off_anywhere_is_told(kept, part):
    kept.write_bytes(kept.read_bytes()[: kept.stat().st_size * part // 20])
    told(everything, kept)


def test_a_kind_of_number_that_numpy_does_not_have_is_told(path):
    path.parent.mkdir()
    numbers = {"a": torch.zeros(3, dtype=torch.bfloat16)}
    save_torch(numbers, path, {"order": '["a"]', "facts": ""})
    told(everything, path)


def test_a_file_without_our_facts_has_none(path):
    path.parent.mkdir()
    save_file({}, path)
    assert (dict(Stored(path)), stored_facts(path)) == ({}, "")


@pytest.mark.parametrize("bit", range(8))
def test_a_flipped_bit_in_the_header_is_told_or_changes_no_array(kept, bit):
    whole = kept.read_bytes()
    n = struct.unpack("<Q", whole[:8])[0]
    told_of = 0
    for place in range(8 + n):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << bit
        kept.write_bytes(damaged)
        try:
            arrays, _ = everything(kept)
        except InputError as error:
            told_of += str(error).startswith("frames/000003.safetensors cannot be read (")
        else:  # only the facts are others, or the same bytes are read as other numbers
            assert {name: array.tobytes() for name, array in arrays.items()} == {
                name: array.tobytes() for name, array in ARRAYS.items()
            }
    assert told_of > 0.75 * n


def test_a_file_that_vanishes_or_changes_is_told_when_an_array_is_asked_for(kept):
    stored = Stored(kept)
    kept.write_bytes(kept.read_bytes()[:-20])
    told(lambda _: stored["a"], kept)
    kept.unlink()
    told(lambda _: stored["a"], kept)
    assert list(stored) == list(ARRAYS)


def test_no_damage_takes_memory(kept, tmp_path):
    """Each damaged file is read by a process that may have little more memory than it has."""
    whole, files = kept.read_bytes(), []
    (tmp_path / "damaged").mkdir()
    for i, damage in enumerate(DAMAGE.values()):
        kept.write_bytes(whole)
        damage(kept)
        if kept.is_file():
            files.append(str(kept.rename(tmp_path / "damaged" / f"{i}.safetensors")))
        elif kept.is_dir():
            kept.rmdir()
    program = """if True:
        import resource, sys
        from pathlib import Path
        from transformer.errors import InputError
        from transformer.recording.stored import Stored, store
        store(Path(sys.argv[1] + ".first"), {}, "")
        dict(Stored(Path(sys.argv[1] + ".first")))  # now all that is ever imported has been
        has = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (has + 64 * 2**20,) * 2)
        for name in sys.argv[1:]:
            try:
                dict(Stored(Path(name)))
            except InputError as error:
                sys.stdout.write(f"{error}\\n")
    """
    done = subprocess.run(
        [sys.executable, "-c", program, *files], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) == len(files) == len(DAMAGE) - 2
    short_of_memory = ("().", "memory")  # Python says nothing of it, the system this word
    assert [line for line in lines if any(words in line for words in short_of_memory)] == []


# Whole or absent.


class Refusing:
    """A file that takes some bytes, and then the disk is full."""

    def __init__(self, file, room):
        self._file, self._room = file, room

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def write(self, data):
        self._file.write(data[: self._room])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture(params=["in the middle", "at the end", "in taking its name"])
def full(request, monkeypatch):
    """The disk is full, and tells it at one moment or another."""

    def refuse(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fill():
        if request.param == "in the middle":
            real = Path.open
            monkeypatch.setattr(Path, "open", lambda self, *how: Refusing(real(self, *how), 100))
        elif request.param == "at the end":
            monkeypatch.setattr(module.os, "fsync", refuse)
        else:
            monkeypatch.setattr(Path, "replace", refuse)

    return fill


def test_where_the_disk_refuses_the_old_file_stays_whole_and_nothing_else_is_left(kept, full):
    full()
    with pytest.raises(OSError, match="No space left on device"):
        store(kept, {"other": np.ones(1000)}, "")
    with pytest.raises(OSError, match="No space left on device"):
        store(kept.with_name("new.safetensors"), {"other": np.ones(1000)}, "")
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]
    same(Stored(kept), ARRAYS)


def test_a_real_device_that_is_full_leaves_nothing_half_written(kept):
    whole = kept.read_bytes()
    kept.with_name(kept.name + ".partial").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device"):
        write_whole(kept, 1000 * b"new")
    assert kept.read_bytes() == whole
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]


def test_the_bytes_are_on_the_disk_before_the_file_has_its_name(path, monkeypatch):
    """Else a power cut could leave the name and no bytes."""
    path.parent.mkdir()
    seen = []
    fsync = os.fsync

    def noted(number):
        fsync(number)
        seen.append((os.fstat(number).st_size, path.exists()))

    monkeypatch.setattr(module.os, "fsync", noted)
    write_whole(path, b"twelve bytes")
    assert seen == [(12, False)]
    assert path.read_bytes() == b"twelve bytes"
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_what_a_process_left_half_written_when_it_was_killed_is_in_nobody_s_way(kept):
    kept.with_name(kept.name + ".partial").write_bytes(b"half")
    store(kept, {"a": np.ones(2)}, "")
    assert Stored(kept)["a"].tolist() == [1.0, 1.0]
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]


def test_a_reader_always_finds_a_whole_file_while_it_is_written_again_and_again(kept):
    for i in range(50):
        store(kept, {"a": np.full(100, i)}, str(i))
        assert set(Stored(kept)["a"].tolist()) == {i}
        assert stored_facts(kept) == str(i)

"""A run's folder with damaged files is read as far as it is intact, or refused with an InputError."""

from __future__ import annotations

import json
import shutil
import struct
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.fuzzing import profile, with_odd_value
from tests.own import own_run
from tests.storage.conftest import finished_run
from transformer.errors import InputError
from transformer.fitting import with_task
from transformer.recording.records import Record, body_of, content, scan
from transformer.runs.recorded_training import unpack
from transformer.storage.format import read_run_file
from transformer.storage.saved import read_run
from transformer.tasks.pairs.caps import Caps, select_pairs
from transformer.tasks.pairs.own import OwnPairs
from transformer.tasks.pairs.reading import Reading
from transformer.tasks.pairs.store import intern_pairs, intern_tokenizer

SECONDS = 2.0
"""Maximum CPU time for reading a folder."""


# Intact folders.


@pytest.fixture(scope="module")
def folders(tiny_run, tmp_path_factory):
    """The parent folder, and three intact runs in it: of words, of own pairs, and of an own model."""
    place = tmp_path_factory.mktemp("fuzz")
    small = tiny_run.with_changes(steps=4, evaluate_every=2)
    pairs = tuple((f"the {i} cats", f"les {i} chats") for i in range(60))
    own = intern_pairs(OwnPairs(select_pairs(Reading(pairs, "TSV, 2 columns"), Caps())))
    words = {word for pair in pairs for side in pair for word in side.split()}
    brought = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {
            "type": "WordLevel",
            "vocab": {w: i for i, w in enumerate(["[UNK]", *sorted(words)])},
            "unk_token": "[UNK]",
        },
    }
    tokenizer = intern_tokenizer(json.dumps(brought))
    of_pairs = with_task(small.with_changes(n_heads=4), "pairs").with_changes(
        pairs=own.digest, tokenizer="file", tokenizer_file=tokenizer.digest, d_model=12, n_heads=3, steps=4
    )
    (place / "letter.txt").write_text("dear")
    finished_run(small, place / "whole")
    finished_run(of_pairs, place / "pairs")
    return place, [place / "whole", place / "pairs", own_run(place / "own", 4)]


# Damage: each function takes a folder, a file in it and Hypothesis's `draw`, and changes the folder.


def files(folder):
    return sorted(
        path for path in folder.rglob("*") if path.is_file() and path.name not in ("run.lock", "writer.json")
    )


def cut_off(folder, path, draw):
    data = path.read_bytes()
    path.write_bytes(data[: draw(st.integers(0, max(0, len(data) - 1)))])


def bits_flipped(folder, path, draw):
    data = bytearray(path.read_bytes())
    for _ in range(draw(st.integers(1, 4)) if data else 0):
        ends = draw(st.sampled_from([64, 1024, len(data)]))  # headers are near the ends
        at = draw(st.integers(0, min(ends, len(data)) - 1))
        at = draw(st.sampled_from([at, len(data) - 1 - at]))
        data[at] ^= 1 << draw(st.integers(0, 7))
    path.write_bytes(data)


def of_another_run(folder, path, draw):
    others = folder.parent / draw(st.sampled_from(["whole", "pairs", "own"]))
    other = others / path.relative_to(folder)
    path.write_bytes((other if other.exists() else draw(st.sampled_from(files(others)))).read_bytes())


def gone(folder, path, draw):
    path.unlink()
    if draw(st.booleans()):
        path.mkdir()


def odd_records(folder, path, draw):
    """Write valid records in another order, twice, with odd facts or with the arrays of other records."""
    path = folder / draw(st.sampled_from(["frames.bin", "weights.bin"]))
    if not path.is_file():
        return
    try:
        records = [Record(one.facts, body_of(path, one)) for one in scan(path)]
    except InputError:  # an earlier damage broke the file
        return
    for _ in range(draw(st.integers(1, 3)) if records else 0):
        i, j = (draw(st.integers(0, len(records) - 1)) for _ in range(2))
        facts, body = draw(st.booleans()), draw(st.booleans())
        records[i] = Record(records[j if facts else i].facts, records[j if body else i].body)
        with suppress(ValueError):
            if draw(st.booleans()):
                odd = with_odd_value(json.loads(records[i].facts), draw)
                records[i] = Record(json.dumps(odd).encode("utf-8", "surrogatepass"), records[i].body)
    path.write_bytes(content(records))


def odd_run_json(folder, path, draw):
    path = folder / "run.json"
    with suppress(ValueError, OSError):  # an earlier damage broke the file
        odd = with_odd_value(json.loads(path.read_text(encoding="utf-8")), draw)
        path.write_text(json.dumps(odd), encoding="utf-8")


def odd_facts(folder, path, draw):
    """Write odd facts, or an odd header, to an otherwise intact file of arrays."""
    training = folder / "training.safetensors"
    if training.is_file() and draw(st.booleans()):
        path = training
    data = path.read_bytes()
    if path.suffix != ".safetensors" or len(data) < 8:
        return
    n = struct.unpack("<Q", data[:8])[0]
    try:
        header = json.loads(data[8 : 8 + n])
        if draw(st.integers(0, 3)):
            facts = with_odd_value(json.loads(header["__metadata__"]["facts"]), draw)
            header["__metadata__"]["facts"] = json.dumps(facts)
        else:
            header = with_odd_value(header, draw)
    except (ValueError, KeyError, TypeError):  # an earlier damage broke the file
        return
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + n :])


DAMAGES = [
    cut_off,
    gone,
    of_another_run,
    *2 * [bits_flipped, odd_run_json],
    *3 * [odd_records, odd_facts],
]


# Allowed outcomes.


def tree(place):
    return {path.relative_to(place): path.is_file() and path.stat().st_size for path in place.rglob("*")}


def read_anyhow(folder):
    """Read a folder within the time limit; return the `Saved` run or the `InputError`."""
    began = time.thread_time()
    try:
        found = read_run(folder)
    except InputError as error:
        found = error
    assert time.thread_time() - began < SECONDS
    return found


def look_at(view):
    """Check a saved run and read all that pages show of it."""
    assert [f.step for f in view.frames] == sorted({f.step for f in view.frames})
    assert [s.step for s in view.snapshots] == sorted({s.step for s in view.snapshots})
    assert all(one.step <= view.step for one in (*view.frames, *view.snapshots))
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


def touched(folder, original):
    """Return whether the training state has changed; an intact one is tested elsewhere."""
    path = folder / "training.safetensors"
    return path.is_file() and path.read_bytes() != (original / path.name).read_bytes()


@pytest.mark.timeout(3600)
@profile(100)
@given(st.data())
def test_a_damaged_folder_is_read_as_far_as_it_is_intact_or_refused(folders, data):
    place, whole = folders
    original = data.draw(st.sampled_from(whole))
    folder = place / "damaged"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(original, folder)
    for damage in data.draw(st.lists(st.sampled_from(DAMAGES), min_size=1, max_size=3)):
        there = files(folder)
        if there:
            event(damage.__name__)
            damage(folder, data.draw(st.sampled_from(there)), data.draw)
    before = tree(place)
    found = read_anyhow(folder)
    if isinstance(found, InputError):
        event("refused")
        assert 0 < len(str(found)) < 1500
    else:
        event("read")
        look_at(found.view)
        if (
            found.can_go_on
            and touched(folder, original)
            and found.view.config == read_run_file(original).config
        ):
            event("can go on")
            try:
                unpack(folder, found.view.config)
            except InputError:
                event("and does not")
    assert tree(place) == before


def test_the_folders_are_intact_before_they_are_damaged(folders):
    for folder in folders[1]:
        found = read_anyhow(folder)
        assert (found.view.state, found.view.step) == ("finished", 4)
        assert found.can_go_on is (found.view.own is None)
        assert found.view.frames.steps == (0, 1, 2, 3, 4)
        look_at(found.view)
    assert Path(folders[1][1] / "pairs.tsv").exists()
    assert Path(folders[1][1] / "tokenizer.json").exists()

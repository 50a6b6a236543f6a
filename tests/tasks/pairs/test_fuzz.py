"""Arbitrary bytes are refused with an `InputError`, or every line of them is accounted for."""

from __future__ import annotations

import csv
import io
from collections import Counter

import numpy as np
from hypothesis import event, given
from hypothesis import strategies as st

from tests.fuzzing import profile
from transformer.errors import InputError
from transformer.tasks.pairs.caps import Caps, select_pairs
from transformer.tasks.pairs.own import OwnPairs, from_tsv, to_tsv
from transformer.tasks.pairs.reading import MAX_SIDE, MIN_PAIRS, read_pairs
from transformer.tasks.pairs.text import plain

LARGEST = 2**16
"""Maximum size of a file, in bytes."""
ODD = "aé '\"\t\n\r,;|{}[]:\\<>0\x85\x1c\u00a0\u2028\u202f\ufeff纽İʼn\u0301?!.-’_"
WORDS = st.text(alphabet="abcéñ纽我 '-?!.", min_size=1, max_size=12)
ROWS = st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=40)
BITS = st.sampled_from([b"", b'"', b"\t", b",", b"\n", b"\r", b"{", b"\xc2\x85", b"\n\n", b"\0", b"\xff"])
ODD_TEXT = st.text(alphabet=ODD, max_size=200).map(str.encode)


def as_csv(pairs, delimiter):
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows(pairs)
    return out.getvalue()


WRITTEN = [
    lambda pairs: "".join(f"{s}\t{t}\n" for s, t in pairs),
    lambda pairs: "".join(f"{i}\t{s}\t{i}\t{t}\r\n" for i, (s, t) in enumerate(pairs)),
    lambda pairs: as_csv(pairs, ","),
    lambda pairs: as_csv(pairs, ";").replace("\n", "\r\n"),
    lambda pairs: as_csv([("source", "target"), *((f"{s}, {s}\n{t}", f'"{t}"') for s, t in pairs)], ","),
    lambda pairs: "sep=;\n" + as_csv([(i, s, f"{t}; {s}") for i, (s, t) in enumerate(pairs)], ";"),
]


@st.composite
def files_of_pairs(draw):
    """A file of many different pairs in some format, with parts overwritten, cut out or repeated."""
    pairs, times = draw(ROWS), draw(st.integers(10, 120))
    many = [(f"{s} {k}", f"{t} {k}") for k in range(times) for s, t in pairs]
    encoding = draw(st.sampled_from(["utf-8"] * 6 + ["utf-8-sig", "utf-16", "latin-1"]))
    data = bytearray(draw(st.sampled_from(WRITTEN))(many).encode(encoding, "replace")[:LARGEST])
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2, 6]))):
        at = draw(st.integers(0, len(data)))
        length = draw(st.sampled_from([0, 0, 1, 2, 10, 100, 3000]))
        data[at : at + length] = draw(BITS | ODD_TEXT | st.just(bytes(data[at : at + 500])))
    return bytes(data[:LARGEST])


@st.composite
def aligned_files(draw):
    """Two files, usually with the same number of lines."""
    pairs, times = draw(ROWS), draw(st.integers(1, 60))
    missing = draw(st.sampled_from([0, 0, 0, 1]))
    sources = [f"{s} {k}" for k in range(times) for s, _ in pairs]
    targets = [f"{t} {k}" for k in range(times) for _, t in pairs][missing:]
    return ["\n".join(lines).encode()[:LARGEST] for lines in (sources, targets)]


REPEATED = st.builds(
    lambda bit, n: (bit * n)[:LARGEST], st.binary(max_size=300) | ODD_TEXT, st.integers(1, 300)
)
CONTENTS = st.one_of(st.binary(max_size=4000), REPEATED, *[files_of_pairs()] * 6)
ONE = st.lists(CONTENTS, min_size=1, max_size=1)
UPLOADS = st.one_of(*[ONE] * 6, aligned_files(), st.lists(CONTENTS, max_size=3))
CAPS = st.builds(
    Caps,
    swap=st.booleans(),
    longest_source=st.none() | st.integers(1, 12),
    longest_target=st.none() | st.integers(1, 12),
    min_frequency=st.sampled_from([1, 1, 2, 5]),
    most_pairs=st.none() | st.integers(1, 500),
    lower=st.booleans(),
)


@profile(150)
@given(UPLOADS, st.text(max_size=10), CAPS, st.sampled_from([None, None, True, False]))
def test_any_bytes_are_refused_with_an_input_error_or_read_to_the_last_line(files, name, caps, heading):
    reading = read_or_refused([(name, content) for content in files], heading)
    if isinstance(reading, InputError):
        event("refused")
        assert reading.field == "pairs_upload"
        assert len(str(reading)) < 1000
        return
    event(f"read: {reading.format}")
    check_reading(reading, files)
    made = select_pairs(reading, caps)
    check_capped(made, reading)
    try:
        own = OwnPairs(made)
    except InputError:
        event("too few sources")
        return
    event("a corpus")
    check_own(own)


def read_or_refused(files, heading):
    """Return the reading or its `InputError`; any other exception is a failure."""
    try:
        return read_pairs(files, heading=heading)
    except InputError as error:
        return error


def check_reading(reading, files):
    assert reading.read == len(reading.pairs) == len(set(reading.pairs)) >= MIN_PAIRS
    for side in (side for pair in reading.pairs for side in pair):
        assert side == plain(side) != ""
        assert len(side) <= MAX_SIDE
        side.encode()  # no lone surrogates
    if b"\r" not in files[0] and not files[0].startswith((b"\xff\xfe", b"\xfe\xff")):
        lines = len(files[0].removesuffix(b"\n").split(b"\n"))
        n_headings = reading.heading is not None
        assert reading.read + reading.n_skipped + reading.line_breaks + n_headings == lines


def check_capped(made, reading):
    assert len(made.pairs) == len(set(made.pairs)) <= reading.read
    assert len(made.pairs) <= (made.caps.most_pairs or len(made.pairs))
    for writing, side, longest in (
        (made.src, 0, made.caps.longest_source),
        (made.tgt, 1, made.caps.longest_target),
    ):
        units = [writing.units(pair[side]) for pair in made.pairs]
        assert all(map(len, units))
        assert longest is None or max(map(len, units), default=0) <= longest
        counts = Counter(unit for some in units for unit in some)
        assert min(counts.values(), default=made.caps.min_frequency) >= made.caps.min_frequency


def check_own(own):
    trained, asked = own.drawn(np.random.default_rng(0), 1), own.held_out()
    by_units = {own.src.units(pair.source) for pair in trained}
    assert not by_units & {own.src.units(pair.source) for pair in asked}, "not even as tokens"
    assert own.size == len(trained) > 0
    assert len(own.tracked_words()) == 5
    for word in own.tracked_words():
        assert own.find(own.read(word)).held_out
    again = from_tsv(to_tsv(own))
    assert (again.digest, again.held_out()) == (own.digest, asked)

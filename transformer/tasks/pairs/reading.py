"""From uploaded files to pairs: what was read, what was left out and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from transformer.tasks.pairs.file_text import lines_of
from transformer.tasks.pairs.formats import layout_of_one, layout_of_two
from transformer.tasks.pairs.limits import EXPECTED, MAX_BYTES, MAX_SIDE, MIN_PAIRS, named, refused
from transformer.tasks.pairs.record import Record
from transformer.tasks.pairs.sides import plain, shortened

EMPTY_SIDE = "an empty side"
LONG_SIDE = f"a sentence longer than {MAX_SIDE:,} characters"
AGAIN = "the same pair as before"
EXAMPLES = 3
"""Shown for each reason."""


class Example(NamedTuple):
    """A line that gave no pair."""

    line: int
    """Counted from 1."""
    text: str
    """Its beginning."""


@dataclass(frozen=True)
class Skipped:
    """Lines that gave no pair, all for one reason."""

    reason: str
    count: int
    examples: tuple[Example, ...]


@dataclass(frozen=True)
class Reading:
    """What was found in the files. Another target for the same source is a pair like any other."""

    pairs: tuple[tuple[str, str], ...]
    """Sentences and their translations, in the order of the file, spelled as there but for spaces."""
    format: str
    """What the files turned out to be, for a person to read."""
    seen: int
    """Lines or records, a header not counted: those that gave a pair and those that were skipped."""
    skipped: tuple[Skipped, ...] = field(default=())
    """The most frequent reason first."""

    @property
    def read(self) -> int:
        """Number of pairs."""
        return len(self.pairs)


def read_pairs(files: Sequence[tuple[str, bytes]]) -> Reading:
    """Read one file with both sides, or two files with a side each, sources first.

    Args:
        files: name and content. The name is shown in errors and tells nothing.

    Raises:
        InputError: of any bytes that are not mostly pairs, with what was expected and what was found.
    """
    if not 1 <= len(files) <= 2:
        raise refused(f"{len(files)} files are given; upload one with both languages, or two with one each.")
    size = sum(len(data) for _, data in files)
    if size > MAX_BYTES:
        raise refused(
            f"{size / 1e6:.1f} MB is too much; at most {MAX_BYTES / 1e6:.0f} MB can be read. "
            "Upload a part of it."
        )
    lines = [lines_of(name, data) for name, data in files]
    if len(files) == 1:
        layout = layout_of_one(files[0][0], lines[0])
    else:
        layout = layout_of_two((files[0][0], files[1][0]), *lines)
    pairs, skipped = _sifted(layout.records)
    reading = Reading(pairs, layout.format, len(layout.records), skipped)
    if reading.read < MIN_PAIRS:
        raise refused(_too_few(files, reading))
    return reading


def _sifted(records: Sequence[Record]) -> tuple[tuple[tuple[str, str], ...], tuple[Skipped, ...]]:
    """The pairs that can be used, and the rest by reason."""
    pairs: dict[tuple[str, str], None] = {}
    left_out: dict[str, list[Record]] = {}
    for record in records:
        fault = record.fault
        if record.sides is not None:
            # A text beyond this is too long whatever its spaces, and is not worth the time.
            if max(map(len, record.sides)) > 4 * MAX_SIDE:
                fault = LONG_SIDE
            else:
                source, target = plain(record.sides[0]), plain(record.sides[1])
                fault = _fault(source, target) or (AGAIN if (source, target) in pairs else "")
        if fault:
            left_out.setdefault(fault, []).append(record)
        else:
            pairs[source, target] = None
    skipped = [
        Skipped(reason, len(found), tuple(Example(r.line, shortened(r.raw)) for r in found[:EXAMPLES]))
        for reason, found in left_out.items()
    ]
    return tuple(pairs), tuple(sorted(skipped, key=lambda some: -some.count))


def _fault(source: str, target: str) -> str:
    if not source or not target:
        return EMPTY_SIDE
    return LONG_SIDE if max(len(source), len(target)) > MAX_SIDE else ""


def _too_few(files: Sequence[tuple[str, bytes]], reading: Reading) -> str:
    where = " and ".join(named(name) for name, _ in files)
    reasons = "; ".join(f"{some.count:,} × {some.reason}" for some in reading.skipped)
    return (
        f"{where}, read as {reading.format}, has {reading.read} pairs that can be used; at least {MIN_PAIRS} "
        f"are needed{f' (left out: {reasons})' if reasons else ''}. Add more sentences. {EXPECTED}."
    )

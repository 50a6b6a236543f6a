"""From uploaded files to pairs: what was read, what was left out and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from transformer.tasks.pairs.layout import MAX_LINE, READABLE, Layout, Sides, aligned, layout_of
from transformer.tasks.pairs.text import EXPECTED, lines_of, named, plain, refused, shortened

MAX_BYTES = 20_000_000
"""Of all files together."""
MAX_SIDE = 1_000
"""Characters of one sentence."""
MIN_PAIRS = 20
EMPTY_LINE = "an empty line"
EMPTY_SIDE = "an empty side"
OTHER_FORM = "a different format than most lines"
LONG = f"a sentence longer than {MAX_SIDE:,} characters"
AGAIN = "a repeated pair"


@dataclass(frozen=True)
class Reading:
    """The pairs of the files. Another target for the same source is a pair like any other."""

    pairs: tuple[Sides, ...]
    """Sentences and their translations, in the order of the file, without invisible
    characters; spaces and Unicode are normalised."""
    format: str
    """The format of the files, as text on the page."""
    skipped: tuple[tuple[str, int], ...] = ()
    """Why lines gave no pair, and how many; the most frequent reason first."""

    @property
    def read(self) -> int:
        """Number of pairs."""
        return len(self.pairs)

    @property
    def n_skipped(self) -> int:
        """Number of lines that gave no pair."""
        return sum(count for _, count in self.skipped)


def read_pairs(files: Sequence[tuple[str, bytes]]) -> Reading:
    """Read one file with both sides, or two files with a side each, sources first.

    Args:
        files: name and content of each file. The name is shown in errors; the format is not inferred from it.

    Raises:
        InputError: too many files, or files that are too large, not text or not mostly pairs, or
            that have too few usable pairs.
    """
    if not 1 <= len(files) <= 2:
        raise refused(f"{len(files)} files are given; upload one with both languages, or two with one each.")
    size = sum(len(data) for _, data in files)
    if size > MAX_BYTES:
        raise refused(
            f"The upload has {size / 1e6:.1f} MB; the limit is {MAX_BYTES / 1e6:.0f} MB. Upload a part of it."
        )
    name, lines = files[0][0], lines_of(*files[0])
    if len(files) == 1:
        layout = layout_of(name, lines)
    else:
        layout, lines = aligned((name, files[1][0]), (lines, lines_of(*files[1])))
    return _read(name, layout, lines)


def reasons(skipped: Sequence[tuple[str, int]]) -> str:
    """Why lines gave no pair, in words."""
    return "; ".join(f"{count:,} × {reason}" for reason, count in skipped)


def _read(name: str, layout: Layout, lines: Sequence[str]) -> Reading:
    """The pairs that can be used, and the rest by reason."""
    pairs: dict[Sides, None] = {}
    count: Counter[str] = Counter()
    odd = 0
    for number, line in enumerate(lines, 1):
        found = _pair(layout, line)
        if isinstance(found, str) or found in pairs:
            count[found if isinstance(found, str) else AGAIN] += 1
            if found == OTHER_FORM:
                odd = odd or number
        else:
            pairs[found] = None
    fitting = 1 - count[OTHER_FORM] / max(1, len(lines) - count[EMPTY_LINE])
    if fitting < READABLE:
        raise refused(
            f"Only {fitting:.0%} of the lines of {named(name)} are {layout.format}; line {odd:,} is "
            f"“{shortened(lines[odd - 1])}”. {EXPECTED}."
        )
    skipped = tuple(count.most_common())
    if len(pairs) < MIN_PAIRS:
        raise refused(
            f"{named(name)}, read as {layout.format}, has {len(pairs)} usable pairs; at least {MIN_PAIRS} "
            f"are needed{f' (left out: {reasons(skipped)})' if skipped else ''}. Add more sentences."
        )
    return Reading(tuple(pairs), layout.format, skipped)


def _pair(layout: Layout, line: str) -> Sides | str:
    """The pair on a line, or why there is none."""
    if not line.strip():
        return EMPTY_LINE
    if len(line) > MAX_LINE:
        return LONG
    sides = layout.sides(line)
    if sides is None:
        return OTHER_FORM
    source, target = map(plain, sides)
    if not source or not target:
        return EMPTY_SIDE
    return LONG if max(len(source), len(target)) > MAX_SIDE else (source, target)

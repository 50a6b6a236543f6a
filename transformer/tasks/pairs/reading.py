"""From uploaded files to pairs: the layout, inferred from the lines; what was read, and what was left out."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from transformer.tasks.pairs.text import EXPECTED, lines_of, named, plain, refused, shortened

Sides = tuple[str, str]

MAX_LINE = 20_000
"""Maximum number of characters of a line; longer lines are skipped."""
SAMPLE = 1_000
"""Number of lines from which the layout is inferred."""
READABLE = 0.75
"""Minimum share of the lines that must have the layout of the file."""
SEPARATORS = {"\t": "TSV", ",": "CSV", ";": "CSV with semicolons"}
MAX_BYTES = 20_000_000
"""Maximum size of all files together."""
MAX_SIDE = 1_000
"""Maximum number of characters of one sentence."""
MIN_PAIRS = 20
EMPTY_LINE = "an empty line"
EMPTY_SIDE = "an empty side"
OTHER_FORM = "a different format than most lines"
LONG = f"a sentence longer than {MAX_SIDE:,} characters"
AGAIN = "a repeated pair"


@dataclass(frozen=True)
class Layout:
    """The layout of the lines of a file."""

    format: str
    """Name of the layout, as text on the page."""
    sides: Callable[[str], Sides | None]
    """A line to its sentence and translation; None where the line has another layout."""


@dataclass(frozen=True)
class Reading:
    """The pairs of the files. A second target for the same source is a pair of its own."""

    pairs: tuple[Sides, ...]
    """Sentences and their translations, in the order of the file, without invisible
    characters; spaces and Unicode are normalised."""
    format: str
    """The format of the files, as text on the page."""
    skipped: tuple[tuple[str, int], ...] = ()
    """(reason, number of lines) of lines that gave no pair; the most frequent reason first."""

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


def layout_of(name: str, lines: Sequence[str]) -> Layout:
    """The layout of a file that holds both sides. A header line is read as a pair.

    Raises:
        InputError: most lines have one column, or it is unclear which two columns are the sides.
    """
    sample = _sample(lines)
    separator, width, count = _table(sample)
    if not count or 2 * count < len(sample):
        raise refused(
            f"{named(name)} has only one column, such as “{shortened((sample or lines)[0])}”. {EXPECTED}."
        )
    source, target = 0, 1
    if width == 4 and _numbered([cells for line in sample if len(cells := _cells(line, separator)) == 4]):
        source, target = 1, 3
    elif width > 3:
        raise refused(
            f"{named(name)} has {width} columns, such as “{shortened(sample[0])}”; the limit is 3, or 4 with "
            "numbers in the first and the third. Keep the two with the sentences and their translations."
        )

    def sides(line: str) -> Sides | None:
        cells = _cells(line, separator)
        return (cells[source], cells[target]) if len(cells) == width else None

    form = f"{SEPARATORS[separator]}, {width} columns"
    return Layout(form if width == 2 else f"{form}, of which {source + 1} and {target + 1}", sides)


def aligned(names: tuple[str, str], files: tuple[Sequence[str], Sequence[str]]) -> tuple[Layout, list[str]]:
    """The layout of two files with a side each, and their lines side by side.

    Raises:
        InputError: the files differ in their number of lines, or one of them holds both sides.
    """
    sources, targets = files
    for name, lines in zip(names, files, strict=True):
        sample = _sample(lines)
        if 2 * sum("\t" in line for line in sample) > len(sample):
            raise refused(
                f"{named(name)} has several columns, but each of two files must hold one language, one "
                "sentence per line. Upload a file with both languages by itself."
            )
    if len(sources) != len(targets):
        raise refused(
            f"{named(names[0])} has {len(sources):,} lines and {named(names[1])} has {len(targets):,}; "
            "upload two files whose lines correspond, each sentence on the same line as its translation."
        )

    def sides(line: str) -> Sides:
        source, _, target = line.partition("\t")
        return source, target

    joined = zip((source.replace("\t", " ") for source in sources), targets, strict=True)
    return Layout("two aligned files", sides), list(map("\t".join, joined))


def _sample(lines: Sequence[str]) -> list[str]:
    return list(islice((line for line in lines if line.strip() and len(line) <= MAX_LINE), SAMPLE))


def _table(sample: Sequence[str]) -> tuple[str, int, int]:
    """The separator that gives most lines the same number of columns, this number, and how many lines."""
    found = "", 1, 0
    for separator in SEPARATORS:
        widths = Counter(width for line in sample if (width := len(_cells(line, separator))) > 1)
        for width, count in widths.most_common(1):
            if count > found[2]:
                found = separator, width, count
    return found


def _numbered(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first and the third column are numbers, as Tatoeba exports them."""
    return all(
        sum(row[place].strip().isdecimal() for row in rows) >= READABLE * len(rows) for place in (0, 2)
    )


def _cells(line: str, separator: str) -> list[str]:
    """The cells of a line. In TSV quotation marks are plain characters.

    Each line of CSV is read by itself: otherwise an unclosed quotation mark would include the lines after it.
    """
    if separator == "\t" or '"' not in line:
        return line.split(separator)
    return next(csv.reader([line], delimiter=separator, skipinitialspace=True))

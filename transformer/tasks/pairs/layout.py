"""The layout of a file of pairs, inferred from its lines and not from the file's name."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from transformer.tasks.pairs.text import EXPECTED, named, refused, shortened

Sides = tuple[str, str]

MAX_LINE = 20_000
"""Most characters of a line in the sample; longer lines are left out."""
SAMPLE = 1_000
"""Lines from which the layout is inferred."""
READABLE = 0.75
"""Share of the lines that must have the form of the file."""
SEPARATORS = {"\t": "TSV", ",": "CSV", ";": "CSV with semicolons"}


@dataclass(frozen=True)
class Layout:
    """The layout of the lines of a file."""

    format: str
    """As text on the page."""
    sides: Callable[[str], Sides | None]
    """The sentence and its translation on a line; None where it has another form."""


def layout_of(name: str, lines: Sequence[str]) -> Layout:
    """The layout of a file that holds both sides. A line of headings is a pair like any other.

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
        InputError: they do not have as many lines, or one of them holds both sides.
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

    Each line of CSV stands by itself: an unclosed quotation mark would else swallow the lines after it.
    """
    if separator == "\t" or '"' not in line:
        return line.split(separator)
    return next(csv.reader([line], delimiter=separator, skipinitialspace=True))

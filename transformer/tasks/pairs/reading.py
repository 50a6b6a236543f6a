"""From uploaded files to pairs: the layout, inferred from the lines; what was read, and what was left out."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from transformer.errors import InputError
from transformer.tasks.pairs.headings import is_heading
from transformer.tasks.pairs.text import EXPECTED, lines_of, named, plain, refused, shortened

Sides = tuple[str, str]

MAX_LINE = 20_000
"""Maximum number of characters of a line; longer lines are skipped."""
_SEPARATOR_LINE = re.compile(r'"?sep=([,;\t])"?\s*', re.IGNORECASE)
"""Excel's first line, which names the separator."""
_SPACE_BEHIND_CELL = re.compile(r'"[ \t]+(?=[,;\n]|$)')
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
    """The layout of a table."""

    format: str
    """Name of the layout, as text on the page."""
    separator: str
    width: int
    """Number of columns."""
    columns: tuple[int, int] = (0, 1)
    """The columns with the sentence and with its translation."""

    def sides(self, cells: Sequence[str]) -> Sides | None:
        """The sentence and its translation in a row; None where the row has another layout."""
        source, target = self.columns
        return (cells[source], cells[target]) if len(cells) == self.width else None


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
    heading: Sides | None = None
    """The first line, if it names the columns and so is no pair."""
    encoding: str = "UTF-8"
    """The encoding of the files, by the name that people know."""

    @property
    def read(self) -> int:
        """Number of pairs."""
        return len(self.pairs)

    @property
    def n_skipped(self) -> int:
        """Number of lines that gave no pair."""
        return sum(count for _, count in self.skipped)

    def with_heading(self, heading: bool) -> Reading:
        """The same lines, the first of which is a heading or a pair."""
        if heading == (self.heading is not None):
            return self
        if self.heading is None:
            return replace(self, heading=self.pairs[0], pairs=self.pairs[1:])
        return replace(self, heading=None, pairs=tuple(dict.fromkeys((self.heading, *self.pairs))))


def read_pairs(files: Sequence[tuple[str, bytes]], *, heading: bool | None = None) -> Reading:
    """Read one file with both sides, or two files with a side each, sources first.

    Args:
        files: name and content of each file. The name is shown in errors; the format is not inferred from it.
        heading: whether the first line names the columns; None to infer it from its words.

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
    name, (lines, encoding) = files[0][0], lines_of(*files[0])
    if len(files) == 1:
        layout = layout_of(name, lines)
        found = _rows(name, lines, layout)
    else:
        others, of_other = lines_of(*files[1])
        encoding = encoding if encoding == of_other else f"{encoding} and {of_other}"
        layout, found = aligned((name, files[1][0]), (lines, others))
    reading = replace(_read(name, layout, found), encoding=encoding)
    infers = heading is None and is_heading(*reading.pairs[0])
    return reading.with_heading(True) if heading or infers else reading


def reasons(skipped: Sequence[tuple[str, int]]) -> str:
    """Why lines gave no pair, in words."""
    return "; ".join(f"{count:,} × {reason}" for reason, count in skipped)


def _read(name: str, layout: Layout, rows: Iterator[_Row]) -> Reading:
    """The pairs that can be used, and the rest by reason."""
    pairs: dict[Sides, None] = {}
    count: Counter[str] = Counter()
    n_rows, odd = 0, None
    for row in rows:
        n_rows += 1
        found = _pair(layout, row)
        if isinstance(found, str) or found in pairs:
            count[found if isinstance(found, str) else AGAIN] += 1
            if found == OTHER_FORM:
                odd = odd or row
        else:
            pairs[found] = None
    fitting = 1 - count[OTHER_FORM] / max(1, n_rows - count[EMPTY_LINE])
    if odd is not None and fitting < READABLE:
        raise refused(
            f"Only {fitting:.0%} of the lines of {named(name)} are {layout.format}; line {odd.number:,} is "
            f"“{shortened(odd.text)}”. {EXPECTED}."
        )
    skipped = tuple(count.most_common())
    if len(pairs) < MIN_PAIRS:
        raise refused(
            f"{named(name)}, read as {layout.format}, has {len(pairs)} usable pairs; at least {MIN_PAIRS} "
            f"are needed{f' (left out: {reasons(skipped)})' if skipped else ''}. Add more sentences."
        )
    return Reading(tuple(pairs), layout.format, skipped)


def _pair(layout: Layout, row: _Row) -> Sides | str:
    """The pair in a row, or why there is none."""
    if not row.text.strip():
        return EMPTY_LINE
    if len(row.text) > MAX_LINE:
        return LONG
    sides = layout.sides(row.cells)
    if sides is None:
        return OTHER_FORM
    source, target = map(plain, sides)
    if not source or not target:
        return EMPTY_SIDE
    return LONG if max(len(source), len(target)) > MAX_SIDE else (source, target)


@dataclass(frozen=True)
class _Row:
    """A row of a table: the number of its first line, its text, and its cells."""

    number: int
    text: str
    cells: Sequence[str]


def _rows(name: str, lines: Sequence[str], layout: Layout) -> Iterator[_Row]:
    """The rows of a table. A quoted cell of CSV may hold line breaks; in TSV quotation marks are characters.

    Raises:
        InputError: a quotation mark of CSV is not closed.
    """
    first = 1 if _SEPARATOR_LINE.fullmatch(lines[0]) else 0
    if layout.separator == "\t":
        for number, line in enumerate(lines[first:], first + 1):
            yield _Row(number, line, line.split("\t"))
        return
    reader = csv.reader(
        (f"{line}\n" for line in lines[first:]), delimiter=layout.separator, skipinitialspace=True
    )
    taken = 0  # lines of the rows before
    while True:
        number = first + taken + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:  # such as a cell of 131,072 characters
            raise _unclosed(name, number) from error
        if cells is None:
            return
        text = "\n".join(lines[first + taken : first + reader.line_num])
        if (reader.line_num - taken > 1 or first + reader.line_num == len(lines)) and not _closed(
            text, layout
        ):
            raise _unclosed(name, number)
        taken = reader.line_num
        yield _Row(number, text, cells)


def _closed(text: str, layout: Layout) -> bool:
    """Whether every quotation mark that begins a cell of this row is closed at the end of the cell."""
    lines = _SPACE_BEHIND_CELL.sub('"', text).splitlines(keepends=True)
    try:
        list(csv.reader(lines, delimiter=layout.separator, skipinitialspace=True, strict=True))
    except csv.Error:
        return False
    return True


def _unclosed(name: str, number: int) -> InputError:
    return refused(
        f"The quotation mark in line {number:,} of {named(name)} is not closed. Close it at the end of its "
        "cell, write a quotation mark inside a cell twice, or save the table as TSV."
    )


def layout_of(name: str, lines: Sequence[str]) -> Layout:
    """The layout of a file that holds both sides.

    Raises:
        InputError: most lines have one column, or it is unclear which two columns are the sides.
    """
    known = _SEPARATOR_LINE.fullmatch(lines[0])
    sample = _sample(lines[1:] if known else lines)
    separator, width, count = _table(sample, known[1] if known else "".join(SEPARATORS))
    if not count or 2 * count < len(sample):
        raise refused(
            f"{named(name)} has only one column, such as “{shortened((sample or lines)[0])}”. {EXPECTED}."
        )
    source, target = 0, 1
    if width == 4 and _counts(row[:3:2] for line in sample if len(row := _cells(line, separator)) == 4):
        source, target = 1, 3
    elif width == 3 and _counts(row[:1] for line in sample if len(row := _cells(line, separator)) == 3):
        source, target = 1, 2
    elif width > 3:
        raise refused(
            f"{named(name)} has {width} columns, such as “{shortened(sample[0])}”; the limit is 3, or 4 with "
            "numbers in the first and the third. Keep the two with the sentences and their translations."
        )
    form = f"{SEPARATORS[separator]}, {width} columns"
    form = form if width == 2 else f"{form}, of which {source + 1} and {target + 1}"
    return Layout(form, separator, width, (source, target))


def aligned(
    names: tuple[str, str], files: tuple[Sequence[str], Sequence[str]]
) -> tuple[Layout, Iterator[_Row]]:
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

    both = enumerate(zip(sources, targets, strict=True), 1)
    rows = (_Row(number, "".join(sides), sides) for number, sides in both)
    return Layout("two aligned files", "\n", 2), rows


def _sample(lines: Sequence[str]) -> list[str]:
    return list(islice((line for line in lines if line.strip() and len(line) <= MAX_LINE), SAMPLE))


def _table(sample: Sequence[str], separators: str) -> tuple[str, int, int]:
    """The separator that gives most lines the same number of columns, this number, and how many lines."""
    found = "", 1, 0
    for separator in separators:
        widths = Counter(width for line in sample if (width := len(_cells(line, separator))) > 1)
        for width, count in widths.most_common(1):
            if count > found[2]:
                found = separator, width, count
    return found


def _counts(rows: Iterable[Sequence[str]]) -> bool:
    """Whether most rows hold numbers alone, as the first and the third column of Tatoeba, or an index."""
    found = [all(cell.strip().isdecimal() for cell in row) for row in rows]
    return sum(found) >= READABLE * len(found)


def _cells(line: str, separator: str) -> list[str]:
    """The cells of a line that is read by itself."""
    if separator == "\t" or '"' not in line:
        return line.split(separator)
    return next(csv.reader([line], delimiter=separator, skipinitialspace=True))

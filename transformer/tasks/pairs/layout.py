"""The layout of uploaded files, inferred mainly from their first rows: separator, heading, columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from transformer.tasks.pairs.heading import named_columns
from transformer.tasks.pairs.rows import MAX_LINE, Row, encloses, rows_of
from transformer.tasks.pairs.text import EXPECTED, named, refused, shortened

SAMPLE = 1_000
"""Maximum number of rows from which the layout is inferred."""
READABLE = 0.75
"""Minimum share of the rows that must have the layout of the file; also of numbers in a numbered column."""
SEPARATORS = {"\t": "TSV", ",": "CSV", ";": "CSV with semicolons"}
_SEPARATOR = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
"""A first line for Excel, which names the separator."""
_ANKI = re.compile(r"#[a-z ]+:")
"""The beginning of the lines above the notes that Anki exports."""


@dataclass(frozen=True)
class Layout:
    """The rows of the files, and what their columns are."""

    format: str
    """Name of the layout, as text on the page."""
    rows: Iterable[Row]
    """All rows below the settings, with the heading; from `layout_of`, they can be read only once."""
    width: int
    """Number of columns."""
    columns: tuple[int, int] = (0, 1)
    """Indices of the two columns with a sentence and its translation."""
    heading: Row | None = None
    n_settings: int = 0
    """Number of lines at the beginning with settings of the program that saved the table."""


def layout_of(name: str, lines: Sequence[str], heading: bool | None) -> Layout:
    """The layout of a file that holds both sides.

    Args:
        heading: whether the first row is a heading; None: if it looks like one.

    Raises:
        InputError: no separator splits half of the lines into the same number of columns, two or more; or it
            is unclear which two columns are the sides.
    """
    start, separators = _settings(lines)
    table = partial(rows_of, lines, start=start)
    tsv_encloses = "\t" in separators and encloses("\n".join(lines[start:]))
    best = 0.0
    for separator in separators:
        sample = _sample(table(separator, enclosing=separator != "\t" or tsv_encloses))
        widths = Counter(len(row.cells) for row in sample if len(row.cells) > 1)
        for width, count in widths.most_common(1):
            if count > best * len(sample):
                best, best_layout = count / len(sample), (separator, width, sample)
    if best < 0.5:
        first = next((line for line in lines[start:] if line.strip()), "")
        raise refused(f"{named(name)} has only one column, such as “{shortened(first)}”. {EXPECTED}.")
    separator, width, sample = best_layout
    columns, is_headed = _columns(name, sample, width, heading)
    form = f"{SEPARATORS[separator]}, {width} columns"
    return Layout(
        form if width == 2 else f"{form}, of which {columns[0] + 1} and {columns[1] + 1}",
        table(separator, enclosing=separator != "\t" or tsv_encloses),
        width,
        columns,
        sample[0] if is_headed else None,
        start,
    )


def aligned(
    names: tuple[str, str], files: tuple[Sequence[str], Sequence[str]], heading: bool | None
) -> Layout:
    """The layout of two files with a side each, as a table with two columns.

    Args:
        heading: whether the first lines are a heading; None: if they look like one.

    Raises:
        InputError: the files differ in their number of lines, or most lines of one of them contain a tab.
    """
    sources, targets = files
    for name, lines in zip(names, files, strict=True):
        some = list(islice((line for line in lines if line.strip() and len(line) <= MAX_LINE), SAMPLE))
        if 2 * sum("\t" in line for line in some) > len(some):
            raise refused(
                f"{named(name)} has several columns, but each of two files must hold one language, one "
                "sentence per line. Upload a file with both languages by itself."
            )
    if len(sources) != len(targets):
        raise refused(
            f"{named(names[0])} has {len(sources):,} lines and {named(names[1])} has {len(targets):,}; "
            "upload two files whose lines correspond, each sentence on the same line as its translation."
        )
    rows = [Row(i, "\t".join(row), row) for i, row in enumerate(zip(sources, targets, strict=True), 1)]
    first = next((row for row in rows if row.text.strip()), None)
    if first and heading is None:
        heading = named_columns(first.cells) is not None
    return Layout("two aligned files", rows, 2, heading=first if heading else None)


def _settings(lines: Sequence[str]) -> tuple[int, Iterable[str]]:
    """The number of lines with settings at the beginning, and the separators that the table may have."""
    if (match := _SEPARATOR.fullmatch(lines[0])) and match[1] in SEPARATORS:
        return 1, match[1]
    return next((i for i, line in enumerate(lines) if not _ANKI.match(line)), len(lines)), SEPARATORS


def _sample(rows: Iterable[Row]) -> list[Row]:
    return list(islice((row for row in rows if row.text.strip() and len(row.text) <= MAX_LINE), SAMPLE))


def _columns(
    name: str, sample: Sequence[Row], width: int, heading: bool | None
) -> tuple[tuple[int, int], bool]:
    """The columns of the two sides, and whether the first row is a heading. Raises InputError if unclear."""
    first, *rest = (row.cells for row in sample)
    if heading is not False and len(first) == width and (by_name := named_columns(first)):
        return by_name, True
    body = [cells for cells in rest if len(cells) == width]
    if width == 2:
        return (0, 1), heading is True
    if width == 3:
        numbers = [cells[0] for cells in body]
        if not _count_up(numbers):
            return (0, 1), heading is True
        return (1, 2), heading is True or (heading is None and not _count_up([first[0], *numbers]))
    if width == 4 and _numbered([first, *body] if len(first) == 4 else body):
        return (1, 3), heading is True
    raise refused(
        f"{named(name)} has {width} columns, such as “{shortened(sample[0].text)}”; the limit is 3, or 4 "
        "with numbers in the first and the third. Keep the two with the sentences and their translations, or "
        "name them in a heading, such as “source” and “target”."
    )


def _count_up(cells: Sequence[str]) -> bool:
    """Whether these cells are consecutive numbers, as pandas writes an index."""
    numbers = [int(cell) if cell.isdecimal() and len(cell) < 10 else -1 for cell in cells]
    return len(numbers) > 1 and all(0 <= a == b - 1 for a, b in zip(numbers, numbers[1:], strict=False))


def _numbered(rows: Sequence[Sequence[str]]) -> bool:
    """Whether most cells of the first and of the third column are numbers, as Tatoeba exports them."""
    return all(
        sum(row[place].strip().isdecimal() for row in rows) >= READABLE * len(rows) for place in (0, 2)
    )

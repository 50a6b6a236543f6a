"""Tables as text: TSV and CSV, told apart by what separates their columns."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from transformer.tasks.pairs.limits import READABLE, named, refused
from transformer.tasks.pairs.names import sides_of
from transformer.tasks.pairs.record import Layout, Record, unread
from transformer.tasks.pairs.sides import shortened

KINDS = {"\t": "TSV", ",": "CSV", ";": "semicolon CSV"}
"""The separators that are known."""
MAX_COLUMNS = 32
SPAN = 10
"""Most lines of one quoted CSV record: beyond, the quotation mark is one that nobody closed."""
FORMS = "2 columns, 3 (the third is left out), or 4 (the first and the third numbers, as from Tatoeba)"


class Row(NamedTuple):
    """A line of a table, or several where a quoted cell goes over them."""

    line: int
    raw: str
    cells: list[str]
    """Empty where the line is not looked into."""
    fault: str = ""


def rows_of(lines: Sequence[str], separator: str) -> list[Row]:
    """Every row. In TSV quotation marks are plain characters."""
    quoting = separator != "\t"
    return list(_rows(lines, separator, quoting))


def _rows(lines: Sequence[str], separator: str, quoting: bool) -> Iterator[Row]:
    at = 0
    while at < len(lines):
        line, taken = lines[at], 1
        fault = unread(line)
        cells = [] if fault else line.split(separator, MAX_COLUMNS)
        if quoting and not fault and '"' in line:
            cells, taken = _quoted(lines, at, separator) or (cells, 1)
        yield Row(at + 1, line, cells, fault)
        at += taken


def _quoted(lines: Sequence[str], at: int, separator: str) -> tuple[list[str], int] | None:
    """The record that begins at a line, and of how many lines it is; None where its marks are none of CSV.

    Without the limit, one mark that nobody closed would swallow the rest of the file, and a search for its
    end at every line would make reading quadratic.
    """
    # A space behind the last mark would be a fault, and nobody sees it.
    ahead = (lines[i].rstrip() + "\n" for i in range(at, min(at + SPAN, len(lines))))
    reader = csv.reader(ahead, delimiter=separator, skipinitialspace=True, strict=True)
    try:
        return next(reader), reader.line_num
    except csv.Error:
        return None


class _Columns(NamedTuple):
    source: int
    target: int
    header: bool
    note: str


def usual_width(rows: Sequence[Row]) -> tuple[int, float]:
    """How many columns most rows have, and which share of the rows that is."""
    widths = Counter(len(row.cells) for row in rows if not row.fault)
    if not widths:
        return 0, 0.0
    width, count = widths.most_common(1)[0]
    return width, count / widths.total()


def layout_of(name: str, rows: Sequence[Row], separator: str) -> Layout:
    """The table with its two columns chosen.

    Raises:
        InputError: the number of columns is not steady, or it is not clear which two hold the sentences.
    """
    width, share = usual_width(rows)
    kind = KINDS[separator]
    fitting = [row for row in rows if len(row.cells) == width and not row.fault]
    if width < 2 or share < READABLE:
        other = next((row for row in rows if not row.fault and len(row.cells) != width), rows[0])
        raise refused(
            f"{named(name)} looks like {kind}, but its lines have no steady number of columns: only "
            f"{share:.0%} have {width}, and line {other.line:,} has {len(other.cells)} "
            f"(“{shortened(other.raw)}”). Expected are {FORMS}."
        )
    columns = _chosen(fitting, width)
    if columns is None:
        raise refused(
            f"{named(name)} is {kind} with {width} columns, and nothing tells which two hold the sentences. "
            f"Expected are {FORMS}; or name two columns “source” and “target” in the first line."
        )
    wrong = f"another number of columns than {width}"
    records = []
    for row in rows:
        if row.fault or len(row.cells) != width:
            records.append(Record(row.line, row.raw, None, row.fault or wrong))
        elif not (columns.header and row is fitting[0]):
            sides = row.cells[columns.source], row.cells[columns.target]
            records.append(Record(row.line, row.raw, sides))
    return Layout(_described(kind, width, columns), records)


def _described(kind: str, width: int, columns: _Columns) -> str:
    if kind == "TSV":
        return f"TSV, {width} columns{columns.note}{' with header' if columns.header else ''}"
    header = f"{kind} {'with' if columns.header else 'without'} header"
    return header if width == 2 else f"{header}, {width} columns{columns.note}"


def _chosen(fitting: Sequence[Row], width: int) -> _Columns | None:
    """Which two columns hold the sentences, by the names in the first row or by what stands in them."""
    by_name = sides_of(fitting[0].cells)
    # The names stand in the first row alone: "Text 1", "Phrase 1" may be followed by "Text 2", "Phrase 2".
    if by_name is not None and not any(map(sides_of, (row.cells for row in fitting[1:2]))):
        note = " (Tatoeba)" if width == 4 and by_name == (1, 3) else ""
        return _Columns(*by_name, True, note)
    numbered = [place for place in range(min(width, 4)) if _numbers(fitting, place)]
    if width == 4 and numbered == [0, 2]:
        return _Columns(1, 3, False, " (Tatoeba)")
    if width == 3 and numbered == [0]:
        return _Columns(1, 2, False, " (the first holds numbers)")
    if width == 3:
        credited = sum("attribution" in row.cells[2].lower() for row in fitting)
        note = " (ManyThings)" if 2 * credited > len(fitting) else " (the third is left out)"
        return _Columns(0, 1, False, note)
    return _Columns(0, 1, False, "") if width == 2 else None


def _numbers(rows: Sequence[Row], place: int) -> bool:
    """Whether a column holds nothing but numbers, in all rows but the odd one."""
    return sum(row.cells[place].strip().isdecimal() for row in rows) >= READABLE * len(rows)

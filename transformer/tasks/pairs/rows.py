"""The rows of a table in text: their cells, and where quotation marks enclose a cell."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

MAX_LINE = 20_000
"""Maximum number of characters of a line; longer lines are skipped."""
MAX_ROW = 1_000
"""Maximum number of lines of a row."""
_ENCLOSED = re.compile(r'(?<![^\t\n])"((?>[^"\t]|"")*)"(?![^\t\n])')
"""A cell of TSV that is enclosed in quotation marks, with those inside it doubled."""
_SPACES = {separator: re.compile(rf'(?<!")" +(?={separator}|$)') for separator in ",;\t"}
"""By separator: the closing mark of a cell with the spaces behind it, which `csv` does not skip."""


class Row(NamedTuple):
    """A row of a table."""

    number: int
    """Number of its first line, counted from 1."""
    text: str
    """Its first line."""
    cells: Sequence[str]
    n_lines: int = 1
    unclosed: bool = False
    """Whether a quotation mark in this line is not closed, and no valid row of several lines begins here; the
    row is then this line alone."""


def rows_of(lines: Sequence[str], separator: str, *, enclosing: bool, start: int = 0) -> Iterator[Row]:
    """The rows of a table, from a line on. After an unclosed quotation mark, each line is a row.

    Args:
        enclosing: whether quotation marks enclose cells; otherwise they are plain characters.
        start: index of the first line.
    """
    at, damaged = start, False
    while at < len(lines):
        line = lines[at]
        if len(line) > MAX_LINE:
            row = Row(at + 1, line, [line])
        elif not enclosing or '"' not in line:
            row = Row(at + 1, line, line.split(separator))
        else:
            row = _enclosed_row(lines, at, separator, 1 if damaged else MAX_ROW)
            damaged = damaged or row.unclosed
        yield row
        at += row.n_lines


def _enclosed_row(lines: Sequence[str], at: int, separator: str, most: int) -> Row:
    """The row that starts at a line. Its quotation marks must be valid if it has several lines."""
    line, read = lines[at], partial(csv.reader, delimiter=separator, skipinitialspace=True)

    def ended(index: int) -> str:
        text = lines[index]
        return (_SPACES[separator].sub('"', text) if '" ' in text else text) + "\n"

    reader = read(map(ended, range(at, min(at + most, len(lines)))), strict=True)
    try:
        return Row(at + 1, line, next(reader), reader.line_num)
    except csv.Error:  # a quotation mark is not closed, or text follows a closing one
        lenient = read([line + "\n", ""])
        return Row(at + 1, line, next(lenient), unclosed=lenient.line_num > 1)


def encloses(text: str) -> bool:
    """Whether quotation marks in TSV enclose cells, as a spreadsheet writes them.

    In most TSV they are plain characters. They enclose cells only if all of them do, and if that shows: by a
    doubled mark or a line break in a cell, or because every cell is enclosed.
    """
    cells = _ENCLOSED.findall(text) if '"' in text and "\t" in text else []
    rest = _ENCLOSED.sub("", text) if cells else '"'
    return '"' not in rest and (not rest.strip() or any('""' in cell or "\n" in cell for cell in cells))

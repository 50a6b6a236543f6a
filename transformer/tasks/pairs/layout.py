"""How the lines of a file give pairs, told by what stands in them and not by the file's name."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from transformer.errors import InputError
from transformer.tasks.pairs.text import EXPECTED, named, refused, shortened

Sides = tuple[str, str]

MAX_LINE = 20_000
"""Characters of a line; a longer one is not looked into."""
MAX_COLUMNS = 32
SAMPLE = 1_000
"""Lines by which the layout is told."""
READABLE = 0.75
"""Share of the lines that must have the form of the file."""
SEPARATORS = {"\t": "TSV", ",": "CSV", ";": "CSV with semicolons"}
SOURCES = {"source", "src", "sentence", "text", "original", "input", "question"}
TARGETS = {"target", "tgt", "trg", "translation", "translated", "output", "answer"}
LANGUAGES = set(
    "en eng english fr fra fre french it ita italian de deu ger german es spa spanish pt por portuguese "
    "nl nld dutch ru rus russian zh zho cmn chinese ja jpn japanese".split()
)


@dataclass(frozen=True)
class Layout:
    """What the lines of a file are."""

    format: str
    """For a person to read."""
    sides: Callable[[str], Sides | None]
    """The sentence and its translation on a line; None where it has another form."""
    header: bool = False
    """Whether the first line names the columns."""


def layout_of(name: str, lines: Sequence[str]) -> Layout:
    """The layout of a file that holds both sides.

    Raises:
        InputError: most lines have no second column, or it is not clear which two are meant.
    """
    sample = _sample(lines)
    if _is_json(sample):
        return _json_lines(name, sample)
    separator, rows = _table(sample)
    if not rows or 2 * len(rows) < len(sample):
        raise refused(
            f"{named(name)} has only one column, or more than {MAX_COLUMNS}, such as "
            f"“{shortened((sample or lines)[0])}”. {EXPECTED}."
        )
    width = len(rows[0])
    first = _cells(sample[0], separator)
    by_name = _by_name(first) if len(first) == width else None
    columns = by_name or _by_content(rows)
    if columns is None:
        raise _unclear(name, sample[0])
    source, target = columns

    def sides(line: str) -> Sides | None:
        cells = _cells(line, separator)
        return (cells[source], cells[target]) if len(cells) == width else None

    form = f"{SEPARATORS[separator]}, {width} columns"
    if width > 2:
        form += f", of which {source + 1} and {target + 1}"
    return Layout(f"{form}, with header" if by_name else form, sides, by_name is not None)


def aligned(names: tuple[str, str], files: tuple[Sequence[str], Sequence[str]]) -> tuple[Layout, list[str]]:
    """The layout of two files with a side each, and their lines side by side.

    Raises:
        InputError: they do not have as many lines, or one of them holds both sides.
    """
    sources, targets = files
    for name, lines in zip(names, files, strict=True):
        sample = _sample(lines)
        if _is_json(sample) or 2 * sum("\t" in line for line in sample) > len(sample):
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


def _table(sample: Sequence[str]) -> tuple[str, list[list[str]]]:
    """The separator that gives most lines the same number of columns, and the cells of these lines."""
    found: tuple[str, list[list[str]]] = "", []
    for separator in SEPARATORS:
        rows = [cells for line in sample if 1 < len(cells := _cells(line, separator)) <= MAX_COLUMNS]
        usual = Counter(map(len, rows)).most_common(1)
        fitting = [cells for cells in rows if len(cells) == usual[0][0]]
        if len(fitting) > len(found[1]):
            found = separator, fitting
    return found


def _cells(line: str, separator: str) -> list[str]:
    """The cells of a line. In TSV quotation marks are plain characters.

    Each line of CSV stands by itself: a mark that nobody closes would else swallow the lines after it.
    """
    if separator == "\t" or '"' not in line:
        return line.split(separator)
    return next(csv.reader([line], delimiter=separator, skipinitialspace=True))


def _by_name(names: Sequence[str]) -> tuple[int, int] | None:
    """The places of the two names that tell the sides, source first."""
    known: dict[frozenset[str], int] = {}
    for place, name in enumerate(names):
        words = frozenset(re.split(r"[\s_.-]+", name.strip().casefold()))
        if words <= SOURCES | TARGETS | LANGUAGES:
            known[words] = place
    if len(known) != 2:
        return None
    (first, one), (second, other) = known.items()
    return (other, one) if first & TARGETS and not second & TARGETS else (one, other)


def _by_content(rows: Sequence[Sequence[str]]) -> tuple[int, int] | None:
    """The first two columns of words, where there are two or three: the third names the author."""
    columns = list(zip(*rows, strict=True))
    words = [
        place
        for place, cells in enumerate(columns)
        if sum(cell.strip().isdecimal() for cell in cells) < READABLE * len(cells)
    ]
    if len(columns) == 2:  # numbers are what is learned
        words = [0, 1]
    return (words[0], words[1]) if len(words) in (2, 3) else None


def _is_json(sample: Sequence[str]) -> bool:
    return 2 * sum(_texts(line) is not None for line in sample) > len(sample)


def _json_lines(name: str, sample: Sequence[str]) -> Layout:
    choices = Counter(chosen for line in sample if (chosen := _keys(_texts(line) or {})) is not None)
    if not choices:
        raise _unclear(name, sample[0])
    (source, target), _ = choices.most_common(1)[0]

    def sides(line: str) -> Sides | None:
        texts = _texts(line) or {}
        return (texts[source], texts[target]) if source in texts and target in texts else None

    return Layout(f"JSON lines with “{shortened(source)}” and “{shortened(target)}”", sides)


def _texts(line: str) -> dict[str, str] | None:
    """The texts of the object on a line, by name; those of {"translation": {...}} are inside."""
    if not line.lstrip().startswith("{"):
        return None
    try:
        found: dict[str, Any] = json.loads(line.strip().rstrip(","))
    except (ValueError, RecursionError):  # the second where brackets stand in brackets, a thousand deep
        return None
    inner = found.get("translation")
    texts = inner if isinstance(inner, dict) else found
    return {key: value for key, value in texts.items() if isinstance(value, str)}


def _keys(texts: dict[str, str]) -> tuple[str, str] | None:
    """The names of the two texts that are a sentence and its translation."""
    if len(texts) > MAX_COLUMNS:
        return None
    keys = list(texts)
    places = _by_name(keys) or ((0, 1) if len(keys) == 2 else None)
    return places and (keys[places[0]], keys[places[1]])


def _unclear(name: str, line: str) -> InputError:
    return refused(
        f"It is not clear which two columns of {named(name)} hold the sentences and their translations: "
        f"“{shortened(line)}”. Name them “source” and “target” in the first line, or remove the others. "
        f"{EXPECTED}."
    )

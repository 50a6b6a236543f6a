"""Which format a file has, told by what is in it and not by its name."""

from __future__ import annotations

from collections.abc import Sequence

from transformer.tasks.pairs import json_lines, tables
from transformer.tasks.pairs.limits import EXPECTED, MAX_LINE, READABLE, named, refused
from transformer.tasks.pairs.record import Layout, Record, unread
from transformer.tasks.pairs.sides import shortened

ALIGNED = "two aligned files"
UNKNOWN = {
    "|": "bars (“|”)",
    "=": "equals signs (“=”)",
    " - ": "dashes (“ - ”)",
    " – ": "dashes (“ – ”)",
    " — ": "dashes (“ — ”)",
    "->": "arrows (“->”)",
    "~": "tildes (“~”)",
    "^": "carets (“^”)",
    "#": "hashes (“#”)",
    "\\t": "“\\t” written out",
    "   ": "several spaces",
    ":": "colons (“:”)",
}
"""What else people put between columns."""


def layout_of_one(name: str, lines: Sequence[str]) -> Layout:
    """The records of a file that holds both sides.

    Raises:
        InputError: its format is none that is known.
    """
    if all(map(unread, lines)):
        raise refused(f"Every line of {named(name)} is longer than {MAX_LINE:,} characters. {EXPECTED}.")
    if json_lines.seems_json_lines(lines):
        return json_lines.layout_of(name, lines)
    if json_lines.seems_document(lines):
        raise refused(
            f"{named(name)} is a document in JSON, not lines of objects. Expected is {json_lines.WANTED}."
        )
    if _share("\t", lines) >= 0.5:
        return tables.layout_of(name, tables.rows_of(lines, "\t"), "\t")
    best, share, rows = "", 0.0, list[tables.Row]()
    for separator in (",", ";"):
        if _share(separator, lines) < 0.5:
            continue
        candidate = tables.rows_of(lines, separator)
        width, fitting = tables.usual_width(candidate)
        if width > 1 and fitting > share:
            best, share, rows = separator, fitting, candidate
    if share >= READABLE:
        return tables.layout_of(name, rows, best)
    raise _unknown(name, lines, best, rows)


def layout_of_two(names: tuple[str, str], sources: Sequence[str], targets: Sequence[str]) -> Layout:
    """The records of two files whose lines belong together.

    Raises:
        InputError: they do not have as many lines, are the same, or hold both sides each.
    """
    for name, lines in zip(names, (sources, targets), strict=True):
        if json_lines.seems_json_lines(lines) or _share("\t", lines) >= 0.5:
            raise refused(
                f"{named(name)} has columns. Of two files each must hold one language, a sentence a line; "
                "upload a file that holds both by itself."
            )
    if len(sources) != len(targets):
        raise refused(
            f"{named(names[0])} has {len(sources):,} lines and {named(names[1])} has {len(targets):,}; "
            "two files must have the same number, line by line a sentence and its translation."
        )
    if sources == targets:
        raise refused(
            f"{named(names[0])} and {named(names[1])} hold the same text; upload the sentences and their "
            "translations."
        )
    records = []
    for at, (source, target) in enumerate(zip(sources, targets, strict=True), 1):
        fault = unread(source + target)
        records.append(Record(at, source or target, None if fault else (source, target), fault))
    return Layout(ALIGNED, records)


def _share(sign: str, lines: Sequence[str]) -> float:
    """Share of the lines that have a sign in them, of those that are looked into."""
    looked_into = [line for line in lines if not unread(line)]
    return sum(sign in line for line in looked_into) / max(1, len(looked_into))


def _unknown(name: str, lines: Sequence[str], separator: str, rows: Sequence[tables.Row]) -> Exception:
    """The error of a file in which no columns are found: what is found instead."""
    if separator:
        width, share = tables.usual_width(rows)
        return refused(
            f"{named(name)} has commas or semicolons, but {share:.0%} of its lines have {width} columns. "
            "Put sentences that have the separator in them in quotation marks, or separate them by a tab. "
            f"{EXPECTED}."
        )
    if _share("<", lines) >= 0.5 and _share(">", lines) >= 0.5:
        return refused(f"{named(name)} is full of tags, as HTML and XML are. {EXPECTED}.")
    for sign, called in UNKNOWN.items():
        if _share(sign, lines) >= READABLE:
            return refused(f"The columns of {named(name)} seem to be separated by {called}. {EXPECTED}.")
    first = next((line for line in lines if not unread(line)), lines[0])
    return refused(
        f"{named(name)} has one column only, such as “{shortened(first)}”: its translations are missing. "
        f"{EXPECTED}."
    )

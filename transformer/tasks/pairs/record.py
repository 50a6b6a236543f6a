"""What each format gives: for every line or record its two sides, or what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from transformer.tasks.pairs.limits import MAX_LINE

EMPTY_LINE = "an empty line"
LONG_LINE = f"a line longer than {MAX_LINE:,} characters"


class Record(NamedTuple):
    """A line of a file, or several that belong together."""

    line: int
    """Its first line, counted from 1."""
    raw: str
    """What stands there, for an example."""
    sides: tuple[str, str] | None
    """The sentence and its translation as they stand in the file; None where there is a fault."""
    fault: str = ""


class Layout(NamedTuple):
    """A file once its format is known."""

    format: str
    """As a person reads it."""
    records: Sequence[Record]
    """In the order of the file, a header not among them."""


def unread(line: str) -> str:
    """What keeps a line from being looked into; empty where nothing does."""
    if len(line) > MAX_LINE:
        return LONG_LINE
    return "" if line and not line.isspace() else EMPTY_LINE

"""What an upload may hold, and the one way to refuse it."""

from __future__ import annotations

from transformer.errors import InputError
from transformer.tasks.pairs.sides import shortened

FIELD = "pairs_upload"
"""The setting that every refusal is about."""
MAX_BYTES = 20_000_000
"""Of all files together."""
MAX_LINES = 300_000
MAX_LINE = 20_000
"""Characters of a line; a longer one is not even looked into."""
MAX_SIDE = 1_000
"""Characters of one sentence."""
MIN_PAIRS = 20
READABLE = 0.75
"""Share of the lines that must have the form of the file; with less, the form is not the one it seems."""
EXPECTED = (
    "Expected is UTF-8 text with a sentence and its translation on each line, separated by a tab (or CSV, or "
    'JSON lines with "src" and "tgt", or two files with one sentence a line each)'
)


def refused(message: str) -> InputError:
    """The error of an upload that cannot be used."""
    return InputError(message, FIELD)


def named(name: str) -> str:
    """A file's name as an error shows it."""
    return f"“{shortened(name, 40) or 'the file'}”"

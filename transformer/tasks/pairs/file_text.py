"""The bytes of a file as lines of text, or why they are none."""

from __future__ import annotations

import codecs
import re

from transformer.tasks.pairs.limits import EXPECTED, MAX_LINES, named, refused

ENCODINGS = (
    (codecs.BOM_UTF8, "UTF-8"),
    (codecs.BOM_UTF32_LE, "UTF-32"),  # begins with the mark of UTF-16
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
"""Marks at the beginning of a file."""
BINARY = (
    (b"%PDF-", "a PDF document; copy its sentences into a table and save that as CSV"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"RIFF", "a sound or a picture"),
    (b"PK\x03\x04", "a zip archive or an Office document; unpack it, or save its table as CSV (UTF-8)"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"\x1f\x8b", "a gzip archive; unpack it"),
    (b"BZh", "a bzip2 archive; unpack it"),
    (b"\xfd7zXZ", "an xz archive; unpack it"),
    (b"7z\xbc\xaf", "a 7z archive; unpack it"),
    (b"Rar!", "a RAR archive; unpack it"),
    (b"\xd0\xcf\x11\xe0", "an old Office document; save its table as CSV (UTF-8)"),
    (b"SQLite format 3", "a database; export its table as CSV (UTF-8)"),
    (b"PAR1", "a Parquet file; export its table as CSV (UTF-8)"),
    (b"{\\rtf", "an RTF document; save it as plain text"),
)
"""How files begin that are no text."""
_MARKUP = (
    (r"<!doctype html|<html|<head|<body|<!--|<div|<table|<script", "a saved web page (HTML)"),
    (r"<\?xml|<tmx|<xliff|<svg|<rss|<!doctype|<tei", "XML"),
)
_SAVED_PAGE = re.compile(r"(?i)(from|date|subject|mime-version):")


def lines_of(name: str, data: bytes) -> list[str]:
    """The lines of a text file, without their ends.

    Lines end at CR LF, LF or, where there is no LF, at CR; U+0085 and U+2028 end none.

    Raises:
        InputError: it is no text, is empty, or has too many lines.
    """
    text = _text(name, data)
    _no_markup(name, text)
    # Before a line feed it is a space at the end of a line, of no account.
    text = text.replace("\r", " " if "\n" in text else "\n")
    text = text.removesuffix("\n")
    if text.count("\n") >= MAX_LINES:
        raise refused(
            f"{named(name)} has {text.count(chr(10)) + 1:,} lines; at most {MAX_LINES:,} can be read. "
            "Upload a part of it."
        )
    return text.split("\n")


def _text(name: str, data: bytes) -> str:
    for beginning, kind in BINARY:
        if data.startswith(beginning):
            raise refused(f"{named(name)} is {kind}. {EXPECTED}.")
    mark, encoding = next(
        ((mark, encoding) for mark, encoding in ENCODINGS if data.startswith(mark)), (b"", "UTF-8")
    )
    codec = encoding if encoding == "UTF-8" or not mark else encoding + ("-LE" if mark[0] == 0xFF else "-BE")
    body = data[len(mark) :]
    # NUL is valid UTF-8, and says more about what this is than a byte that is not.
    if encoding == "UTF-8" and b"\0" in body:
        raise refused(
            f"{named(name)} is no text: there is a byte 0 at position {data.index(0):,}. If it is text in "
            f"UTF-16, save it as UTF-8. {EXPECTED}."
        )
    try:
        text = body.decode(codec)
    except UnicodeDecodeError as error:
        at = len(mark) + error.start
        where = f"position {at:,} (line {body.count(10, 0, error.start) + 1:,})"
        raise refused(
            f"{named(name)} is not in {encoding}: the byte 0x{data[at]:02X} at {where} cannot be read. "
            "Save it as UTF-8 (in a spreadsheet “CSV UTF-8”, in an editor “Save with encoding”), then upload "
            "it again."
        ) from error
    if "\0" in text:
        raise refused(f"{named(name)} is no text: it has characters of code 0. {EXPECTED}.")
    if not text.strip():
        raise refused(f"{named(name)} is empty. {EXPECTED}.")
    return text


def _no_markup(name: str, text: str) -> None:
    beginning = text[:2_000].lstrip().lower()
    for pattern, kind in _MARKUP:
        if re.match(pattern, beginning):
            raise refused(
                f"{named(name)} is {kind}, not its sentences. Download the file itself. {EXPECTED}."
            )
    if _SAVED_PAGE.match(beginning) and "mime-version:" in beginning:
        raise refused(
            f"{named(name)} is a saved web page (MHTML) or a mail. Download the file itself. {EXPECTED}."
        )

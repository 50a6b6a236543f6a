"""Decoding uploaded bytes into lines, normalising text, and the error of a refused upload."""

from __future__ import annotations

import codecs
import re
import unicodedata

from transformer.errors import InputError

FIELD = "pairs_upload"
"""Field of the InputError of every refused upload."""
MAX_LINES = 300_000
EXPECTED = (
    "Expected: UTF-8 text with a sentence and its translation per line, separated by a tab (or CSV, or two "
    "files with one sentence per line each)"
)
_MARKUP = re.compile(r'\s*(<([!?]|(html|head|body|table|div|tmx)\b)|(\[\s*)?\{\s*")', re.IGNORECASE)
_LINE_END = re.compile(r"\r+\n")
_NOT_ASCII = re.compile(r"[^\0-\x7f]")
_ACCENTED = re.compile("[À-ÖØ-öø-ÿ]")
_ACCENTED_RUN = re.compile("[À-ÖØ-öø-ÿ]{3,}")
_CONTROLS = re.compile("[\0-\x08\x0e-\x1f\x7f]")
_NO_SIGNS = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u200b\ud800-\udfff\ufeff\ufffe\uffff]+")
"""Invisible characters: controls other than whitespace, soft hyphens, zero-width spaces, byte-order marks,
surrogates and two noncharacters."""


def lines_of(name: str, data: bytes) -> tuple[list[str], bool]:
    """The lines of a text file, without their ends, and whether it was read as Windows-1252.

    Lines end at CR LF, LF or, where there is no LF, at CR; U+0085 and U+2028 do not end a line.

    Raises:
        InputError: it is no text, is a web page, XML or JSON, is empty, or has too many lines.
    """
    text, western = _decoded(name, data)
    if "\0" in text:  # valid Unicode, but not part of any text
        raise _no_text(name, text.count("\n", 0, text.index("\0")))
    if not text.strip():
        raise refused(f"{named(name)} is empty. {EXPECTED}.")
    if _MARKUP.match(text):
        raise refused(
            f"{named(name)} is a saved web page (HTML), XML or JSON; save its table as text. {EXPECTED}."
        )
    text = _LINE_END.sub("\n", text)
    text = text.replace("\r", " " if "\n" in text else "\n").removesuffix("\n")
    n_lines = text.count("\n") + 1
    if n_lines > MAX_LINES:
        raise refused(
            f"{named(name)} has {n_lines:,} lines; the limit is {MAX_LINES:,}. Upload a part of it."
        )
    return text.split("\n"), western


def _decoded(name: str, data: bytes) -> tuple[str, bool]:
    """The text of a file, and whether it was read as Windows-1252."""
    utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return data.decode("utf-16" if utf16 else "utf-8-sig"), False
    except UnicodeDecodeError as error:
        text = None if utf16 else _western(data)
        if text is None:
            raise _no_text(name, data.count(b"\n", 0, error.start)) from error
        return text, True


def _western(data: bytes) -> str | None:
    """The text in Windows-1252, in which Excel saves CSV in Western Europe; None if it is something else.

    Any bytes are almost always valid Windows-1252, so three mistakes are recognised. If at least as many
    characters beyond ASCII are valid UTF-8 as are not, it is damaged UTF-8. If most accented letters follow
    each other, three and more at a time, it is another alphabet, such as Cyrillic in Windows-1251. If it has
    control characters, it is no text.
    """
    as_utf8 = data.decode(errors="replace")
    n_damaged = as_utf8.count("\ufffd")
    if len(_NOT_ASCII.findall(as_utf8)) >= 2 * n_damaged:
        return None
    try:
        text = data.decode("windows-1252")
    except UnicodeDecodeError:
        return None
    n_accented, n_in_runs = len(_ACCENTED.findall(text)), sum(map(len, _ACCENTED_RUN.findall(text)))
    return None if _CONTROLS.search(text) or 2 * n_in_runs > n_accented else text


def _no_text(name: str, n_lines_before: int) -> InputError:
    return refused(
        f"{named(name)} is not UTF-8 text (line {n_lines_before + 1:,}). Unpack archives, save tables as "
        f"“CSV UTF-8” and text as UTF-8. {EXPECTED}."
    )


def plain(text: str) -> str:
    """Remove invisible characters, compose (NFC), strip, use single spaces (also for U+00A0 and U+2028)."""
    if not text.isascii() or not text.isprintable():
        # Remove invisible characters first: without them, two characters may compose.
        text = unicodedata.normalize("NFC", _NO_SIGNS.sub("", text))
    return " ".join(text.split())


def shortened(text: str, longest: int = 60) -> str:
    """The beginning of a text, normalised by `plain`: at most `longest` characters, with … if it is cut."""
    beginning = plain(text[: 4 * longest])
    if len(beginning) <= longest and len(text) <= 4 * longest:
        return beginning
    return beginning[: longest - 1] + "…"


def named(name: str) -> str:
    """A file's name as an error shows it."""
    return f"“{shortened(name, 40) or 'the file'}”"


def refused(message: str) -> InputError:
    """The error of an upload that cannot be used."""
    return InputError(message, FIELD)

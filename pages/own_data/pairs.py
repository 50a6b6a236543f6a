"""Bringing one's own pairs: uploaded or pasted, read once, and held by the session alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from pages.own_data.caps import put_caps, suggested
from pages.shared.plain import plain
from transformer.errors import InputError
from transformer.tasks.pairs.limits import MAX_BYTES, MAX_LINES, MIN_PAIRS
from transformer.tasks.pairs.reading import Reading, read_pairs
from transformer.tasks.pairs.sides import shortened

PASTED = "what you pasted"
MOST_PASTED = 100_000
"""Characters: a box sends all of its text each time anything on the page changes."""
FORMATS = """The cat sleeps.⇥Le chat dort.
Where is the key?⇥Où est la clé ?

or: sentence,translation
or: {"src": "The cat sleeps.", "tgt": "Le chat dort."}
"""


@dataclass(frozen=True)
class Brought:
    """What was read last, and from where."""

    name: str
    reading: Reading


def most_megabytes() -> int:
    """Of an upload: what can be read, or what the server takes, where that is less."""
    return min(MAX_BYTES // 10**6, int(st.get_option("server.maxUploadSize")))


def bring_pairs() -> None:
    """Draw the uploader and the box to paste into."""
    most = most_megabytes()
    st.file_uploader(
        "A file with both languages, or two files with one each",
        key="pairs_upload",
        accept_multiple_files=True,
        max_upload_size=most,
        on_change=_asked,
        args=("pairs_upload",),
        help="TSV of 2 to 4 columns (ManyThings, Tatoeba), CSV, JSON lines, or two text files whose lines "
        f"belong together, sources first. UTF-8, up to {most} MB and {MAX_LINES:,} lines, at "
        f"least {MIN_PAIRS} pairs.",
    )
    st.text_area(
        "Or paste them here",
        key="pairs_paste",
        placeholder=FORMATS,
        height=142,
        on_change=_asked,
        args=("pairs_paste",),
        help="A sentence and its translation on each line, with a tab between them as tables copy it (⇥), or "
        f"a comma; or JSON lines. Up to {MOST_PASTED:,} characters; upload more as a file. Ctrl+Enter reads "
        "them.",
    )
    st.caption(
        "Your pairs stay on this server for as long as this page or a run of yours needs them, and up to an "
        "hour longer, so that a reload finds them. The file is handed to nobody; whoever has the link of "
        "a run sees the sentences that it shows, and the answers to those that they ask."
    )
    asked = st.session_state.pop("pairs_to_read", None)
    if asked is not None:  # here and not in the callback: a page can say that it reads
        with st.spinner("Reading your pairs…"):
            _take(_files() if asked == "pairs_upload" else _text())


def brought() -> Brought | None:
    """What was read last, if anything was."""
    return st.session_state.get("pairs_brought")


def refusal() -> str | None:
    """Why what was brought last could not be used."""
    return st.session_state.get("pairs_refused")


def _asked(key: str) -> None:
    st.session_state["pairs_to_read"] = key


def _files() -> list[tuple[str, bytes]]:
    return [(file.name, file.getvalue()) for file in st.session_state["pairs_upload"] or ()]


def _text() -> list[tuple[str, bytes]]:
    text = st.session_state["pairs_paste"] or ""
    return [(PASTED, text.encode("utf-8", "replace"))] if text.strip() else []


def _take(files: Sequence[tuple[str, bytes]]) -> None:
    """Read files; those that cannot be used leave everything as it was, and so does taking them away."""
    if not files:
        st.session_state.pop("pairs_refused", None)
        return
    try:
        if files[0][0] == PASTED and len(files[0][1].decode()) > MOST_PASTED:
            raise InputError(
                f"That is too much to paste; at most {MOST_PASTED:,} characters. Upload it as a file."
            )
        found = _read(files)
    except InputError as error:
        st.session_state["pairs_refused"] = str(error)
        return
    st.session_state["pairs_brought"] = found
    st.session_state.pop("pairs_refused", None)
    put_caps(suggested(found.reading))


def _read(files: Sequence[tuple[str, bytes]]) -> Brought:
    """Read the newest two files as two sides; where that cannot be, the newest by itself.

    Raises:
        InputError: neither can be read; of two files what is wrong with both, of more with the newest.
    """
    newest = files[-2:]
    try:
        return Brought(" and ".join(_named(name) for name, _ in newest), read_pairs(newest))
    except InputError:
        if len(files) == 1:
            raise
        try:
            return Brought(_named(files[-1][0]), read_pairs(files[-1:]))
        except InputError:
            if len(files) > 2:
                raise
        raise


def _named(name: str) -> str:
    return name if name == PASTED else f"“{plain(shortened(name))}”"

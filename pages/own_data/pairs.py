"""The visitor's own pairs: uploaded or pasted, and read. The session holds what was read last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import streamlit as st

from pages.own_data.caps import put_caps
from pages.settings.beginnings import task_chosen
from pages.shared.plain import plain
from pages.shared.session import request, take_requests
from transformer.errors import InputError
from transformer.tasks.pairs.caps import suggested
from transformer.tasks.pairs.reading import MAX_BYTES, MIN_PAIRS, Reading, read_pairs
from transformer.tasks.pairs.text import MAX_LINES, shortened

MOST_PASTED = 100_000
"""Most characters in the box: the browser sends its whole text again whenever a widget changes."""
FORMATS = """The cat sleeps.⇥Le chat dort.
Where is the key?⇥Où est la clé ?

or: sentence,translation
"""
HEADING = "pairs_heading"
"""Key of the switch that `heading_switch` draws, and the name of its request."""


@dataclass(frozen=True)
class Upload:
    """The files, or the pasted text, that were read last."""

    name: str
    """Names of the files, or "pasted text", as Markdown."""
    files: tuple[tuple[str, bytes], ...]
    """Name and content of each file, to read them again with or without a heading."""
    reading: Reading


def most_megabytes() -> int:
    """Maximum size of an upload in MB: what can be read, or what the server accepts if that is less."""
    return min(MAX_BYTES // 10**6, int(st.get_option("server.maxUploadSize")))


def _bring(key: str) -> None:
    """Callback: if the widget with this key is not empty, select the task of own pairs; request that the page
    read the pairs."""
    if st.session_state.get(key) and st.session_state.get("task") != "pairs":
        st.session_state["task"] = "pairs"
        task_chosen()
    request("read_pairs", key)


def uploader() -> None:
    """Draw the uploader, which the page shows for every task."""
    most = most_megabytes()
    st.file_uploader(
        "Your own pairs: a CSV or TSV file with both sides, or two text files",
        key="pairs_upload",
        accept_multiple_files=True,
        max_upload_size=most,
        on_change=_bring,
        args=("pairs_upload",),
        help="TSV or CSV with 2 columns, ManyThings (3), Tatoeba (4), or more with a heading that names both "
        "sides; or two aligned text files, sources first. UTF-8, UTF-16 or Windows-1252, up to "
        f"{most} MB and {MAX_LINES:,} lines, at least {MIN_PAIRS} pairs.",
    )


def upload_pairs() -> tuple[Upload | None, str]:
    """Draw the uploader and the box to paste into.

    Returns:
        The last upload that could be read, if any; and why a later one could not be used, or "".
    """
    uploader()
    st.text_area(
        "Or paste them here",
        key="pairs_paste",
        placeholder=FORMATS,
        height=142,
        on_change=_bring,
        args=("pairs_paste",),
        help="One sentence and its translation per line, separated by a tab (⇥) or a comma. "
        f"Up to {MOST_PASTED:,} characters; upload more as a file. Press Ctrl+Enter.",
    )
    st.caption(
        "Your pairs stay on this server while this page or one of your runs needs them, and up to an "
        "hour longer. The file is not shared. Anyone with the link of a run sees the sentences that it "
        "shows and can ask it others."
    )
    for _, key in take_requests("read_pairs"):  # not in the callback, which cannot show a spinner
        with st.spinner("Reading your pairs…"):
            _read_from(key)
    return st.session_state.get("pairs_read"), st.session_state.get("pairs_refused", "")


def _read_from(key: str) -> None:
    """Read new pairs, or read the last ones again with or without a heading; if that fails, keep the previous
    ones. `key` is the key of the widget that changed."""
    st.session_state["pairs_refused"] = ""
    try:
        if key == HEADING:
            upload: Upload = st.session_state["pairs_read"]
            reading = read_pairs(upload.files, heading=st.session_state[HEADING])
            st.session_state["pairs_read"] = replace(upload, reading=reading)
            return
        content = _uploaded() if key == "pairs_upload" else _pasted()
    except InputError as error:
        st.session_state["pairs_refused"] = str(error)
        return
    if content is not None:
        st.session_state["pairs_read"] = content
        st.session_state[HEADING] = content.reading.heading is not None
        put_caps(suggested(content.reading))


def _pasted() -> Upload | None:
    text = st.session_state["pairs_paste"] or ""
    if len(text) > MOST_PASTED:
        raise InputError(
            f"The pasted text has {len(text):,} characters; the limit is {MOST_PASTED:,}. Upload a file."
        )
    text = text.replace("⇥", "\t")  # as the example in the empty box shows a tab
    return _read([("pasted text", text.encode("utf-8", "replace"))], "pasted text") if text.strip() else None


def _uploaded() -> Upload | None:
    """Read the two newest files as source and target; if that fails, or there is one file, read the newest.

    Returns:
        What was read; None if there is no file.

    Raises:
        InputError: this failed; if there are exactly two files, the message has both errors.
    """
    files = [(file.name, file.getvalue()) for file in st.session_state["pairs_upload"] or ()]
    if len(files) < 2:
        return _read(files) if files else None
    try:
        return _read(files[-2:])
    except InputError as of_both:
        try:
            return _read(files[-1:])
        except InputError as of_newest:
            if len(files) > 2 or str(of_both) == str(of_newest):
                raise
            raise InputError(f"As two sides: {of_both} The newest file alone: {of_newest}") from None


def _read(files: Sequence[tuple[str, bytes]], name: str = "") -> Upload:
    names = name or " and ".join(f"“{plain(shortened(name))}”" for name, _ in files)
    return Upload(names, tuple(files), read_pairs(files))


def heading_switch() -> None:
    """Draw the switch that says whether the first line of the upload is a heading."""
    st.toggle(
        "First line is a heading",
        key=HEADING,
        persist_state="session",
        on_change=request,
        args=("read_pairs", HEADING),
        help="On: the first line is no pair, and names the columns if its names are known, such as English, "
        "fr, source or answer. Off: it is a pair like the others.",
    )

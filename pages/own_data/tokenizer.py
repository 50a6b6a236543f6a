"""The upload of a tokenizer.json, and its download by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import streamlit as st

from pages.own_data.in_use import own_data, use
from pages.own_data.pairs import most_megabytes
from pages.shared.plain import plain, show_error
from pages.shared.session import request, rerun, take_requests
from transformer.errors import InputError
from transformer.tasks.pairs.store import intern_tokenizer
from transformer.tasks.tokenizer import from_hub

_NAME = re.compile(r"\w[\w.-]{0,95}(/\w[\w.-]{0,95})?", re.ASCII)


def tokenizer_upload() -> None:
    """Draw the uploader and the box for a name; the last valid tokenizer stays if a new one is refused."""
    most = most_megabytes()
    left, right = st.columns([1.2, 1], gap="medium")
    with left:
        st.file_uploader(
            "Your tokenizer.json",
            key="tokenizer_upload",
            max_upload_size=most,
            on_change=_uploaded,
            help="A file saved by the tokenizers package, such as the tokenizer.json of a model on the "
            f"hub; up to {most} MB. Only tokens that occur in the training examples are kept.",
        )
    with right:
        st.text_input(
            "Or its name on the hub",
            key="tokenizer_name",
            placeholder="such as bert-base-uncased",
            max_chars=200,
            help="Downloads its tokenizer.json from huggingface.co. Without a network, this fails after "
            "half a minute.",
        )
        st.button(
            "Fetch",
            key="tokenizer_fetch",
            icon=":material/download:",
            on_click=_asked,
            help="Download the tokenizer of this name.",
        )
    fetched = False
    for _, name in take_requests("fetch_tokenizer"):  # not in the callback, which cannot show a spinner
        with st.spinner("Downloading…"):
            _take(name, partial(_fetched, name))
        fetched = "tokenizer_refused" not in st.session_state
    if fetched:
        rerun()  # the sidebar was drawn without the new tokenizer
    if "tokenizer_refused" in st.session_state:
        show_error(st.session_state["tokenizer_refused"])
    if own_data().tokenizer is not None:
        st.caption(f"In use: **{plain(own_data().tokenizer_name or 'tokenizer.json')}**")


def _uploaded() -> None:
    file = st.session_state.get("tokenizer_upload")
    if file is None:  # removed from the uploader: the tokenizer stays
        st.session_state.pop("tokenizer_refused", None)
    else:
        _take(file.name, lambda: _text(file.getvalue()))


def _asked() -> None:
    request("fetch_tokenizer", (st.session_state.get("tokenizer_name") or "").strip())


def _take(name: str, content: Callable[[], str]) -> None:
    """Use this tokenizer from now on; if it is invalid, keep the last one."""
    st.session_state.pop("tokenizer_refused", None)
    try:
        use(tokenizer=intern_tokenizer(content()), tokenizer_name=name)
    except InputError as error:
        st.session_state["tokenizer_refused"] = str(error)


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InputError("This file is not UTF-8 text. Choose a tokenizer.json in UTF-8.") from None


def _fetched(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise InputError(
            f"“{name[:60]}” is not a tokenizer name; type one such as bert-base-uncased or owner/name."
        )
    return from_hub(name)

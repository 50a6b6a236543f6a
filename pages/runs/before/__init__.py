"""Restore the selection of the previous page if a link is clicked after a restart of the server.

Streamlit's links to other pages drop the parameters of the address. A session knows its selection; a new
session asks the browser.
"""

from __future__ import annotations

from urllib.parse import parse_qsl

import streamlit as st

from pages.shared.session import LINKED, sent_value, session, show_linked_place
from pages.stream.files import loading

_KEY = "before"
_component = st.components.v2.component(_KEY, js=loading("before"))


def before() -> None:
    """If neither the session nor its link names a run, ask the browser; its answer reruns the page."""
    with st.sidebar.container():  # empty or not: elements below keep their place
        if not session.known_runs and "run" not in st.query_params:
            _component(key=_KEY, height="content", on_named_change=_go_on)


def _go_on() -> None:
    named = dict(parse_qsl(str(sent_value(_KEY, "named")).removeprefix("?")))
    if not session.known_runs and "run" in named:
        st.query_params.update({name: value for name, value in named.items() if name in LINKED})
        show_linked_place()

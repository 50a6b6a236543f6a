"""What the page before looked at, where its server ended and the next one hears of a link first.

Streamlit's links to other pages carry no address along. The session knows what was looked at; a new one does
not.
"""

from __future__ import annotations

from urllib.parse import parse_qsl

import streamlit as st

from pages.shared.session import LINKED, heard, session, stand_as_linked
from pages.stream.files import loading

_KEY = "before"
_component = st.components.v2.component(_KEY, js=loading("before"))


def before() -> None:
    """Ask the browser, in a session that knows of no run; what it tells runs the page again."""
    with st.sidebar.container():  # empty or not: what comes below keeps its place
        if not session.known_runs and "run" not in st.query_params:
            _component(key=_KEY, height="content", on_named_change=_go_on)


def _go_on() -> None:
    named = dict(parse_qsl(str(heard(_KEY, "named")).removeprefix("?")))
    if not session.known_runs and "run" in named:
        st.query_params.update({name: value for name, value in named.items() if name in LINKED})
        stand_as_linked()

"""The selection of the previous page, in a new session: the server was restarted and then a link pressed.

Streamlit's links to other pages drop the parameters of the address. A session knows its selection; a new one
asks the browser.
"""

from __future__ import annotations

from urllib.parse import parse_qsl

import streamlit as st

from pages.shared.session import LINKED, sent_value, session, stand_as_linked
from pages.stream.files import loading

_KEY = "before"
_component = st.components.v2.component(_KEY, js=loading("before"))


def before() -> None:
    """Ask the browser, in a session without runs; its answer runs the page again."""
    with st.sidebar.container():  # empty or not: what comes below keeps its place
        if not session.known_runs and "run" not in st.query_params:
            _component(key=_KEY, height="content", on_named_change=_go_on)


def _go_on() -> None:
    named = dict(parse_qsl(str(sent_value(_KEY, "named")).removeprefix("?")))
    if not session.known_runs and "run" in named:
        st.query_params.update({name: value for name, value in named.items() if name in LINKED})
        stand_as_linked()

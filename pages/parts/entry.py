"""The first line of every page: a deep link on a fresh server must go through app.py."""

from __future__ import annotations

import streamlit as st


def guard(page: str) -> None:
    """Send a cold deep link, query string included, through the router, which sends it back here.

    Until app.py has called `st.navigation` once in a process, Streamlit runs a page file by itself.
    """
    if not st.session_state.get("_entered"):
        st.session_state["_deep_link"] = page, st.query_params.to_dict()
        st.switch_page("app.py")

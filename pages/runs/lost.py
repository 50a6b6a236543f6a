"""A link whose run is gone: the page says so, and what there is to do instead."""

from __future__ import annotations

import streamlit as st

from pages.shared.session import session

ELSEWHERE = "This page shows another model. To train your own, press Start on Watch."
"""For the pages that have no Start button."""


def lost_run(instead: str) -> None:
    """Say it until a run is started or opened."""
    with st.container(key="lost_run"):  # what comes below keeps its place in the page
        if session.lost_run:
            st.info(f"The run of this link is no longer on this server. {instead}")

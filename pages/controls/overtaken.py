"""Requests that a page could not carry out because the next click left it."""

from __future__ import annotations

import streamlit as st

from pages.controls.commands import start_if_asked
from pages.controls.words import take_up
from pages.shared import selection
from pages.shared.session import session
from pages.shared.wording import changed
from transformer.runs.registry import REGISTRY


def overtaken() -> None:
    """Do it on a page that has neither settings nor words: with the settings as they were drawn last."""
    asked = {"start", "step", "add_word", "drop_word"} & {*session.asked}
    if not asked or st.session_state.get("pairs_to_watch"):  # Your data leads to Watch, which starts
        return
    run = selection.chosen_run() or REGISTRY.get(session.draft)
    if run is not None:
        take_up(run)
        start_if_asked(run, session.settings, edited=bool(changed(run, session.settings)))

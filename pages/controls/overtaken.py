"""What was asked on a page that the next click led away from, before that page could do it."""

from __future__ import annotations

import streamlit as st

from pages.controls.commands import begin
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
        begin(run, session.settings, edited=bool(changed(run, session.settings)))

"""Look inside: one picture of the whole model, in which every box opens to show its numbers."""

from __future__ import annotations

import streamlit as st

from pages.explanations.explanation import explanation
from pages.player.following import following
from pages.presentation.listing import add_as_beat
from pages.questions.asking import ask_word
from pages.runs import drafts
from pages.runs.keyring import keyring
from pages.runs.run_list import SHOWS_ANOTHER_MODEL, lost_run_notice, run_list
from pages.shared import selection
from pages.shared.session import session
from pages.shared.style import style
from transformer.recording.view import RunView

style()
run = selection.chosen_run() or drafts.recording_or_draft(drafts.draft())
run_list(run)
lost_run_notice(SHOWS_ANOTHER_MODEL)
selection.kind(run.view)  # adopt the kind in the link, for other pages

word = ask_word(run)
picture = st.container(key="step_control")
below = st.container(key="anatomy_formula")


def live(view: RunView) -> None:
    """Draw the explanation below the picture, for the snapshot nearest to the chosen step, or the newest."""
    with below:
        explanation(view, word)


following(run, live, word=word, control=picture, parts="model", picture={"how": session.arranged})
add_as_beat(run, word=word)
keyring()

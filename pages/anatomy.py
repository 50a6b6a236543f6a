"""Look inside: one forward pass of the model, stage by stage, with its numbers."""

from __future__ import annotations

import streamlit as st

from pages.ask.asking import ask_word, asked_snapshot
from pages.inside.walk import draw_stage, walk_controls, walked
from pages.player.following import following
from pages.runs import drafts
from pages.runs.exhibit import exhibited
from pages.runs.keyring import keyring
from pages.runs.lost import ELSEWHERE, lost_run
from pages.runs.run_list import run_list
from pages.settings.presets import DEFAULT_PRESET, PRESETS
from pages.shared import selection
from pages.shared.plain import refuse
from pages.shared.style import style
from transformer.errors import InputError
from transformer.recording.view import FAILED, RunView

style()
run = selection.chosen_run() or exhibited(drafts.draft(PRESETS[DEFAULT_PRESET].config, keep=True))
seen = run.view
run_list(run)
lost_run(ELSEWHERE)

with st.container(key="ask", horizontal=True, vertical_alignment="center", gap="small"):
    word = ask_word(run, "anatomy")
control = st.container(key="step_control")
named = st.container(key="anatomy_named")
parts = walk_controls(seen, word)


def live(view: RunView) -> int | None:
    """Draw the chosen stage, in the model of the nearest snapshot."""
    snapshot = asked_snapshot(view)
    stage, refused = None, view.reason if view.state == FAILED else ""
    try:
        stage = None if snapshot is None else walked(view, snapshot, word, parts)
    except InputError as error:
        refused = str(error)
    with named:
        if refused:
            refuse(refused)
        elif snapshot is None:
            st.markdown("Building the untrained model…")
        else:
            st.markdown(f"The model of step **{snapshot.step:,}**.")
    draw_stage(view, snapshot, stage, word, parts)
    selection.keep_in_link(word)
    return selection.answered(view)


following(run, live, word=word, control=control)
keyring()

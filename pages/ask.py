"""Ask: the output for any word at any snapshot, without some heads, with beams; and the scores of heads."""

from __future__ import annotations

import streamlit as st

from pages.player.following import following
from pages.questions.asking import NO_WEIGHTS, ask_word, asked_snapshot, model_of
from pages.questions.beams import beams_tab
from pages.questions.breaking import break_tab
from pages.questions.measure import measure_tab
from pages.questions.spell import spell_tab
from pages.runs import drafts
from pages.runs.export import export
from pages.runs.keyring import keyring
from pages.runs.run_list import SHOWS_ANOTHER_MODEL, lost_run_notice, run_list
from pages.shared import selection
from pages.shared.plain import show_error_in
from pages.shared.session import session
from pages.shared.style import style
from transformer.errors import InputError
from transformer.recording.view import FAILED, RunView

TABS = {
    "Spell": ":material/spellcheck: Spell: one by one",
    "Break": ":material/content_cut: Break: switch heads off",
    "Beams": ":material/account_tree: Beams: beam search",
    "Measure": ":material/straighten: Measure: scores of heads",
}
DRAWN = {"Spell": spell_tab, "Break": break_tab, "Beams": beams_tab, "Measure": measure_tab}

style()
run = selection.chosen_run() or drafts.recording_or_draft(drafts.draft())
selection.kind(run.view)  # adopt the kind in the link, if this model has it
run_list(run)
lost_run_notice(SHOWS_ANOTHER_MODEL)

word = ask_word(run)
control = st.container(key="step_control")
named = st.container(key="explore_named")
problem = st.container(key="explore_problem")
tabs = dict(zip(TABS, st.tabs(list(TABS.values()), key="explore_tab", on_change="rerun"), strict=True))
chosen = next((name for name, tab in tabs.items() if tab.open), "Spell")
with tabs[chosen]:
    # Only the open tab is drawn and computed.
    draw = DRAWN[chosen](run, word)


def fixed(view: RunView) -> tuple[object, ...]:
    """The state that the widgets depend on: the step on the screen; None while it plays."""
    return (None if session.playing else selection.step(),)


def live(view: RunView) -> None:
    """Draw everything that changes with the run or with the step on the screen."""
    snapshot = asked_snapshot(view)
    answer, refused = None, view.reason if view.state == FAILED else ""
    try:
        answer = None if snapshot is None else model_of(view, snapshot).answer(word)
    except InputError as error:
        refused = str(error)
    if snapshot is None and view.frames:
        refused = refused or NO_WEIGHTS
    with named:
        wanted = selection.step()
        if snapshot is None:
            st.markdown("" if refused else "Building the untrained model…")
        elif wanted is not None and wanted > view.step:
            st.markdown(f"The run is at step {view.step:,}: the model of step **{snapshot.step:,}** answers.")
        elif wanted is not None and wanted != snapshot.step:
            st.markdown(f"Step {wanted:,} has no snapshot: the model of step **{snapshot.step:,}** answers.")
        else:
            st.markdown("")
    show_error_in(problem, refused)
    draw(view, snapshot, answer)


following(run, live, word=word, control=control, fixed=fixed)
export(run, word)
keyring()

"""Watch: configure, start, and see every head while it learns."""

from __future__ import annotations

import streamlit as st

from pages.controls.buttons import buttons_row, controls
from pages.controls.commands import start_if_asked
from pages.controls.racing import other_seeds, race_against
from pages.controls.words import chosen_word, draw_word_box, remember_boxes
from pages.explanations.explanation import look_at_cell, look_inside_link
from pages.own_data.unknown import warn_of_unknown
from pages.player import player, stale
from pages.player.own_model import own_model
from pages.presentation.listing import add_as_beat, offer_tour
from pages.runs import drafts
from pages.runs.export import export
from pages.runs.keyring import keyring
from pages.runs.known import parent_of
from pages.runs.run_list import lost_run_notice, run_list
from pages.runs.share import share
from pages.settings.beginnings import fill_once, values_of
from pages.settings.expected import at_once
from pages.settings.sidebar import settings
from pages.shared import selection
from pages.shared.session import rerun
from pages.shared.style import style
from pages.shared.wording import changed
from transformer.player.pictures import ghost_of
from transformer.player.sentences import unlearned
from transformer.recording.view import IDLE
from transformer.runs.any_run import AnyRun
from transformer.runs.registry import REGISTRY

style()
buttons = buttons_row()
run = selection.chosen_run()
if run is not None and run.view.own is not None:
    own_model(run, buttons)
    st.stop()
fill_once(run)
offer_tour(run)
config = settings()
run = run or drafts.draft(at_once(config))
run = start_if_asked(run, config, edited=bool(changed(run, config)))
seen = run.view  # read once, so that the page shows one state; the player follows later changes
lost_run_notice("Press Start to train your own.")
with st.sidebar, st.container(key="settings_notice"):
    warn_of_unknown(config)
    if config is not None and at_once(config) is None and seen.state == "idle":
        st.info(
            "The model of these settings is large: it is built when you press Start. Until then a small "
            "one is shown."
        )

controls(run, seen, changed(run, config), config, buttons)
draw_word_box(run)
with st.sidebar:
    race_against(run)
    other_seeds(run)
# A recording of this model, as long as the draft is untouched and the settings are valid.
recording = drafts.recording_or_draft(run) if config is not None else run
parent = parent_of(seen)
learned_alike = parent is not None and parent.config.train.task == seen.config.train.task
before = REGISTRY.get(parent.id) if learned_alike else None

GREETING = (
    "<b>Watch a small Transformer learn to reverse words.</b> The map shows where one of its heads "
    "looks while it writes: here it has learned. <b>Replay</b> shows how, <b>Start</b> trains your own."
)
REFUSED = (
    "<b>These settings cannot be trained.</b> The sidebar says why; until that is changed, the model that is "
    "shown has other settings."
)


def on_screen(word: str) -> AnyRun:
    """The recording that stands in for an untouched draft, if it has the word; otherwise the run."""
    return recording if word in (question.text for question in recording.questions) else run


restore = remember_boxes("preset", *values_of(run.config))


@st.fragment
def watched() -> None:
    """Draw the player as a fragment: a choice in it reruns only this function, which makes no figures."""
    restore()
    if stale():
        rerun()
    word = chosen_word(run)
    selection.kind(run.view)  # takes the kind from the link; drops it if this model lacks it
    shown = on_screen(word)
    over = unlearned(word) if shown is run is not recording else None
    if config is None and run.view.state == IDLE:
        over = REFUSED
    player(
        shown,
        seen if shown is run else shown.view,
        word=word,
        over=over,
        ghost=None if before is None or shown is not run else ghost_of(before.view, run.view),
        greets=GREETING if shown is recording is not run else None,
        plays=shown is recording is not run and selection.step() is None,
        more=[one for one in run.words if one not in shown.words],
        on_cell=look_at_cell,
    )
    selection.keep_in_link()


watched()
look_inside_link()
run_list(run)
share(run, config or run.config)
word = chosen_word(run)
export(on_screen(word), word)
add_as_beat(on_screen(word), word=word)
keyring()

"""Race: runs side by side on one step control; of two, the difference between them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from functools import partial

import streamlit as st

from pages.controls import racing
from pages.controls.beside import player_data
from pages.controls.buttons import buttons_row, controls
from pages.controls.words import chosen_word, draw_word_box
from pages.player import player, stale
from pages.presentation.listing import add_as_beat
from pages.runs.keyring import keyring
from pages.runs.run_list import lost_run_notice
from pages.runs.share import share
from pages.shared import ownership, selection
from pages.shared.session import rerun, session
from pages.shared.style import style
from pages.stream.broadcaster import buttons_state
from pages.stream.tickets import ticket
from transformer.errors import InputError
from transformer.exports.page import race_page
from transformer.exports.tables import endings_csv
from transformer.recording.view import ENDED, IDLE, MAX_WORDS

style()
buttons = buttons_row()
first, *others = runs = racing.start_race_if_asked(racing.runs_of_race())
observed = any(run.view.own is not None for run in runs)
lost_run_notice("Choose a prepared race and press Start.")
own = [run for run in runs if ownership.owns(run)]
going = [run for run in own if run.view.state not in ENDED] or own or [first]
idle = all(run.view.state == IDLE for run in runs)
if observed:
    buttons.page_link("watch.py", label="Back to Watch", icon=":material/arrow_back:", query_params={})
else:
    controls(
        going[0],
        going[0].view,
        {},
        first.config,
        buttons,
        start="Start" if idle else "Race again",
        beside=going[1:],
    )
with st.sidebar:
    racing.draw_prepared_races()
draw_word_box(first)
typed = [session.typed_word[1]] if session.typed_word[0] == first.id else []  # not yet in the run's words
for run in others:
    missing = [word for word in (*typed, *first.words) if word not in run.words]
    for word in missing[: max(0, MAX_WORDS - len(run.words))]:  # one more would replace a word of the run
        with suppress(InputError):  # such as: too long for the other model, or another visitor's run
            ownership.command(run).add_word(word)
shown = player_data(runs)


@st.fragment
def watched() -> None:
    """Draw the runs; a choice in the player reruns only this fragment."""
    if stale():
        rerun()
    racing.settle_clock(runs)
    if len(own) > 1:
        own[0].thread.by_seconds = session.clock == "seconds"
    selection.kind(first.view)
    tickets = [{"run": run.id, "ticket": ticket(run.id)} for run in others]
    player(
        first,
        first.view,
        word=chosen_word(first),
        parts="race",
        race=shown | {"clock": session.clock, "runs": tickets},
        seen="|".join(buttons_state(run.view) for run in runs),
    )
    selection.keep_in_link()


def _page(screen: selection.OnScreen) -> str:
    """The runs as one page, with the runs, word, head and step as they are when the button is pressed."""
    first_shown = asdict(screen)
    clock = first_shown.pop("clock")
    return race_page([run.view for run in runs], shown | {"clock": clock}, first_shown)


watched()
add_as_beat(*runs, word=chosen_word(first))
if not idle:
    share(first, None, race=others)
    empty = not all(run.view.frames for run in runs)
    with st.sidebar:
        st.download_button(
            "The race as a page (HTML)",
            data=partial(_page, selection.on_screen()),
            file_name=f"headlight-race-{first.view.stem}.html",
            mime="text/html",
            key="export_race",
            type="tertiary",
            on_click="ignore",
            disabled=empty,
            help="Nothing is recorded yet of a run that waits." if empty else None,
        )
        if len(runs) > 2:
            st.download_button(
                "What each run has shown (CSV)",
                data=lambda: endings_csv([run.view for run in runs]),
                file_name=f"headlight-race-{first.view.stem}.csv",
                mime="text/csv",
                key="export_endings",
                type="tertiary",
                on_click="ignore",
            )
keyring()

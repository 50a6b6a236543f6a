"""Race: two runs side by side on one step control, and the difference between them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from functools import partial

import streamlit as st

from pages.controls import racing
from pages.controls.buttons import buttons_row, controls
from pages.controls.commands import store_error
from pages.controls.words import chosen_word, draw_word_box
from pages.player import player, stale
from pages.runs.keyring import keyring
from pages.runs.run_list import lost_run_notice
from pages.runs.share import share
from pages.shared import ownership, selection
from pages.shared.session import session, take_requests
from pages.shared.style import style
from pages.stream.channel import buttons_state
from pages.stream.tickets import ticket
from pages.telling.listing import add_as_beat
from transformer.errors import InputError
from transformer.exports.page import race_page
from transformer.recording.view import ENDED, IDLE

style()
buttons = buttons_row()
left, right = racing.runs_of_race()
observed = left.view.own is not None or right.view.own is not None  # the page cannot control their training
for asked, _ in [] if observed else take_requests("start", "step"):
    with store_error():
        left, right = racing.untrained_pair(left, right)
        session.requests.pop(asked, None)
        racing.start_race(left, right, st.session_state.get("step_size") if asked == "step" else None)
lost_run_notice("Choose a prepared race and press Start.")
own = [run for run in (left, right) if ownership.owns(run)]
going = [run for run in own if run.view.state not in ENDED] or own or [left]
first = left.view.state == right.view.state == IDLE
if observed:
    buttons.page_link("train.py", label="Back to Watch", icon=":material/arrow_back:", query_params={})
else:
    controls(
        going[0],
        going[0].view,
        {},
        left.config,
        buttons,
        start="Start" if first else "Race again",
        beside=going[1:],
    )
with st.sidebar:
    racing.draw_prepared_races()
draw_word_box(left)
typed = [session.typed_word[1]] if session.typed_word[0] == left.id else []  # not yet in the run's words
for word in {*typed, *left.words} - {*right.words}:
    with suppress(InputError):  # too long for the other model, or not this visitor's run
        ownership.command(right).add_word(word)
shown = racing.player_data(left, right)


@st.fragment
def watched() -> None:
    """Draw both runs; a choice in the player reruns only this fragment."""
    if stale():
        st.rerun()
    if len(own) == 2:
        own[0].thread.by_seconds = session.clock == "seconds"
    selection.kind(left.view)
    player(
        left,
        left.view,
        word=chosen_word(left),
        parts="race",
        race=shown | {"clock": session.clock, "run": right.id, "ticket": ticket(right.id)},
        seen=f"{buttons_state(left.view)}|{buttons_state(right.view)}",
    )
    selection.keep_in_link()


def _page(screen: selection.OnScreen) -> str:
    """Both runs as one page, as they and the screen are when the button is pressed."""
    return race_page((left.view, right.view), shown | {"clock": session.clock}, asdict(screen))


watched()
add_as_beat(left, right, word=chosen_word(left))
if not first:
    share(left, None, race=right)
    with st.sidebar:
        st.download_button(
            "The race as a page (HTML)",
            data=partial(_page, selection.on_screen()),
            file_name=f"headlight-race-{left.view.stem}.html",
            mime="text/html",
            key="export_race",
            type="tertiary",
            on_click="ignore",
        )
keyring()

"""Watch: configure, start, and see every head while it learns."""

from __future__ import annotations

import streamlit as st

from pages.parts import selection
from pages.parts.commands import obey
from pages.parts.controls import controls
from pages.parts.entry import guard
from pages.parts.presets import DEFAULT_PRESET, PRESETS
from pages.parts.refresh import refresh_seconds
from pages.parts.run_list import run_list
from pages.parts.settings import fill, settings
from pages.parts.share import share
from pages.parts.style import style
from pages.parts.tiles import tile_choice
from pages.parts.watching import Choice, Places, draw
from pages.parts.wording import SITE_KINDS, changed, moment, status_line, words_right
from pages.parts.words import probe_words
from transformer.runs.view import PAUSED, QUEUED, TRAINING, RunView

FOLLOWED = (QUEUED, TRAINING, PAUSED)
"""States in which the screen follows something that may move: it says so."""

guard("train")
style()

run = selection.chosen_run()
if run is not None and not st.session_state.get("settings_filled"):
    fill(run.config)  # a shared link shows the settings of its run
st.session_state["settings_filled"] = True
config = settings()
run = run or selection.draft(config) or selection.draft(PRESETS[DEFAULT_PRESET].config)
run = obey(run, config, edited=bool(changed(run, config)))
seen = run.view  # one look for the whole page: what has changed since, the refresh below finds out
with st.container():
    if st.session_state.get("lost_run"):  # said until a run is started or opened
        st.info("The run of this link is no longer on this server. Here is a new one, ready to start.")

controls(run, seen, changed(run, config), usable=config is not None)
top, right = st.columns([3.2, 1], vertical_alignment="center", gap="small")
status, sentence = top.container(key="run_status"), top.container(key="moment")
right_words = right.container(key="words_right")
word = probe_words(run)

left, middle, last = st.columns([1.32, 0.84, 0.98], gap="small")
with middle:
    kind = st.segmented_control(
        "Attention",
        list(SITE_KINDS),
        default="cross",
        required=True,
        key="kind",
        format_func=SITE_KINDS.get,
        label_visibility="collapsed",
        persist_state="session",
        help="Cross: what each written letter reads of the word. Encoder: how letters read each other. "
        "Decoder: how the letters written so far read each other.",
    )
    model = run.config.model
    tile_choice(model.n_encoder_layers if kind == "encoder" else model.n_decoder_layers, model.n_heads)
places = Places(large=left.container(), strip=middle.container(), curves=last)
with left:
    outline = st.toggle(
        "Outline the mirrored letters",
        key="outline",
        persist_state="session",
        help="The cells on which a perfect reader of backwards words would put all its weight.",
    )


def interval(view: RunView) -> float | None:
    """How often to look again; at once while a word that was typed is not on the screen."""
    waiting = view.frame is not None and word not in (probe.text for probe in view.frame.probes)
    return refresh_seconds(view, waiting=waiting and view.state != "failed")


@st.fragment(run_every=interval(seen))
def live() -> None:
    """Everything that moves, from one look at the run."""
    view = run.view
    with status:
        live_now = " · :red-badge[LIVE]" if view.state in FOLLOWED else ""
        st.markdown(status_line(view) + live_now)
        st.progress(1.0 if view.state == "finished" else min(1.0, view.step / view.planned))
    with right_words:
        st.html(words_right(view))
    with sentence:
        text = moment(view, PRESETS.get(run.config.recipe, PRESETS[DEFAULT_PRESET]).look_for)
        if view.state == "failed":
            st.error(text)
        else:
            st.markdown(text)
    draw(view, Choice(word, kind, outline), places)
    if view.state != seen.state or interval(view) != interval(seen):
        st.rerun()  # the buttons and the rhythm of this refresh belong to the whole page


live()

st.caption(
    "**How to read a map:** each row is a letter being written (“after reading → writes”), each column a "
    "letter of the word. The brighter a cell, the more of its attention the row puts there; every row adds "
    "up to 100 %. A word read backwards draws a line from top right to bottom left. ✗ marks a row that would "
    "write the wrong letter, and which. Weights are measured in the model of this very step, with the right "
    "answer as the decoder's input; the outputs are what it writes by itself. Click a small map to keep it."
)
run_list(run)
share(run, config or run.config)

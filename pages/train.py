"""Watch: configure, start, and see every head while it learns."""

# ruff: noqa: E402
from __future__ import annotations

import streamlit as st

from pages.parts.pressing import buttons_row, starts_at_once
from pages.parts.style import style

notice = st.container()
buttons = buttons_row()
with buttons:
    started = starts_at_once()
style()

# What else the page needs is loaded while the browser paints this much.
from pages.parts import selection
from pages.parts.beginnings import fill, values_of
from pages.parts.commands import obey
from pages.parts.controls import controls
from pages.parts.exhibit import exhibited
from pages.parts.keyring import keyring
from pages.parts.kinds import kind_choice
from pages.parts.live_figure import Kept
from pages.parts.look_inside import look_inside_link
from pages.parts.lost import lost_run
from pages.parts.model_size import at_once
from pages.parts.painted import once_painted
from pages.parts.presets import DEFAULT_PRESET, PRESETS, look_for
from pages.parts.refresh import WORDS, holding, refresh_seconds, refreshing
from pages.parts.run_list import run_list
from pages.parts.settings import settings
from pages.parts.share import share
from pages.parts.take_away import take_away
from pages.parts.tiles import tile_choice
from pages.parts.time_control import draw_time, seconds_between_frames, time_control
from pages.parts.watching import MASS, Choice, Places, draw
from pages.parts.wording import (
    changed,
    in_line,
    looking_back,
    moment,
    status_line,
    unlearned,
    words_right,
)
from pages.parts.words import probe_words
from transformer.recording.view import RunView
from transformer.runs.registry import REGISTRY

run = selection.chosen_run()
if run is not None and not st.session_state.get("settings_filled"):
    fill(run.config)  # a shared link shows the settings of its run
st.session_state["settings_filled"] = True
config = settings()
run = run or selection.draft(at_once(config)) or selection.draft(PRESETS[DEFAULT_PRESET].config)
run = obey(run, config, edited=bool(changed(run, config)))
seen = run.view  # one look for the whole page: what has changed since, the refresh below finds out
with notice:
    lost_run("Press Start for one of your own.")
    if config is not None and at_once(config) is None and seen.state == "idle":
        st.info(
            "The model of these settings is large: it is built when you press Start. Until then a small "
            "one stands here."
        )

controls(run, seen, changed(run, config), config, buttons, started=started)
top, right = st.columns([3.2, 1], vertical_alignment="center", gap="small")
status, sentence = top.container(key="run_status"), top.container(key="moment")
right_words = right.container(key="words_right")
time_row = st.container()
word = probe_words(run)
recording = exhibited(run) if config is not None else run  # as long as nothing has been done
shown = recording if word in (one.text for one in recording.questions) else run
with time_row:
    time_places = time_control(seen if shown is run else shown.view)


def interval(view: RunView) -> float | None:
    """How often to look again; at once while a word that was typed is not on the screen."""
    if (seconds := seconds_between_frames()) is not None:
        return seconds
    waiting = view.frame is not None and word not in (probe.text for probe in view.frame.probes)
    return refresh_seconds(view, waiting=waiting and view.state != "failed")


hold = holding((*WORDS, "preset", *values_of(run.config)))
kept = Kept()  # this run of the page sends every picture whole


@st.fragment
def pictures() -> None:
    """The pictures and the choices among them: a click on one of these runs no more of the page than this."""
    hold()
    left, middle, last = st.columns([1.32, 0.84, 0.98], gap="small")
    curves = last.container(key="live_curves")
    with middle:
        model = run.config.model
        kind = kind_choice(model, label=False)
        tile_choice(model.n_layers(kind), model.n_heads)
    last.caption("Written by the model alone:")
    mass = st.container()
    mass.caption(
        f"**{MASS[run.task.aim]}**, of each head, while the model learns; from the dashed line on it counts."
    )
    places = Places(
        large=left.container(key="live_map"),
        narrator=left.container(key="narrator"),
        strip=middle.container(key="live_maps"),
        curves=curves,
        outputs=last.container(key="live_outputs"),
        mass=mass.container(key="alignment_mass"),
        samples=mass.container(key="samples") if run.task.translates else None,
        kept=kept,
    )
    with left, st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        outline = st.toggle(
            "Outline the mirrored letters" if run.task.aim == "mirror" else "Outline what each row needs",
            key="outline",
            persist_state="session",
            disabled=run.task.aim == "focus",
            help="The gold cells: where a head that reads just what its row writes would put all its weight. "
            "Nobody knows them for your own pairs.",
        )
        look_inside_link()

    def live(view: RunView) -> None:
        """Everything that moves, from one look at the run."""
        view = view if shown is run else shown.view
        draw_time(view, time_places)
        frame, place = selection.shown_frame(view), run.place
        with status:
            st.markdown(status_line(view, place))
        with right_words:
            st.html(words_right(view, frame))
        with sentence:
            text = unlearned(word) if shown is run is not recording else moment(view, look_for(run.config))
            if view.state == "failed":
                st.error(text)
            elif place is not None:
                with st.container(key="run_queue"):
                    st.markdown(in_line(place, REGISTRY.limits.training))
            else:
                st.markdown(text if selection.step() is None or frame is None else looking_back(view, frame))
        draw(view, frame, Choice(word, kind, outline), places)
        if shown is not run or frame is None:
            with places.narrator:
                once_painted(key="painted", shows=".st-key-run_start button", then=run.build)
        selection.keep_in_link()

    refreshing(run, seen, live, every=interval, hold=hold)


pictures()

st.caption(
    "**How to read a map:** each row is a token being written (“after reading → writes”), each column a "
    "token that is read: a letter, or a word. The brighter a cell, the more of its attention the row puts "
    "there; every row adds up to 100 %. A word read backwards draws a line from top right to bottom left. ✗ "
    "marks a row that would write the wrong token, and which. Weights are measured in the model of this very "
    "step, with the right answer as the decoder's input; the outputs are what it writes by itself. Click a "
    "small map to keep it."
)
run_list(run)
share(run, config or run.config)
take_away(shown, word)
keyring()

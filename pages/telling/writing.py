"""Writing a story: adding what is on the screen as a beat to the file of the visitor's story."""

from __future__ import annotations

import html
from functools import partial
from typing import Any

import streamlit as st

from pages.shared import selection
from pages.shared.session import session
from transformer.axes import sites_of
from transformer.errors import InputError
from transformer.player.sentences import narration
from transformer.recording.view import ENDED, IDLE, RunView
from transformer.runs.watched import Watched
from transformer.stories.files import read_story, with_beat
from transformer.stories.story import INSIDE, RACE


def add_as_beat(*runs: Watched, word: str) -> None:
    """Draw the button that adds what is on the screen to the visitor's story.

    Args:
        runs: on the screen: one, or the left and the right one of a race.
        word: that is shown.
    """
    with st.sidebar:
        st.button(
            "Add this as a beat",
            key="add_beat",
            icon=":material/playlist_add:",
            width="stretch",
            help="Keep what is on the screen as the next beat of your own story, which is on Stories.",
            on_click=partial(_add, runs, word),
        )


def _add(runs: tuple[Watched, ...], word: str) -> None:
    try:
        session.own_story = with_beat(
            session.own_story, [run.config for run in runs], _beat(runs[0].view, word)
        )
        n_beats = len(read_story(session.own_story).beats)
        st.toast(f"Beat {n_beats} of your story. Edit and tell it on Stories.")
    except InputError as error:
        st.toast(f"Your story cannot take another beat: {error}")


def _beat(view: RunView, word: str) -> dict[str, Any]:
    """The state of the screen, by the names of `Beat`; its sentence is the one about the large head."""
    kind, kept, frame = selection.kind(view.config.model), selection.pinned(), selection.shown_frame(view)
    found: dict[str, Any] = {"says": "Say here what there is to see."}
    if frame is not None and word in (probe.text for probe in frame.probes):
        head = selection.large_head(frame, sites_of(frame.axes, kind), kept)
        found["says"] = html.unescape(narration(frame, word, *head))[:320]
    page = session.page if session.page in (RACE, INSIDE) else "Watch"
    at = selection.step()
    found |= {"page": page, "word": word, "kind": kind}
    found["head"] = f"{kept[0]}.{kept[1] + 1}" if kept else "clearest"
    found["step"] = str(at) if at is not None else "end" if view.state in ENDED else "live"
    if view.state != IDLE:
        found["command"] = "start"  # which is done once, by the first beat of a run
    if page == INSIDE and session.box is not None:
        found["box"] = session.box.box
    return found

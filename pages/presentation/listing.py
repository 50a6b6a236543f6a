"""The list of stories, the offer of the tour, and the visitor's own story: add beats to it, and edit it."""

from __future__ import annotations

import html
from functools import partial
from typing import Any

import streamlit as st

from pages.presentation.beats import packed
from pages.presentation.cards import card
from pages.runs.share import link
from pages.shared import selection
from pages.shared.ownership import owns
from pages.shared.plain import plain, show_error
from pages.shared.session import CLOCKS, session
from transformer.errors import InputError
from transformer.player.sentences import narration
from transformer.recording.view import ENDED, IDLE, RunView
from transformer.runs.any_run import AnyRun
from transformer.runs.registry import REGISTRY
from transformer.shared.attention_info import sites_of
from transformer.stories.files import MOST_BYTES, read_story, stories, with_beat
from transformer.stories.story import INSIDE, RACE, TOUR, Story


def offer_tour(run: AnyRun | None) -> None:
    """Offer the tour in the sidebar while no run is on the screen."""
    with st.sidebar, st.container(key="offer_tour"):  # even if empty: elements below keep their place
        if run is None:
            query = {"story": "tour"}
            st.page_link(
                "stories.py", label="New here? Take the tour.", icon=":material/tour:", query_params=query
            )


def listing() -> None:
    """Draw a card for each story, tours first; below them the errors of story files, and an expander for the
    visitor's own run and story."""
    st.markdown("A story leads you through the app, one slide at a time.")
    listed = sorted(stories().items(), key=lambda item: getattr(item[1], "kind", "") != TOUR)
    good = {name: story for name, story in listed if isinstance(story, Story)}
    with st.container(key="stories"):
        for name, story in good.items():
            card(name, story)
    for name, error in listed:
        if name not in good:
            show_error(f"{name}.toml: {error}")
    with st.expander("Use your own run, or write a story", expanded=bool(session.own_story)):
        run = REGISTRY.get(session.run)
        if run is not None and owns(run):
            st.markdown("**Your own run**, in place of the first run of the story:")
            with st.container(horizontal=True, key="stories_with_run"):
                for name, story in good.items():
                    with_run, label = {"story": name, "run": run.id}, f"{plain(story.title)}, with your run"
                    st.page_link("stories.py", label=label, query_params=with_run)
        _upload()
        _own_story()


def _upload() -> None:
    """Draw the file uploader for a story, and explain how to begin one."""
    st.markdown("**Your own story**")
    st.caption("“Add to my story”, in the sidebar of Watch, Race and Look inside, begins one. Or bring one:")
    st.file_uploader(
        "Upload a story (TOML)",
        type="toml",
        key="story_upload",
        on_change=_uploaded,
        max_upload_size=1,
        help="A file that was downloaded here or on another server.",
    )


def _own_story() -> None:
    """Draw the visitor's own story, if there is one: its file, to edit, tell, download and link."""
    if not session.own_story:
        return
    st.session_state["story_text"] = session.own_story
    st.text_area("The file", key="story_text", height=320, on_change=_edited)
    try:
        read_story(session.own_story)
    except InputError as error:
        show_error(error)
        return
    query = {"story": packed(session.own_story)}
    with st.container(horizontal=True, key="story_own"):
        st.page_link("stories.py", label="**Tell it**", icon=":material/play_arrow:", query_params=query)
        st.download_button(
            "Download",
            session.own_story,
            "story.toml",
            "application/toml",
            key="story_download",
            on_click="ignore",
        )
    st.code(link(query), language=None)


def _edited() -> None:
    session.own_story = str(st.session_state.get("story_text", ""))[:MOST_BYTES]


def _uploaded() -> None:
    file = st.session_state.get("story_upload")
    if file is not None:
        session.own_story = file.getvalue()[: MOST_BYTES + 1].decode(errors="replace")


def add_as_beat(*runs: AnyRun, word: str) -> None:
    """Draw the button that adds the screen to the visitor's story; not for own models: no story trains one.

    Args:
        runs: the run on the screen, or the runs of a race.
        word: the word on the screen.
    """
    if any(run.view.own for run in runs):
        return
    with st.sidebar:
        st.button(
            "Add to my story",
            key="add_beat",
            icon=":material/playlist_add:",
            width="stretch",
            help="Keep what is on the screen as the next slide of your own story, which is on Stories.",
            on_click=partial(_add, runs, word),
        )


def _add(runs: tuple[AnyRun, ...], word: str) -> None:
    try:
        session.own_story = with_beat(
            session.own_story, [run.config for run in runs], _beat(runs[0].view, word)
        )
        n_beats = len(read_story(session.own_story).beats)
        st.toast(f"Slide {n_beats} of your story. Edit and tell it on Stories.")
    except InputError as error:
        st.toast(f"Your story cannot take another slide: {error}")


def _beat(view: RunView, word: str) -> dict[str, Any]:
    """The state of the screen as fields of `Beat`, with the sentence about the head that is drawn large."""
    kind, kept, frame = selection.kind(view), session.pinned, selection.shown_frame(view)
    beat: dict[str, Any] = {"says": "Say here what there is to see."}
    if frame is not None and word in (tracked.text for tracked in frame.words):
        head = frame.large_head(sites_of(frame.axes, kind), kept)
        beat["says"] = html.unescape(narration(frame, word, *head))[:320] or beat["says"]
    page = session.page if session.page in (RACE, INSIDE) else "Watch"
    at = selection.step()
    if page == RACE and at is not None and session.clock != CLOCKS[0]:
        raise InputError("a slide compares runs by steps; choose the clock “steps”, then add it again.")
    beat |= {"page": page, "word": word, "kind": kind}
    beat["head"] = f"{kept[0]}.{kept[1] + 1}" if kept else "clearest"
    beat["step"] = str(at) if at is not None else "end" if view.state in ENDED else "live"
    if view.state != IDLE:
        beat["command"] = "start"  # without effect in later beats of a run: it has started
    if page == INSIDE and session.box is not None:
        beat["box"] = session.box.box
    return beat

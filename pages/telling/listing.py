"""The list of stories, the offer of the tour, and the visitor's own file."""

from __future__ import annotations

import streamlit as st

from pages.runs.share import link
from pages.shared.plain import plain, refuse
from pages.shared.session import session
from pages.telling.telling import packed
from transformer.errors import InputError
from transformer.runs.registry import REGISTRY
from transformer.runs.watched import Watched
from transformer.stories.files import MOST_BYTES, read_story, stories
from transformer.stories.story import TOUR


def offer_tour(run: Watched | None) -> None:
    """Offer the tour to visitors who have no run yet."""
    with st.sidebar, st.container(key="offer_tour"):  # empty or not: what comes below keeps its place
        if run is None:
            query = {"story": "tour"}
            st.page_link(
                "stories.py", label="New here? Take the tour.", icon=":material/tour:", query_params=query
            )


def listing() -> None:
    """Draw the list of stories, tours first, and the visitor's own."""
    for name, found in sorted(stories().items(), key=lambda item: getattr(item[1], "kind", "") != TOUR):
        if isinstance(found, InputError):
            refuse(f"{name}.toml: {found}")
            continue
        with st.container(key=f"story_{name}", horizontal=True, vertical_alignment="center"):
            st.page_link("stories.py", label=f"**{plain(found.title)}**", query_params={"story": name})
            st.markdown(plain(found.about), width="stretch")
            if REGISTRY.get(session.run) is not None:
                with_run = {"story": name, "run": session.run}
                st.page_link("stories.py", label="with your run", query_params=with_run)
    with st.sidebar:
        _upload()
    _own_story()


def _upload() -> None:
    """Draw the place to bring a story, and say how to begin one."""
    st.markdown("**Your own story**")
    st.caption(
        "“Add this as a beat”, in the sidebar of Watch, Race and Look inside, begins one. Or bring one:"
    )
    st.file_uploader(
        "Upload a story (TOML)",
        type="toml",
        key="story_upload",
        on_change=_brought,
        max_upload_size=1,
        help="A file that was downloaded here or on another server.",
    )


def _own_story() -> None:
    """Draw the visitor's own story: its file, to edit, tell, download and link."""
    if not session.own_story:
        return
    st.session_state["story_text"] = session.own_story
    st.text_area("The file", key="story_text", height=320, on_change=_edited)
    try:
        read_story(session.own_story)
    except InputError as error:
        refuse(error)
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


def _brought() -> None:
    file = st.session_state.get("story_upload")
    if file is not None:
        session.own_story = file.getvalue()[: MOST_BYTES + 1].decode(errors="replace")

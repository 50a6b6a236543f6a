"""Stories: choose one and present it, follow one, or write one."""

from __future__ import annotations

from functools import partial
from typing import Any
from urllib.parse import urlsplit

import streamlit as st

from pages.controls.buttons import buttons_row
from pages.controls.commands import problem, store_error
from pages.player import COMPONENT, KEY, changed, stale
from pages.presentation import beats
from pages.presentation.listing import listing
from pages.runs.keyring import keyring, token_of
from pages.runs.share import ALONE, link
from pages.shared.plain import plain, show_error
from pages.shared.session import request, rerun, sent_value, session
from pages.shared.style import style
from pages.stream.broadcaster import buttons_state
from pages.stream.files import plotly
from transformer.errors import InputError
from transformer.recording.view import IDLE
from transformer.runs.registry import REGISTRY
from transformer.stories.story import TOUR

style()
name, asked = st.query_params.get("story"), st.query_params.get("run")
if "leave" in session.requests:
    session.requests.pop("leave")
    beats.leave()
    st.switch_page(f"{session.came_from or 'watch'}.py", query_params={})
if name is None:
    listing()
    keyring()
    st.stop()
try:
    first = REGISTRY.made(asked)
    known = first and REGISTRY.owners.presentation(first.id)
    follows = known is not None and known["story"] == name
    if first is not None and not follows and not token_of(first.id):
        first = None  # another visitor's run, with another story or none
    story, left_out = beats.presentable(beats.named(name), first)
    if follows:
        presentation: dict[str, Any] = known
    else:
        if first is None:
            beats.leave()
        presentation = {"story": name, "at": 0, "shown": [], "recorded": [], "by": "", "obeyed": []}
        presentation["runs"] = session.cast = beats.cast(story, first)
    anchor = REGISTRY.made(next(iter(presentation["runs"].values())))
    if anchor is None:
        raise InputError("The runs of this story are no longer on this server. Open it from the list.")
except InputError as error:
    show_error(str(error))
    st.page_link("stories.py", label="All stories")
    keyring()
    st.stop()
id_, tells = anchor.id, bool(token_of(anchor.id))
st.query_params["run"] = id_
if tells and not follows:
    REGISTRY.owners.present(id_, token_of(id_), presentation)
elif tells:
    beats.obey(story, {**presentation})  # runs may have left memory since the page was last open


def move() -> None:
    """Callback: move to the beat that the presenter chose, and run all pending commands up to this beat."""
    before = REGISTRY.owners.presentation(id_) or presentation
    now = beats.updated_state(story, before, sent_value(KEY, "chosen"))
    session.problem = None
    beats.obey(story, now)
    REGISTRY.owners.present(id_, token_of(id_), now)


def start() -> None:
    """Callback: train the untrained runs of the current beat; an error is stored in the session."""
    now = REGISTRY.owners.presentation(id_) or presentation
    with store_error():
        beats.train_beat(story.beats[now["at"]], now)


with st.sidebar:
    st.page_link("stories.py", label="All stories", icon=":material/arrow_back:", query_params={})
    st.caption(plain(story.about))
    for why in left_out:
        st.warning(plain(why))
    if story.kind != TOUR:
        address = link({"story": name, "run": id_})
        local = urlsplit(address).hostname in ALONE
        st.caption(f"Viewers follow with this link{', once the server is open to them' * local}:")
        st.code(address, language=None, wrap_lines=True)
with buttons_row():
    if tells and story.kind == TOUR and anchor.view.state == IDLE:
        st.button(
            "Start",
            key="run_start",
            type="primary",
            icon=":material/play_arrow:",
            shortcut="S",
            on_click=start,
        )
    st.markdown(f"**{plain(story.title)}**", width="content")
with st.container(key="problem"):
    problem()


@st.fragment
def watched() -> None:
    """Draw the story. The browser responds to a key at once, and then sends the new state to `move`."""
    if stale() or "leave" in session.requests:
        rerun()
    data = beats.as_data(story, REGISTRY.owners.presentation(id_) or presentation)
    COMPONENT(
        key=KEY,
        height="content",
        data={
            "run": id_,
            "ticket": data["runs"][next(iter(story.runs))]["ticket"],
            "plotly": plotly(),
            "seen": buttons_state(anchor.view),
            "fileName": f"headlight-{anchor.view.stem}",
            "story": data | {"tells": tells, "notes": "notes" in st.query_params, "problem": session.problem},
        },
        on_chosen_change=move,
        on_cell_change=partial(request, "leave"),
        on_changed_change=changed,
        on_refused_change=lambda: None,  # drawing the story again issues new tickets
    )


watched()
keyring()

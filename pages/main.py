"""The entry script of all pages: declares them, asks for a login if required, and runs the chosen page."""

import streamlit as st

from pages.controls.commands import start_if_asked
from pages.controls.racing import runs_of_race, start_race_if_asked
from pages.controls.words import carry_out_word_requests
from pages.player.own_model import PAGES_OF_OUR_MODELS, needs_our_model
from pages.runs.before import before
from pages.shared import selection
from pages.shared.login import login
from pages.shared.session import RACE, session
from pages.shared.wording import changed
from transformer.runs.registry import REGISTRY


def handle_interrupted_requests() -> None:
    """Carry out requests of the previous page that a click interrupted, with the settings as last drawn."""
    asked = {"start", "step", "add_word", "drop_word"} & {*session.requests}
    if not asked or st.session_state.get("pairs_to_watch"):  # Your data opens Watch, which starts the run
        return
    if session.page == RACE:
        start_race_if_asked(runs_of_race())
    run = selection.chosen_run() or REGISTRY.get(session.draft)
    if run is not None:
        carry_out_word_requests(run)
        start_if_asked(run, session.settings, edited=bool(changed(run, session.settings)))


st.set_page_config(
    page_title="Headlight: watch attention heads learn", layout="wide", initial_sidebar_state=256
)

pages = [
    st.Page("watch.py", title="Watch", default=True),
    st.Page("race.py", title="Race"),
    st.Page("ask.py", title="Ask"),
    st.Page("inside.py", title="Look inside"),
    st.Page("masks.py", title="Masks"),
    st.Page("data.py", title="Your data"),
    st.Page("stories.py", title="Stories"),
]
page = st.navigation(pages, position="top")

if session.page != page.title:
    session.word_problem = None  # a word refused on another page is no problem of this one
login()
if page.title != "Stories":  # a story has its own runs
    session.came_from = page.url_path
    before()
    # Watch, Race and Masks handle their own requests; on Stories, requests wait for the next page.
    if session.page != page.title or page.title not in ("Watch", RACE, "Masks"):
        handle_interrupted_requests()
session.page = page.title
if page.title in PAGES_OF_OUR_MODELS:
    needs_our_model(page.title)
page.run()
st.set_page_config(page_icon="🔦")  # last: Streamlit takes 0.1 s to recognise an emoji

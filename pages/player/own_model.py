"""The page Watch for an own model, whose attention `Watch` has recorded; other pages refuse such a model."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.controls.racing import race_against
from pages.controls.words import chosen_word
from pages.player import player, stale
from pages.runs.export import export
from pages.runs.keyring import keyring
from pages.runs.run_list import run_list
from pages.runs.share import share
from pages.shared import selection
from pages.shared.plain import plain
from pages.shared.session import rerun, session
from pages.shared.style import style
from transformer.runs.any_run import AnyRun

PAGES_OF_OUR_MODELS = {
    "Ask": "The page Ask runs the model on any word",
    "Look inside": "The page Look inside shows every number of a forward pass",
    "Masks": "The page Masks switches the model's masks on and off",
}


def own_model(run: AnyRun, row: DeltaGenerator) -> None:
    """Draw the page Watch for a run of an own model. The page cannot control its training.

    Args:
        row: the container for the buttons.
    """
    view = run.view
    assert view.own is not None
    with row:
        st.button("Train a model here", key="leave_own", icon=":material/arrow_back:", on_click=_leave)
        st.markdown(f"**{plain(view.own.name)}**", width="content")
    with st.sidebar:
        race_against(run)
    with st.container(key="problem"):
        if view.own.problem:
            st.warning(plain(view.own.problem), icon=":material/visibility_off:")

    @st.fragment
    def watched() -> None:
        if stale():
            rerun()
        selection.kind(run.view)
        player(
            run,
            run.view,
            word=chosen_word(run),
        )
        selection.keep_in_link()

    watched()
    with st.sidebar:
        st.caption(
            f"{view.parameters:,} parameters. "
            "Your own training loop trains this model, and `Watch` records its attention. This page "
            "can neither pause the training nor run the model."
        )
    run_list(run)
    share(run, None)
    export(run, chosen_word(run))
    keyring()


def _leave() -> None:
    session.run, session.race = None, ()
    st.query_params.pop("run", None)


def needs_our_model(title: str) -> None:
    """If an own model is on the screen, say that only its attention was recorded, and stop the page.

    Args:
        title: title of the page, a key of `PAGES_OF_OUR_MODELS`.
    """
    run = selection.chosen_run()
    if run is None or run.view.own is None:
        return
    style()
    st.info(
        f"{PAGES_OF_OUR_MODELS[title]}. Only the attention of {plain(run.view.own.name)} was recorded: "
        "the pages Watch and Race show it."
    )
    st.page_link("watch.py", label="Back to Watch", icon=":material/arrow_back:", query_params={})
    with st.sidebar:
        st.button("Train a model here", key="leave_own", on_click=_leave)
    keyring()
    st.stop()

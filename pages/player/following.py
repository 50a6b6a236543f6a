"""Redraw the figures that Python makes when the run, or the step chosen in the browser, changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.errors import StreamlitInvalidLayoutContextError

from pages.controls.words import remember_boxes
from pages.player import player, stale
from pages.shared import selection
from pages.shared.session import rerun, session
from transformer.recording.view import RunView
from transformer.runs.any_run import AnyRun


def following(
    run: AnyRun,
    draw: Callable[[RunView], None],
    *,
    word: str,
    control: DeltaGenerator,
    fixed: Callable[[RunView], tuple[object, ...]] = lambda view: (),
    parts: str = "control",
    picture: Mapping[str, Any] | None = None,
) -> None:
    """Draw now, and again whenever the step control asks: after new steps, or when a step is chosen.

    This fragment also writes to containers outside of it, which Streamlit keeps from the last full run of
    the page. If that run was interrupted (rarely, by a visitor's next click), they are missing, and the
    whole page is run again.

    Args:
        draw: draws everything that changes, from one view of the run.
        word: the word that the player shows and the link names.
        control: the container of the step control.
        fixed: returns the state on which the other parts of the page depend; if it changes, the whole page
            is rerun.
        parts: what the player draws, "control" or "model".
        picture: for the picture of the model: `only`, the tables of an open attention; `how`, parameters of
            its requests.
    """
    restore = remember_boxes()

    def rest(view: RunView) -> tuple[object, ...]:
        return view.state, view.frame is None, view.interventions, selection.follows(), *fixed(view)

    drawn_for = rest(run.view)

    @st.fragment
    def look() -> None:
        restore()
        view = run.view
        if stale() or rest(view) != drawn_for:
            rerun()
        try:
            draw(view)
            selection.keep_in_link(word)
            shown = selection.shown_step(view)
            with control:
                opened = None if session.box is None else asdict(session.box)
                player(run, view, word=word, parts=parts, answers=shown, opened=opened, picture=picture)
        except StreamlitInvalidLayoutContextError:
            rerun()

    look()

"""A page whose pictures Python makes: it follows its run and the step that is chosen in the browser."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.errors import StreamlitInvalidLayoutContextError

from pages.controls.holding import holding
from pages.player import player, stale
from pages.shared import selection
from pages.shared.session import session
from transformer.recording.view import RunView
from transformer.runs.watched import Watched


def following(
    run: Watched,
    draw: Callable[[RunView], int | None],
    *,
    word: str,
    control: DeltaGenerator,
    fixed: Callable[[RunView], tuple[object, ...]] = lambda view: (),
    parts: str = "control",
    picture: Mapping[str, Any] | None = None,
) -> None:
    """Draw now, and again when the step control asks for it: the run has gone on, or a step is chosen.

    Streamlit keeps the places outside this part, to which it writes, from the last full run of the page.
    Where that one was cut off (rarely, by a visitor's next click), they are missing: the page is then run
    in full.

    Args:
        draw: draws all that moves, from one look at the run; returns the step that it shows.
        control: where the step control stands.
        fixed: what the parts that are not drawn again depend on.
        parts: what the player draws, "control" or "model".
        picture: of the model: `only`, the tables that an open attention shows; `how`, what is asked besides.
    """
    hold = holding()

    def rest(view: RunView) -> tuple[object, ...]:
        return view.state, view.frame is None, view.interventions, selection.follows(), *fixed(view)

    drawn_for = rest(run.view)

    @st.fragment
    def look() -> None:
        hold()
        view = run.view
        if stale() or rest(view) != drawn_for:
            st.rerun()
        try:
            shown = draw(view)
            with control:
                opened = None if session.box is None else asdict(session.box)
                player(run, view, word=word, parts=parts, answers=shown, opened=opened, picture=picture)
        except StreamlitInvalidLayoutContextError:
            st.rerun()

    look()

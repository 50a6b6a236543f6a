"""Switching the masks of a run off and on: before it begins, in the middle, after its end."""

from __future__ import annotations

import streamlit as st

from pages.parts import selection
from pages.parts.plain import refuse
from transformer.errors import InputError
from transformer.interventions import MASKS
from transformer.recording.view import FAILED, RunView
from transformer.runs.watched import Watched

OBEYED_SECONDS = 2.0
_HELP = {
    "causal": "Keeps each row from reading what comes after it. Without it the model has the right answer "
    "before its eyes while it trains.",
    "padding": "Hides [PAD], which fills shorter words up to the longest of their batch.",
}


def mask_switches(run: Watched) -> None:
    """Draw a switch for each mask; what was asked for is done first, with the run as it is now."""
    owner, asked = st.session_state.pop("masks_asked", (None, {}))
    if owner == run.id:
        _switch(run, asked)
    view, own = run.view, selection.owns(run)
    for mask in MASKS:
        key = f"mask_{mask}_on"
        st.session_state[key] = _wanted(view).get(mask, view.masks[mask])  # whoever has switched it
        st.toggle(
            f"{mask.capitalize()} mask",
            key=key,
            disabled=view.frame is None or view.state == FAILED or not own,
            on_change=_ask,
            args=(run.id, mask),
            help=_HELP[mask],
        )


def masks_pending(view: RunView) -> bool:
    """Whether the run has yet to obey a switch: evaluating a large model takes a while."""
    pending = any(view.masks[mask] != on for mask, on in _wanted(view).items())
    if not pending:
        st.session_state.pop("masks_wanted", None)
    return pending and view.state != FAILED


def mask_problem() -> None:
    """Why a mask could not be switched, until the next one is."""
    if "mask_problem" in st.session_state:
        refuse(st.session_state["mask_problem"])


def _wanted(view: RunView) -> dict[str, bool]:
    owner, wanted = st.session_state.get("masks_wanted", (None, {}))
    return wanted if owner == view.id else {}


def _ask(run_id: str, mask: str) -> None:
    """A callback only notes what is asked; two switches may be pressed before the page runs again."""
    owner, asked = st.session_state.get("masks_asked", (None, {}))
    if (on := st.session_state.get(f"mask_{mask}_on")) is not None:
        st.session_state["masks_asked"] = run_id, {**(asked if owner == run_id else {}), mask: bool(on)}
    st.session_state.pop("mask_problem", None)


def _switch(run: Watched, asked: dict[str, bool]) -> None:
    """What is not as configured is an intervention: it is logged, pinned, and kept with every snapshot."""
    st.session_state["masks_wanted"] = run.id, asked
    try:
        for mask, on in asked.items():
            selection.command(run).switch_mask(mask, on).wait(OBEYED_SECONDS)
    except InputError as error:
        st.session_state["mask_problem"] = str(error)
        st.session_state.pop("masks_wanted", None)

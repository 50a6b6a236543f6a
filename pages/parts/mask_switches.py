"""Switching the masks of a run off and on: before it begins, in the middle, after its end."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from transformer.errors import InputError
from transformer.interventions import MASKS
from transformer.runs.run import Run
from transformer.runs.view import FAILED

OBEYED_SECONDS = 2.0
_HELP = {
    "causal": "Keeps each row from reading what comes after it. Without it the model has the right answer "
    "before its eyes while it trains.",
    "padding": "Hides [PAD], which fills shorter words up to the longest of their batch.",
}


def mask_switches(run: Run) -> None:
    """Draw a switch for each mask; what was asked for is done first, with the run as it is now."""
    mask, on = st.session_state.pop("mask_asked", (None, True))
    if mask is not None:
        _switch(run, mask, on)
    view = run.view
    for mask in MASKS:
        key = f"mask_{mask}_on"
        st.session_state[key] = view.masks[mask]  # whoever has switched it
        st.toggle(
            f"{mask.capitalize()} mask",
            key=key,
            disabled=view.frame is None or view.state == FAILED,
            on_change=_ask,
            args=(mask,),
            help=_HELP[mask],
        )


def mask_problem() -> None:
    """Why a mask could not be switched, until the next one is."""
    if "mask_problem" in st.session_state:
        st.error(st.session_state["mask_problem"])


def _ask(mask: str) -> None:
    st.session_state["mask_asked"] = mask, bool(st.session_state[f"mask_{mask}_on"])
    st.session_state.pop("mask_problem", None)


def _switch(run: Run, mask: str, on: bool) -> None:
    """What is not as configured is an intervention: it is logged, pinned, and kept with every snapshot."""
    now, configured = {**run.view.masks, mask: on}, run.view.config.model.masks
    masks = tuple((name, state) for name, state in now.items() if state != configured[name])
    try:
        run.intervene(replace(run.view.interventions, masks=masks)).wait(OBEYED_SECONDS)
    except InputError as error:
        st.session_state["mask_problem"] = str(error)

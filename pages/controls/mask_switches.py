"""Switching the masks off and on: of a run before it begins or while it trains, or for another beside it."""

from __future__ import annotations

import streamlit as st

from pages.controls.commands import TAKEN_AWAY_SECONDS, await_effect
from pages.shared import ownership
from pages.shared.plain import refuse
from pages.shared.session import session
from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.interventions import MASKS
from transformer.recording.view import ENDED, FAILED, IDLE, RunView
from transformer.runs.watched import Watched

_HELP = {
    "causal": "Keeps each row from reading what comes after it. Without it the model has the right answer "
    "before its eyes while it trains.",
    "padding": "Hides [PAD], which fills shorter words up to the longest of their batch.",
}
_OF_ENDED = " A run that has ended stays as it is: Start trains one as the switches say, beside it."


def to_train(run: Watched) -> RunConfig:
    """What Start trains on this page: the run's settings, with the masks as the switches show them."""
    view, configured = run.view, run.config.model.masks
    if view.state == IDLE:  # its own model has them already
        return run.config
    shown = _shown(view)
    return run.config.with_changes(
        **{f"{mask}_mask": shown[mask] for mask in MASKS if shown[mask] != configured[mask]}
    )


def beside(run: Watched) -> str:
    """What the large button says where the switches ask for another run than the one that has ended."""
    view, shown = run.view, _shown(run.view)
    if view.state not in ENDED or shown == view.masks:
        return ""
    off = [mask for mask in MASKS if view.masks[mask] and not shown[mask]]
    on = [mask for mask in MASKS if shown[mask] and not view.masks[mask]]
    if len(off) + len(on) == 1:
        return f"Train one {'without' if off else 'with'} it"
    return "Train one with these masks"


def mask_switches(run: Watched) -> None:
    """Draw a switch for each mask."""
    view, own = run.view, ownership.owns(run)
    for mask, on in _shown(view).items():
        key = f"mask_{mask}_on"
        st.session_state[key] = on  # whoever has switched it
        st.toggle(
            f"{mask.capitalize()} mask",
            key=key,
            disabled=view.frame is None or view.state == FAILED or not own,
            on_change=_switch,
            args=(run, mask),
            help=_HELP[mask] + (_OF_ENDED if view.state in ENDED else ""),
        )


def masks_pending(view: RunView) -> bool:
    """Whether the run has yet to obey a switch: evaluating a large model takes a while."""
    if view.state in ENDED:
        return False
    pending = _shown(view) != view.masks
    if not pending:
        session.masks_wanted = None, {}
    return pending


def mask_problem() -> None:
    """Why a mask could not be switched, until the next one is."""
    if session.mask_problem:
        refuse(session.mask_problem)


def _shown(view: RunView) -> dict[str, bool]:
    """How the switches stand: as the run has the masks, or as somebody has asked for since."""
    return {mask: _wanted(view).get(mask, view.masks[mask]) for mask in MASKS}


def _wanted(view: RunView) -> dict[str, bool]:
    owner, wanted = session.masks_wanted
    return wanted if owner == view.id else {}


def _switch(run: Watched, mask: str) -> None:
    """Callback: the run goes on as the switch says; for one that has ended this is only noted."""
    session.mask_problem = session.problem = session.word_problem = None
    on = st.session_state.get(f"mask_{mask}_on")
    if on is None:  # the page has been left meanwhile
        return
    session.masks_wanted = run.id, {**_wanted(run.view), mask: on}
    if run.view.state in ENDED:
        return
    try:
        # What is not as configured is an intervention: logged, pinned, and kept with every snapshot.
        await_effect(ownership.command(run).switch_mask(mask, on), TAKEN_AWAY_SECONDS)
    except InputError as error:
        session.mask_problem, session.masks_wanted = str(error), (None, {})

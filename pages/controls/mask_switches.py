"""Switches for the masks of a run, or of a second run once the first has ended."""

from __future__ import annotations

import streamlit as st

from pages.controls.commands import INTERVENTION_SECONDS, await_effect
from pages.shared import ownership
from pages.shared.plain import show_error
from pages.shared.session import session
from transformer.config import RunConfig
from transformer.errors import InputError
from transformer.recording.view import ENDED, FAILED, IDLE, RunView
from transformer.runs.any_run import AnyRun
from transformer.shared.interventions import MASKS

_HELP = {
    "causal": "Blocks attention to later tokens. Without it, training shows the model the right answer.",
    "padding": "Blocks attention to [PAD], which pads the words of a batch to the same length.",
}
_OF_ENDED = " This run has ended: switch a mask to race it against a second run."


def to_train(run: AnyRun) -> RunConfig:
    """The settings that Start trains: the draft's, or those of the run with the masks of the switches."""
    view, configured = run.view, run.config.model.masks
    if view.state == IDLE:  # the switches change the draft itself
        return run.config
    shown = _shown(view)
    return run.config.with_changes(
        **{f"{mask}_mask": shown[mask] for mask in MASKS if shown[mask] != configured[mask]}
    )


def beside(run: AnyRun) -> str:
    """Label of Start if it starts a race: if the switches differ from an ended run's masks; else empty."""
    view, shown = run.view, _shown(run.view)
    if view.state not in ENDED or shown == view.masks:
        return ""
    off = [mask for mask in MASKS if view.masks[mask] and not shown[mask]]
    on = [mask for mask in MASKS if shown[mask] and not view.masks[mask]]
    if len(off) + len(on) == 1:
        return f"Race {'without' if off else 'with'} it"
    return "Race with these masks"


def mask_switches(run: AnyRun) -> None:
    """Draw a switch for each mask."""
    view, own = run.view, ownership.owns(run)
    for mask, on in _shown(view).items():
        key = f"mask_{mask}_on"
        st.session_state[key] = on  # the mask may have been switched on another page of its owner
        st.toggle(
            f"{mask.capitalize()} mask",
            key=key,
            disabled=view.frame is None or view.state == FAILED or not own,
            on_change=_switch,
            args=(run, mask),
            help=_HELP[mask] + (_OF_ENDED if view.state in ENDED else ""),
        )


def masks_pending(view: RunView) -> bool:
    """Whether a switch has not taken effect yet: evaluating a large model takes a while.

    Once the run has the masks of the switches, what was asked for is forgotten.
    """
    if view.state in ENDED:
        return False
    pending = _shown(view) != view.masks
    if not pending:
        session.masks_wanted = None, {}
    return pending


def mask_problem() -> None:
    """Show why the last switch failed."""
    if session.mask_problem:
        show_error(session.mask_problem)


def _shown(view: RunView) -> dict[str, bool]:
    """The states of the switches: the masks of the run, or those requested since."""
    return {mask: _wanted(view).get(mask, view.masks[mask]) for mask in MASKS}


def _wanted(view: RunView) -> dict[str, bool]:
    owner, wanted = session.masks_wanted
    return wanted if owner == view.id else {}


def _switch(run: AnyRun, mask: str) -> None:
    """Callback: switch a mask of the run; for an ended run, only remember it. An error is stored."""
    session.mask_problem = session.problem = session.word_problem = None
    on = st.session_state.get(f"mask_{mask}_on")
    if on is None:  # the page has been left meanwhile
        return
    session.masks_wanted = run.id, {**_wanted(run.view), mask: on}
    if run.view.state in ENDED:
        return
    try:
        # A mask that differs from the configuration is an intervention: logged, recorded as a moment, and
        # kept with every snapshot.
        await_effect(ownership.command(run).switch_mask(mask, on), INTERVENTION_SECONDS)
    except InputError as error:
        session.mask_problem, session.masks_wanted = str(error), (None, {})

"""How a page looks at its run again and again, and how often."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import streamlit as st
from streamlit.errors import StreamlitInvalidLayoutContextError
from streamlit.runtime.scriptrunner import get_script_run_ctx

from pages.parts import selection
from transformer.runs.calibration import speed
from transformer.runs.run import Run
from transformer.runs.view import IDLE, PAUSED, RunView

WORDS = ("word", "own_word", "asked_word", "word_problem")
"""What a typed word fills in, on any page that has a box for one."""
RHYTHM = ((2, 0.5), (6, 1.5), (math.inf, 1.8))
"""Seconds between two looks for up to so many pages: a class is shown less, and the training goes on."""
STAYS = 6.0
"""Seconds after its last look at which a page counts as closed."""
_looked: dict[str, float] = {}  # session to when it looked last


def refreshing(
    run: Run,
    seen: RunView,
    draw: Callable[[RunView], None],
    *,
    every: Callable[[RunView], float | None],
    fixed: Callable[[RunView], tuple[object, ...]] = lambda view: (),
    filled: Sequence[str] = WORDS,
) -> None:
    """The one fragment of a page that refreshes by itself.

    Streamlit keeps the places outside it, to which it writes, from the last full run of the page. Where that
    one was cut off (rarely, by a visitor who was faster), they are missing: the page is then run in full, and
    nobody sees an error.

    Args:
        seen: the look at the run that the whole page is drawn from.
        draw: draws all that moves, from one look at the run.
        every: seconds between two looks.
        fixed: what else the parts that do not refresh by themselves depend on.
        filled: keys of the widgets outside that the page itself may fill in. A browser that is behind
            refreshes with what stood in them before; here that is put right, as no refresh can change them.
    """
    standing = {key: st.session_state.get(key) for key in filled}

    def rest(view: RunView) -> tuple[object, ...]:
        playing = st.session_state.get("playing", False)
        following = selection.step() is None
        return view.state, every(view), len(view.moments), following, playing, *fixed(view)

    rest_seen = rest(seen)

    @st.fragment(run_every=every(seen))
    def look() -> None:
        for key, value in standing.items():
            if st.session_state.get(key) != value:
                st.session_state[key] = value
        view = run.view
        try:
            draw(view)
        except StreamlitInvalidLayoutContextError:
            st.rerun()
        if rest(view) != rest_seen:
            st.rerun()  # the buttons and the rhythm of this refresh belong to the whole page

    look()


def audience() -> int:
    """How many open pages of this server have looked at a run lately, this one among them."""
    now, context = time.monotonic(), get_script_run_ctx()
    _looked["" if context is None else context.session_id] = now
    for session, at in list(_looked.items()):
        if now - at > STAYS:
            _looked.pop(session, None)
    return len(_looked)


def _rhythm(n: int) -> float:
    return next(seconds for most, seconds in RHYTHM if n <= most)


def refresh_seconds(view: RunView, *, waiting: bool = False) -> float | None:
    """Seconds between two looks; None once nothing will move by itself.

    Args:
        waiting: a word that was typed has not been recorded yet.
    """
    rhythm = _rhythm(audience())
    if waiting or (view.active and (view.frame is None or (view.pace or 99.0) <= 5.0)):
        return 0.2 if rhythm == RHYTHM[0][1] else rhythm
    if view.active or (view.state == IDLE and speed() is None):  # the machine is being measured
        return rhythm
    return 2.0 if view.state == PAUSED else None  # someone else with the link may let it go on

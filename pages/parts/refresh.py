"""How a page looks at its run again and again, and how often."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import streamlit as st
from streamlit.errors import StreamlitInvalidLayoutContextError
from streamlit.runtime.scriptrunner import get_script_run_ctx

from pages.parts import selection
from transformer.recording.view import IDLE, PAUSED, QUEUED, TRAINING, RunView
from transformer.runs.calibration import speed
from transformer.runs.watched import Watched

WORDS = ("word", "own_word", "asked_word", "word_problem")
"""What a typed word fills in, on any page that has a box for one."""
FEW, ALONE, TOGETHER = 2, 1.0, 1.9
"""Up to so many pages look again after ALONE seconds, and a class after TOGETHER: at full speed the processor
belongs to the training."""
SOON, PACED, BUILDING = 0.2, 0.5, 0.4
"""Seconds for a few pages, where there is time: steps can be told apart or a word is waited for; the run has
a pace; the first page is painted."""
MOVING = {QUEUED, TRAINING}
STAYS = 6.0
"""Seconds after its last look at which a page counts as closed."""
_looked: dict[str, float] = {}  # session to when it looked last


def holding(filled: Sequence[str] = WORDS) -> Callable[[], None]:
    """Keep boxes that the page itself may fill in as they stand now, in the full run of the page.

    A browser that is behind asks for a part of the page with what stood in them before. The returned call,
    the first of every part that runs by itself, puts that right: no such part can change them.
    """
    standing = {key: st.session_state.get(key) for key in filled}

    def hold() -> None:
        for key, value in standing.items():
            if st.session_state.get(key) != value:
                st.session_state[key] = value

    return hold


def refreshing(
    run: Watched,
    seen: RunView,
    draw: Callable[[RunView], None],
    *,
    every: Callable[[RunView], float | None],
    fixed: Callable[[RunView], tuple[object, ...]] = lambda view: (),
    hold: Callable[[], None] | None = None,
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
        hold: of `holding`, where the page may fill in more than words.
    """
    hold = hold or holding()

    def rest(view: RunView) -> tuple[object, ...]:
        playing = st.session_state.get("playing", False)
        following = selection.step() is None
        listed = selection.known_states()
        return view.state, every(view), len(view.moments), following, playing, listed, *fixed(view)

    rest_seen = rest(seen)

    @st.fragment(run_every=every(seen))
    def look() -> None:
        hold()
        view = run.look()
        if rest(view) != rest_seen:
            # Buttons and rhythm belong to the whole page. It is run before anything is drawn: whoever reads
            # a new state finds the buttons that go with it.
            st.rerun()
        try:
            draw(view)
        except StreamlitInvalidLayoutContextError:
            st.rerun()

    look()


def audience() -> int:
    """How many open pages of this server have looked at a run lately, this one among them."""
    now, context = time.monotonic(), get_script_run_ctx()
    _looked["" if context is None else context.session_id] = now
    for session, at in list(_looked.items()):
        if now - at > STAYS:
            _looked.pop(session, None)
    return len(_looked)


def is_slow(view: RunView) -> bool:
    """Whether the pace lets every step be seen."""
    return view.pace is not None and view.pace <= 5.0


def refresh_seconds(view: RunView, *, waiting: bool = False) -> float | None:
    """Seconds between two looks; None once nothing will move by itself.

    Args:
        waiting: a word that was typed has not been recorded yet.
    """
    few = audience() <= FEW  # asked first: whoever looks is counted
    if waiting or (view.active and is_slow(view)):
        seconds = SOON
    elif view.active and view.frame is None:
        seconds = BUILDING
    elif view.active and view.pace is not None:
        seconds = PACED
    elif view.active or (view.state == IDLE and speed() is None):  # the machine is being measured
        seconds = ALONE
    else:
        # Another page may let it go on, or go to another step; or another run of the list moves.
        moving = view.state == PAUSED or selection.may_be_moved() or MOVING & {*selection.known_states()}
        return 2.0 if moving else None
    return seconds if few else TOGETHER

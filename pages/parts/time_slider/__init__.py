"""The one step control: a film scrubber that follows the run and never moves under a visitor's hand."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import streamlit as st

from pages.stream.files import loading

MOST = 600
"""Steps that are sent to the browser: more than it has pixels to tell apart, and a few kB a refresh."""
NEAR = 10
"""Frames on either side of the one shown that are sent whatever their number: the keys go to them."""


_HTML = """<div class="time-slider">
  <input type="range" role="slider" aria-label="Step" aria-valuemin="0" min="0" max="1" value="0">
  <div class="track"><div class="recorded"></div></div>
  <div class="pins"></div>
  <div class="bubble" aria-hidden="true"></div>
</div>
"""

_component = st.components.v2.component(
    "time_slider",
    html=_HTML,
    css=Path(__file__).with_name("time_slider.css").read_text(encoding="utf-8"),
    js=loading(Path(__file__).with_name("time_slider.js")),
)


def nearest(steps: Sequence[int], step: int) -> int:
    """The recorded step next to a number; the earlier one of two. There must be one."""
    place = bisect_left(steps, step)
    return min(steps[max(0, place - 1) : place + 1], key=lambda recorded: abs(recorded - step))


def thinned(steps: Sequence[int], at: int, moments: Iterable[int]) -> list[int]:
    """At most about MOST of the steps: every n-th, so that they stay the same while a run grows, and
    always the first, the last, the moments, the step shown and its neighbours."""
    if len(steps) <= MOST:
        return list(steps)
    place = bisect_left(steps, at)
    keep = {steps[0], steps[-1], *steps[max(0, place - NEAR) : place + NEAR + 1], *moments}
    every = -(-len(steps) // max(1, MOST - len(keep)))
    return sorted({*steps[::every], *(keep & {*steps})})


def time_slider(
    *,
    key: str,
    steps: Sequence[int],
    planned: int,
    at: int,
    live: bool,
    moments: Sequence[tuple[int, str]],
    on_move: Callable[[int], None],
) -> None:
    """Show the track of a run, from 0 to its planned end, with a handle at one step.

    It stands inside the refreshing fragment: while the visitor holds the handle, refreshes only extend the
    recorded part; otherwise the handle is where `at` says.

    Args:
        key: the element's key, the same from one refresh to the next.
        steps: the recorded steps, ascending.
        planned: the right end of the track.
        at: the step on the screen.
        live: the screen follows the run.
        moments: steps worth jumping to and what happened there; each is a pin above the track.
        on_move: called with a recorded step, before the rerun, when the visitor moves the handle.
    """

    def moved() -> None:
        step = st.session_state[key].moved  # whatever a visitor sends
        if steps and isinstance(step, int) and not isinstance(step, bool):
            on_move(nearest(steps, step))

    pins: dict[int, str] = {}
    for step, text in sorted(moments):
        pins[step] = f"{pins[step]}; {text}" if step in pins else text
    _component(
        key=key,
        height="content",
        data={
            "steps": tuple(thinned(steps, at, pins)),  # for lists Streamlit loads pandas
            "planned": planned,
            "at": at,
            "live": live,
            "moments": tuple(pins.items()),
        },
        on_moved_change=moved,
    )

"""The one step control: LIVE follows the run, REVIEW stands at one step, the past can be played as a film."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts import selection
from pages.parts.plain import plain
from pages.parts.time_slider import time_slider
from transformer.recording.view import ENDED, TRAINING, RunView

SPEEDS = {"2 frames/s": 2, "5 frames/s": 5, "10 frames/s": 10}


@dataclass(frozen=True)
class TimePlaces:
    """Where what moves of the step control stands."""

    slider: DeltaGenerator
    badge: DeltaGenerator


def time_control(view: RunView) -> TimePlaces:
    """Draw the buttons of the step control."""
    with st.container(key="time_control", horizontal=True, vertical_alignment="center", gap="xsmall"):
        playing = bool(st.session_state.get("playing"))
        st.button(
            "",
            key="time_play",
            icon=":material/pause_circle:" if playing else ":material/play_circle:",
            disabled=len(view.frames) < 2,
            on_click=_play,
            args=(view,),
        )
        speed = st.session_state.get("time_speed")  # put back, for another page draws another box
        st.session_state["time_speed"] = speed if speed in SPEEDS else list(SPEEDS)[1]
        st.selectbox(
            "Speed of the film",
            list(SPEEDS),
            key="time_speed",
            label_visibility="collapsed",
            width=118,
            persist_state="session",
            help="How fast the past is played. The training goes on at its own pace.",
        )
        slider = st.container(key="time_step", width="stretch")
        # As wide whatever it says: the slider beside it must not change under a hand that holds it.
        badge = st.container(key="time_badge", width=190)
        st.button(
            "LIVE",
            key="time_live",
            type="primary" if selection.step() is None else "secondary",
            icon=":material/sensors:",
            on_click=selection.look_at,
            args=(None,),
        )
        if selection.may_follow():
            st.session_state["follow"] = selection.follows()  # put back: another page draws another toggle
            st.toggle(
                "Follow",
                key="follow",
                persist_state="session",
                help="Stand where the run's owner stands. Go to a step of your own, and it is switched off.",
            )
        with st.popover(f"★ {len(view.moments)}", key="moments_list", disabled=not view.moments):
            moments(view)
    return TimePlaces(slider, badge)


def moments(view: RunView) -> None:
    """The moments of a run as buttons; each goes to its step."""
    with st.container(key="moments"):
        st.caption("Moments: steps worth jumping to, found by the app. They are pinned on the curves too.")
        for i, moment in enumerate(view.moments):
            st.button(
                f"step {moment.step:,} · {plain(moment.text)}",
                key=f"moment_{i}",
                type="tertiary",
                on_click=selection.look_at,
                args=(moment.step,),
            )


def seconds_between_frames() -> float | None:
    """How often the film moves on; None where it stands."""
    if not st.session_state.get("playing"):
        return None
    return 1.0 / SPEEDS.get(st.session_state.get("time_speed", ""), 5)


def draw_time(view: RunView, places: TimePlaces) -> None:
    """Move the film on where it is playing; show where the screen stands, and whether the run goes on."""
    if st.session_state.get("playing") and not st.session_state.pop("film_begins", False):
        _next_frame(view)
    _stand_still(view)
    frame = selection.shown_frame(view)
    at = selection.step()
    steps = view.frames.steps

    def moved(step: int) -> None:
        """The newest step is LIVE: who goes to the end wants to follow."""
        selection.look_at(None if step == steps[-1] else step)

    with places.slider:
        time_slider(
            key="time_step_slider",
            steps=steps,
            planned=max(1, view.step) if view.state in ENDED else max(view.planned, view.step),
            at=frame.step if frame else 0,
            live=at is None,
            moments=[(moment.step, moment.text) for moment in view.moments],
            on_move=moved,
        )
    with places.badge:
        if at is None:
            st.markdown(":red-badge[● LIVE]" if view.state == TRAINING else ":gray-badge[newest step]")
        else:
            goes_on = "training continues" if view.state == TRAINING else view.state
            shown, last = frame.step if frame else at, view.step if view.state in ENDED else view.planned
            st.markdown(f":blue-badge[REVIEW] step **{shown:,}** of {last:,}, {goes_on}")


def _play(view: RunView) -> None:
    """Play on from here, from the first frame where the screen stands at the last, or stop the film."""
    if st.session_state.get("playing"):
        st.session_state["playing"] = False
        return
    at, newest = selection.step(), view.frames.steps[-1]
    if at is None or at >= newest:
        at = view.frames.steps[0]
        st.session_state["film_begins"] = True  # with its first frame, not the second
    selection.look_at(at)  # also where that is no other step: who plays a film follows nobody
    st.session_state["playing"] = True


def _stand_still(view: RunView) -> None:
    """A step that is still to come is not waited for: the screen would move by itself until it is there."""
    at = selection.step()
    if at is not None and view.frame is not None and view.state not in ENDED and at > view.frame.step:
        selection.move_to(view.frame.step)


def _next_frame(view: RunView) -> None:
    """Where there is none, and where the owner's step is followed again, the film ends."""
    at = selection.step()
    later = [step for step in view.frames.steps if at is not None and step > at]
    if later and not selection.follows():
        selection.move_to(later[0])
    else:
        st.session_state["playing"] = False

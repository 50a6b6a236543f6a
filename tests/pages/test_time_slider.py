"""The step control's server half: what is sent to the browser, and what is made of what a visitor sends."""

from __future__ import annotations

import json
from typing import Any

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.testing.v1 import AppTest

from pages.parts.time_slider import MOST, NEAR, nearest, thinned

DENSE_THEN_SPARSE = [*range(100), *range(100, 2900, 2)]
"""1500 steps, as a long run records them."""


def shows(**given: Any) -> AppTest:
    """A page with nothing but the slider, which notes each step it is called with."""

    def page(given) -> None:
        import streamlit as st

        from pages.parts.time_slider import time_slider

        st.session_state.setdefault("moves", [])
        time_slider(key="step", on_move=st.session_state["moves"].append, **given)

    usual = {"steps": [0, 10, 20, 40], "planned": 100, "at": 40, "live": True, "moments": []}
    at = AppTest.from_function(page, args=(usual | given,), default_timeout=60).run()
    assert not at.exception
    return at


def sent(at: AppTest) -> dict[str, Any]:
    """What the browser is given."""
    (element,) = at.get("bidi_component")
    return json.loads(element.proto.json)


def moves(at: AppTest, value: Any, *, raw: bool = False) -> list[int]:
    """Send a step as the browser does, or anything as any client can; the steps that the page heard."""
    (element,) = at.get("bidi_component")
    text = value if raw else json.dumps([{"event": "moved", "value": value}])
    name = f"$$STREAMLIT_INTERNAL_KEY_{element.proto.id}__events"
    at._run(WidgetStates(widgets=[WidgetState(id=name, json_trigger_value=text)]))
    assert not at.exception
    return at.session_state["moves"]


@pytest.mark.parametrize("step", [0, 10, 20, 40])
def test_a_recorded_step_is_heard_as_it_is(step):
    assert moves(shows(), step) == [step]


@pytest.mark.parametrize(
    ("step", "recorded"), [(3, 0), (9, 10), (15, 10), (31, 40), (41, 40), (100, 40), (10**30, 40), (-7, 0)]
)
def test_a_step_that_was_not_recorded_becomes_the_nearest(step, recorded):
    assert moves(shows(), step) == [recorded]


@pytest.mark.parametrize("value", [None, True, False, 10.0, "10", "", [10], {"step": 10}, float("nan")])
def test_what_is_no_step_is_ignored(value):
    assert moves(shows(), value) == []


@pytest.mark.parametrize("text", ["{}", "[]", "10", "[10]", '[{"event": "other", "value": 10}]', "null"])
def test_a_message_of_another_shape_is_ignored(text):
    assert moves(shows(), text, raw=True) == []


def test_a_run_without_a_frame_has_nowhere_to_go():
    at = shows(steps=[], at=0)
    assert sent(at)["steps"] == []
    assert moves(at, 10) == []


def test_the_page_hears_of_a_move_before_it_is_drawn_again():
    def page() -> None:
        import streamlit as st

        from pages.parts.time_slider import time_slider

        shown = st.session_state.setdefault("shown", 40)
        time_slider(
            key="step",
            steps=[0, 10, 20, 40],
            planned=100,
            at=shown,
            live=False,
            moments=[],
            on_move=lambda step: st.session_state.update(shown=step, moves=[step]),
        )

    at = AppTest.from_function(page, default_timeout=60).run()
    assert moves(at, 10) == [10]
    assert sent(at)["at"] == 10


def test_the_browser_is_given_the_track_and_its_state():
    at = shows(at=20, live=False)
    assert sent(at) == {"steps": [0, 10, 20, 40], "planned": 100, "at": 20, "live": False, "moments": []}


def test_moments_are_sent_in_order_and_those_of_one_step_as_one_pin():
    moments = [(20, "head 2 woke"), (10, "loss fell"), (20, "head 3 woke")]
    assert sent(shows(moments=moments))["moments"] == [[10, "loss fell"], [20, "head 2 woke; head 3 woke"]]


def test_few_steps_are_all_sent():
    steps = list(range(0, MOST * 3, 3))
    assert thinned(steps, 30, []) == steps


@pytest.mark.parametrize("n", [MOST + 1, MOST * 2, 1500, 4000])
def test_of_many_steps_no_more_are_sent_than_the_browser_can_use(n):
    few = thinned(range(n), n // 2, range(1, n, n // 20))
    assert MOST / 2 <= len(few) <= MOST
    assert few == sorted(set(few))
    assert set(few) <= set(range(n))


@pytest.mark.parametrize("n", [601, 1203, 1499, 1500])
def test_the_first_the_last_the_moments_and_the_step_shown_are_never_thinned_away(n):
    steps = DENSE_THEN_SPARSE[:n]
    moments = [17, 19, 262, 303 * 2]
    few = thinned(steps, 502, moments)
    assert {steps[0], steps[-1], 502, *moments} <= set(few) <= set(steps)


def test_the_slider_itself_sends_the_thinned_steps():
    at = shows(steps=DENSE_THEN_SPARSE, at=1234, planned=3000, moments=[(17, "loss fell")])
    assert sent(at)["steps"] == thinned(DENSE_THEN_SPARSE, 1234, [17])
    assert moves(at, 19) == [19], "a step that was not sent was recorded all the same"


@pytest.mark.parametrize("place", [0, 3, 777, 1499])
def test_the_keys_find_every_neighbour_of_the_step_shown(place):
    steps = DENSE_THEN_SPARSE
    few = thinned(steps, steps[place], [])
    assert set(steps[max(0, place - NEAR) : place + NEAR + 1]) <= set(few)


def test_a_growing_run_keeps_the_steps_that_it_had_sent():
    before = set(thinned(range(900), 450, []))
    after = set(thinned(range(1000), 450, []))
    assert before - after <= {899}, "only the step that was the last may go"


def test_a_moment_that_was_never_recorded_is_no_step_to_stop_at():
    assert 2001 not in thinned(DENSE_THEN_SPARSE, 1234, [2001])


def test_of_two_steps_equally_near_the_earlier_is_taken():
    assert nearest([10, 20], 15) == 10


def test_little_is_sent_with_every_refresh():
    (element,) = shows().get("bidi_component")
    proto = element.proto
    assert len(proto.js_content.encode()) < 6000
    assert len(proto.css_content) + len(proto.html_content) < 3000
    assert "\n" in proto.js_content
    assert proto.js_content.count("`") % 2 == 0

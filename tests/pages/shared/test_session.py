"""The state of a session: entries with defaults, one inbox of requests, and values sent by components."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import streamlit as st

from pages.controls.words import remember_boxes
from pages.shared.session import request, sent_value, session, take_requests


@pytest.fixture(autouse=True)
def state(monkeypatch):
    """An empty session, and a link that names a step and a head."""
    state = {}
    monkeypatch.setattr(st, "session_state", state)
    monkeypatch.setattr(st, "query_params", {"step": "7", "head": "decoder.1.cross.3"})
    return state


def test_an_entry_starts_with_its_default_or_the_value_in_the_link_and_keeps_later_changes(state):
    assert (session.run, session.playing, state) == (None, False, {})
    assert (session.at_step, session.pinned) == (7, ("decoder.1.cross", 2))
    session.at_step = None
    assert session.at_step is None  # not the link's value again
    session.known_runs.append("a")
    assert session.known_runs == ["a"]
    assert state["known_runs"] == ["a"]


def test_requests_are_taken_once_and_the_newest_last(state):
    session.problem = "of the command before"
    for what, value in (("pause", None), ("add_word", "cat"), ("resume", None), ("pause", None)):
        request(what, value)
    assert session.problem is None
    assert [what for what, _ in take_requests("pause", "resume", "stop")] == ["resume", "pause"]
    assert list(take_requests("pause", "resume", "stop")) == []
    assert list(take_requests("add_word")) == [("add_word", "cat")]


def test_a_rerun_of_a_fragment_restores_the_word_box_and_keeps_the_press_of_a_button(state):
    """A browser that lags behind fills the word box again, and a button may be pressed meanwhile."""
    restore = remember_boxes()
    state["own_word"] = "typed before"
    request("pause")
    request("add_word", "typed before")
    restore()
    assert state["own_word"] is None
    assert list(take_requests("pause", "add_word")) == [("pause", None)]


def test_a_request_is_kept_if_the_script_is_interrupted_before_it_is_carried_out():
    request("pause")
    broken_off = take_requests("pause")
    assert next(broken_off) == ("pause", None)
    broken_off.close()
    assert list(take_requests("pause")) == [("pause", None)]
    assert list(take_requests("pause")) == []


def test_a_component_of_a_page_that_was_left_has_no_sent_value(state):
    state["player"] = SimpleNamespace(chosen={"step": 3})
    assert sent_value("player", "chosen") == {"step": 3}
    assert sent_value("player", "cell") is None
    assert sent_value("left", "chosen") is None

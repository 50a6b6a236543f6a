"""What a session remembers: entries with a beginning, one inbox, and what a component has sent."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import streamlit as st

from pages.controls.words import holding
from pages.shared.session import ask, sent_value, session, take


@pytest.fixture(autouse=True)
def state(monkeypatch):
    """A session of its own, and a link that names a step."""
    state = {}
    monkeypatch.setattr(st, "session_state", state)
    monkeypatch.setattr(st, "query_params", {"step": "7", "head": "decoder.1.cross.3"})
    return state


def test_an_entry_begins_with_its_default_or_with_what_the_link_says_and_is_then_its_own(state):
    assert (session.run, session.playing, state) == (None, False, {})
    assert (session.at_step, session.pinned) == (7, ("decoder.1.cross", 2))
    session.at_step = None
    assert session.at_step is None  # and not the link's once more
    session.known_runs.append("a")
    assert session.known_runs == ["a"]
    assert state["known_runs"] == ["a"]


def test_what_is_asked_is_taken_up_once_and_the_newest_last(state):
    session.problem = "of the command before"
    for what, value in (("pause", None), ("add_word", "cat"), ("resume", None), ("pause", None)):
        ask(what, value)
    assert session.problem is None
    assert [what for what, _ in take("pause", "resume", "stop")] == ["resume", "pause"]
    assert list(take("pause", "resume", "stop")) == []
    assert list(take("add_word")) == [("add_word", "cat")]


def test_a_part_of_a_page_that_runs_by_itself_keeps_boxes_and_takes_no_command_back(state):
    """A browser that is behind fills the word's box once more, and a button may be pressed meanwhile."""
    hold = holding()
    state["own_word"] = "typed before"
    ask("pause")
    ask("add_word", "typed before")
    hold()
    assert state["own_word"] is None
    assert list(take("pause", "add_word")) == [("pause", None)]


def test_what_is_asked_stays_asked_where_the_script_is_broken_off_before_it_was_done():
    ask("pause")
    broken_off = take("pause")
    assert next(broken_off) == ("pause", None)
    broken_off.close()
    assert list(take("pause")) == [("pause", None)]
    assert list(take("pause")) == []


def test_a_message_of_a_page_that_has_been_left_says_nothing(state):
    state["player"] = SimpleNamespace(chosen={"step": 3})
    assert sent_value("player", "chosen") == {"step": 3}
    assert sent_value("player", "cell") is None
    assert sent_value("left", "chosen") is None

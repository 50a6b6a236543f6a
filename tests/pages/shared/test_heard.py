"""What a component has sent, and what comes too late."""

from __future__ import annotations

from types import SimpleNamespace

import streamlit as st

from pages.shared.heard import heard


def test_a_message_of_a_page_that_has_been_left_says_nothing(monkeypatch):
    monkeypatch.setattr(st, "session_state", {"player": SimpleNamespace(chosen={"step": 3})})
    assert heard("player", "chosen") == {"step": 3}
    assert heard("player", "cell") is None
    assert heard("left", "chosen") is None

"""The tokens of a visitor's own runs: in the session, and in the browser, where they outlive it."""

from __future__ import annotations

import streamlit as st

from pages.shared.heard import heard
from pages.stream.files import loading
from transformer.runs.owners import Visitor
from transformer.runs.registry import REGISTRY
from transformer.storage.brought import Brought
from transformer.storage.tokens import new_token

__all__ = ["hold", "keyring", "new_token", "own_runs", "token_of", "tokens", "visitor"]

_KEY = "keyring"
MOST = 50
"""Runs that a browser tells of; a visitor can send any number."""

_component = st.components.v2.component(_KEY, js=loading("keyring"))


def tokens() -> dict[str, str]:
    """Id to token of the runs that this session may command; the oldest first."""
    held: dict[str, str] = st.session_state.setdefault("tokens", {})
    return held


def own_runs() -> dict[str, str]:
    """The same without the model that nobody has started yet: that one is no run."""
    return {id_: token for id_, token in tokens().items() if id_ != st.session_state.get("draft")}


def token_of(id_: str) -> str:
    """The token of a run; empty where there is none."""
    return tokens().get(id_, "")


def _visitor() -> Visitor:
    if "visitor" not in st.session_state:
        st.session_state["visitor"] = Visitor()
    return st.session_state["visitor"]


def visitor() -> str:
    """This session, whose runs are counted together."""
    return _visitor().name


def hold(id_: str, token: str) -> bool:
    """Take a token, if it is one; returns whether the session may command that run now."""
    if REGISTRY.owners.enter(id_, token, _visitor()):
        tokens()[id_] = token
    return id_ in tokens()


def remember(brought: Brought) -> None:
    """Let the browser find again what the visitor brought."""
    st.session_state["brought_name"] = REGISTRY.returning.keep(
        brought, st.session_state.get("brought_name", "")
    )


def keyring() -> None:
    """Let the browser keep the session's tokens, and tell those that it has kept before.

    The last thing of a page: what the browser tells runs it again, and whatever comes after would be cut off.
    """
    with st.sidebar:
        _component(
            key=_KEY,
            height="content",
            data=(
                tuple(own_runs().items()),
                st.session_state.get("brought_name", ""),
                st.session_state.get("keys_told", False),
            ),
            on_found_change=_found,
        )


def _found() -> None:
    st.session_state["keys_told"] = True
    match heard(_KEY, "found"):
        case [list(runs), str(name)]:
            for one in runs[:MOST][::-1]:
                match one:
                    case [str(id_), str(token), *_]:
                        hold(id_, token)
            if "brought" not in st.session_state and (found := REGISTRY.returning.get(name)) is not None:
                st.session_state["brought"], st.session_state["brought_name"] = found, name

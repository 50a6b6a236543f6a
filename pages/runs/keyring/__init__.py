"""The tokens of a visitor's own runs: in the session, and in the browser, where they outlive the session."""

from __future__ import annotations

import streamlit as st

from pages.shared.session import DRAFTS, sent_value, session
from pages.stream.files import loading
from transformer.runs.registry import REGISTRY
from transformer.storage.own_data import OwnData

_KEY = "keyring"
MAX_RUNS = 500
"""Most runs that are accepted from a browser; a visitor can send any number."""

_component = st.components.v2.component(_KEY, js=loading("keyring"))


def own_runs() -> dict[str, str]:
    """The token of each of the visitor's runs, by id; the drafts of the session are left out."""
    drafts = [getattr(session, entry) for entry in DRAFTS]
    return {id_: token for id_, token in session.tokens.items() if id_ not in drafts}


def token_of(id_: str) -> str:
    """The token of a run; empty if this session does not have it."""
    return session.tokens.get(id_, "")


def accept_token(id_: str, token: str) -> bool:
    """Accept a token if it is valid; return whether the session has a valid token of the run."""
    if REGISTRY.owners.enter(id_, token, session.visitor):
        session.tokens[id_] = token
    return id_ in session.tokens


def remember(own_data: OwnData) -> None:
    """Keep what the visitor uploaded, under a name that the browser stores."""
    session.own_data_name = REGISTRY.uploads.keep(own_data, session.own_data_name)


def keyring() -> None:
    """Have the browser store the session's tokens, and receive those that it stored before.

    Call this at the end of a page: an answer of the browser reruns the page, which would interrupt any code
    that follows.
    """
    with st.sidebar:
        _component(
            key=_KEY,
            height="content",
            data=(tuple(own_runs().items()), session.own_data_name, session.keys_told, _draft()),
            on_found_change=_found,
        )


def _draft() -> tuple[str, str] | None:
    """Id and token of the draft of the settings; None if there is none."""
    id_ = session.draft
    return (id_, session.tokens[id_]) if id_ in session.tokens else None


def _found() -> None:
    session.keys_told = True
    match sent_value(_KEY, "found"):
        case [list(runs), str(name), *draft]:
            match draft:
                case [[str(id_), str(token)]] if REGISTRY.facts_of_run(id_) is not None:
                    # The model was started, and the page reloaded before the browser stored the run's token.
                    if accept_token(id_, token) and session.run is None:
                        session.run = id_
            for run in runs[:MAX_RUNS][::-1]:
                match run:
                    case [str(id_), str(token), *_]:
                        accept_token(id_, token)
            if session.own_data is None and (pairs := REGISTRY.uploads.get(name)) is not None:
                session.own_data, session.own_data_name = pairs, name

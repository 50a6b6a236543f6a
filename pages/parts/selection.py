"""Which run a visitor looks at: kept in the link and across pages, and found again after a reload."""

from __future__ import annotations

import streamlit as st

from transformer.config import RunConfig
from transformer.runs.registry import REGISTRY
from transformer.runs.run import Run

READY_SECONDS = 1.5
"""A new model is on the screen within this time at most; a large one comes later by itself."""


def chosen_run() -> Run | None:
    """The run that the link or this session names, if it is still there; puts it back into the link."""
    asked = st.query_params.get("run") or st.session_state.get("run")
    run = REGISTRY.get(asked)
    if asked and run is None:
        st.session_state["lost_run"] = True
        st.query_params.pop("run", None)
        st.session_state.pop("run", None)
        return None
    if run is not None:
        choose(run)
    return run


def choose(run: Run) -> None:
    """Look at this run from now on."""
    known: list[str] = st.session_state.setdefault("known_runs", [])
    if run.id not in known:
        known.append(run.id)
    st.session_state["run"] = run.id
    st.session_state.pop("lost_run", None)
    if st.query_params.get("run") != run.id:
        st.query_params["run"] = run.id


def draft(config: RunConfig | None, *, keep: bool = False) -> Run | None:
    """The untrained model of the present settings, made anew when they change; its words are kept.

    Args:
        config: None where the settings cannot be used: then the model that is there stays.
        keep: whether any model that is there will do.
    """
    old = REGISTRY.get(st.session_state.get("draft"))
    if config is None or (old is not None and (keep or old.config == config)):
        return old
    if old is not None:
        REGISTRY.discard(old)
    run = new_draft(config, old)
    st.session_state["draft"] = run.id
    return run


def new_draft(config: RunConfig, old: Run | None) -> Run:
    """An untrained model with the words of the run that it replaces, as far as they may be asked."""
    if old is None:
        return REGISTRY.draft(config)
    words = tuple(q.text for q in old.questions if len(q.text) <= 2 * config.train.max_letters)
    run = REGISTRY.draft(config, words or None)
    run.ready.wait(READY_SECONDS)  # torch is loaded, so this is soon; meanwhile the pictures keep their place
    return run


def known_runs(run: Run | None) -> list[Run]:
    """Runs that this visitor has started, opened, or that the present one grew out of; newest first.

    Other visitors' runs are not listed: a run is known by its link.
    """
    ids: list[str] = st.session_state.setdefault("known_runs", [])
    ancestor = run
    while ancestor is not None and ancestor.view.after:
        ancestor = REGISTRY.get(ancestor.view.after)
        if ancestor is not None and ancestor.id not in ids:
            ids.insert(0, ancestor.id)
    return [found for id_ in reversed(ids) if (found := REGISTRY.get(id_)) is not None]

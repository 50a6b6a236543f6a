"""Links to give away: this run, or these settings."""

from __future__ import annotations

from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st

from pages.parts import keyring, selection
from pages.parts.beginnings import base_of, values_of
from pages.parts.presets import DEFAULT_PRESET, PRESETS
from transformer.config import RunConfig
from transformer.recording.view import IDLE
from transformer.runs.registry import REGISTRY
from transformer.runs.watched import Watched

ALONE = ("localhost", "127.0.0.1", "::1")
"""How a machine calls itself."""


def share(run: Watched, config: RunConfig) -> None:
    """Draw both links in the sidebar.

    Args:
        config: the settings as they are now.
    """
    begun = values_of(base_of(config))  # the page that opens the link fills in the same
    query = {key: str(value) for key, value in values_of(config).items() if value != begun[key]}
    own = values_of(PRESETS[DEFAULT_PRESET].config)
    named = ("recipe", "topology", "as_published")
    query |= {key: str(begun[key]).lower() for key in named if begun[key] != own[key]}
    if config.recipe in PRESETS:
        query["preset"] = config.recipe
    with st.sidebar, st.popover("Share a link", icon=":material/share:", width="stretch"):
        if REGISTRY.get(run.id) is not None and run.view.state != IDLE:
            st.markdown("This run, as it trains. Who opens it watches, and cannot change it:")
            with st.container(key="run_link"):
                st.code(_link({"run": run.id} | _beside(run)), language=None, wrap_lines=True)
            if selection.owns(run):
                st.markdown("The same with command over it, for another device of **your own**:")
                with st.container(key="owner_link"):
                    owner = {"run": run.id, "owner": keyring.token_of(run.id)}
                    st.code(_link(owner), language=None, wrap_lines=True)
            if urlsplit(st.context.url or "").hostname in ALONE:
                st.caption(
                    "This address leads there on this machine only. For other devices, open the page by the "
                    "machine's name in the network; the README says how to start the app for that."
                )
        st.markdown("These settings, ready to start:")
        st.code(_link(query), language=None, wrap_lines=True)


def _beside(run: Watched) -> dict[str, str]:
    """Ask the owner whether the link shows the runs before this one too, as far as they are theirs."""
    parents = [parent.id for parent in selection.parents(run.view) if keyring.token_of(parent.id)]
    if not parents or not st.toggle(
        f"With the {len(parents)} runs before it" if len(parents) > 1 else "With the run before it",
        key="share_parents",
        persist_state="session",
        help="Off: the link opens this run and no other. On: also those that it was started from, with their "
        "words and curves.",
    ):
        return {}
    return {selection.BESIDE: ",".join(parents[: selection.MOST_BESIDE])}


def _link(query: dict[str, str]) -> str:
    scheme, host, path, *_ = urlsplit(st.context.url or "")
    if path.strip("/") == st.get_option("server.baseUrlPath").strip("/"):
        path = f"{path.rstrip('/')}/"  # Streamlit leaves it out, and a proxy may hand on only what is below
    return urlunsplit((scheme, host, path, urlencode(query), ""))

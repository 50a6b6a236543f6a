"""Links to share: to this run, or to these settings."""

from __future__ import annotations

import html
from collections.abc import Sequence
from urllib.parse import urlencode, urlsplit, urlunsplit

import segno
import streamlit as st

from pages.runs import keyring
from pages.runs.known import parents
from pages.settings.beginnings import base_of, values_of
from pages.settings.presets import DEFAULT_PRESET, PRESETS
from pages.shared import ownership, selection
from pages.shared.session import joined
from transformer.config import RunConfig
from transformer.recording.view import IDLE
from transformer.runs.any_run import AnyRun
from transformer.runs.registry import REGISTRY

ALONE = ("localhost", "127.0.0.1", "::1")
"""Names by which a machine refers to itself."""


def share(run: AnyRun, config: RunConfig | None, *, race: Sequence[AnyRun] = ()) -> None:
    """Draw the links to this run, once it was started, and to these settings, in the sidebar.

    Args:
        config: the current settings; None for a race and for an own model.
        race: the other runs of a race; one link opens all runs.
    """
    begun = REGISTRY.get(run.id) is not None and run.view.state != IDLE
    with st.sidebar, st.popover("Share a link", icon=":material/share:", width="stretch"):
        if begun:
            st.markdown(f"**This {'race' if race else 'run'}, live.** Viewers cannot change it:")
            others = joined([one.id for one in race])
            address = link({"run": run.id} | ({"race": others} if others else _beside(run)))
            host = urlsplit(st.context.url or "").hostname
            with st.container(key="run_link"):
                if host and host not in ALONE:
                    st.html(_code(address))
                st.code(address, language=None, wrap_lines=True)
            if host in ALONE:
                st.caption(
                    "This address works on this machine only. For other devices, open the page by the "
                    "machine's name in the network (see docs/serving.md)."
                )
        if config is None:
            return
        st.markdown("**These settings**, ready to start:")
        st.code(link(_settings(config)), language=None, wrap_lines=True)
        if begun and ownership.owns(run):
            _owner_link(run)


def _settings(config: RunConfig) -> dict[str, str]:
    """The link parameters of the preset or recipe, and of the settings that differ from it."""
    begun = values_of(base_of(config))  # the page that opens the link starts from the same settings
    query = {key: str(value) for key, value in values_of(config).items() if value != begun[key]}
    own = values_of(PRESETS[DEFAULT_PRESET].config)
    named = ("recipe", "topology", "as_published")
    query |= {key: str(begun[key]).lower() for key in named if begun[key] != own[key]}
    if config.recipe in PRESETS:
        query["preset"] = config.recipe
    return query


def _owner_link(run: AnyRun) -> None:
    """Draw the owner's link only after a press of its button, and only until the page is next drawn, since
    the screen may be on a projector."""
    if not st.button("Show the owner's link", key="owner_show", icon=":material/key:"):
        return
    st.markdown("For **your own** devices: anyone with this link can stop and change the run.")
    with st.container(key="owner_link"):
        owner = {"run": run.id, "owner": keyring.token_of(run.id)}
        st.code(link(owner), language=None, wrap_lines=True)


def _code(link: str) -> str:
    """A link as a QR code in HTML, black on white in any theme, large enough for a phone in the last row."""
    picture = segno.make(link, error="m").svg_data_uri(scale=8, border=4, light="white")
    return f"<img class='hl-code' alt='QR code of the link below' src='{html.escape(picture)}'>"


def _beside(run: AnyRun) -> dict[str, str]:
    """Draw a switch that adds this visitor's runs before this one to the link, if there are any.

    Returns:
        Their link parameter; empty if the switch is off.
    """
    own = [parent.id for parent in parents(run.view) if keyring.token_of(parent.id)][: selection.MOST_BESIDE]
    if not own or not st.toggle(
        f"With the {len(own)} runs before it" if len(own) > 1 else "With the run before it",
        key="share_parents",
        persist_state="session",
        help="Off: the link opens this run only. On: also the runs that it was started from, with their "
        "words and curves.",
    ):
        return {}
    return {selection.BESIDE: ",".join(own)}


def link(query: dict[str, str]) -> str:
    """The address of the page on the screen, with this query in place of its own."""
    scheme, host, path, *_ = urlsplit(st.context.url or "")
    if path.strip("/") == st.get_option("server.baseUrlPath").strip("/"):
        path = f"{path.rstrip('/')}/"  # Streamlit omits this slash; a proxy may forward only paths with it
    return urlunsplit((scheme, host, path, urlencode(query), ""))

"""Access: open to all, unless the server or a proxy in front of it requires a login."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st


def login() -> None:
    """If the server requires a login, show only that until the visitor has logged in, then their name.

    An `[auth]` section of the secrets file asks for login by OpenID Connect; `server.trustedUserHeaders`
    names headers in which a proxy passes on the visitor's name. If one of these is missing or empty, an error
    is shown and nothing else.
    """
    is_logged_in = st.user.get("is_logged_in")  # None without [auth]
    headers = list((st.get_option("server.trustedUserHeaders") or {}).values())
    if is_logged_in is False:
        _offer()
        st.stop()
    if not all(st.user.get(name) for name in headers):
        st.error("This server is only available through its proxy. Open the address of the proxy.")
        st.stop()
    if is_logged_in or headers:
        _who(
            next((str(st.user[name]) for name in (*headers, "name", "email") if name in st.user), "somebody")
        )


def _offer() -> None:
    """Draw a button for each provider that the secrets file names, or one for a single unnamed provider."""
    st.title("Headlight")
    st.markdown("Log in to use this server.")
    section = st.secrets["auth"]
    named = [name for name, value in section.items() if isinstance(value, Mapping) and "client_id" in value]
    for name in named or [None]:
        st.button(
            f"Log in with {name}" if name else "Log in",
            key=f"log_in_{name}" if name else "log_in",
            type="primary",
            on_click=st.login,
            args=(name,),
        )
    st.caption("If you followed a link, open it again after logging in.")


def _who(name: str) -> None:
    with st.sidebar, st.container(key="who", horizontal=True, vertical_alignment="center"):
        st.text(f"Logged in as {name}", width="content")
        if "is_logged_in" in st.user:
            st.button("Log out", key="log_out", on_click=st.logout)

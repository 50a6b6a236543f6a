"""What a component of a page has sent."""

from __future__ import annotations

import streamlit as st


def heard(key: str, name: str) -> object:
    """What a component has sent under a name, whatever a visitor sends; None where nothing stands.

    A message may arrive after its page has been left: its callback runs, but the key is unknown by then.
    """
    return getattr(st.session_state.get(key), name, None)

"""The widgets of the caps: which of the user's pairs are kept, in which direction and spelling."""

from __future__ import annotations

import streamlit as st

from pages.shared.plain import show_error
from transformer.errors import InputError
from transformer.tasks.pairs.caps import Caps

KEYS = {
    "swap": "pairs_swap",
    "lower": "pairs_lower",
    "longest_source": "pairs_longest_source",
    "longest_target": "pairs_longest_target",
    "min_frequency": "pairs_min_frequency",
    "most_pairs": "pairs_most",
}
"""Maps each cap to the key of its widget."""
_TOGGLES = {
    "swap": ("Swap the direction", "Learn from the second side to the first."),
    "lower": (
        "Lower case",
        "Ignore capitals: fewer different words, which are learned sooner.",
    ),
}
_NUMBERS = {
    "longest_source": (
        "Longest source",
        "In words and punctuation marks, or in characters if the side is read in those. Empty: no limit.",
    ),
    "longest_target": (
        "Longest target",
        "In words and punctuation marks, or in characters if the side is read in those. Empty: no limit.",
    ),
    "min_frequency": (
        "Each word at least",
        "Keep pairs whose words or characters all occur this often. What occurs once cannot be learned.",
    ),
    "most_pairs": ("Most pairs", "Keep a random part, with frequent words preferred. Empty: all."),
}
"""Labels and help texts."""


def put_caps(caps: Caps) -> None:
    """Put caps into the widgets; call this before drawing the widgets."""
    st.session_state.update({key: getattr(caps, name) for name, key in KEYS.items()})


def chosen_caps() -> Caps | None:
    """Draw the widgets; return the caps, or show an error and return None if a value is invalid."""
    values = {}
    for name, key in KEYS.items():
        st.session_state.setdefault(key, getattr(Caps(), name))
    with st.container(horizontal=True, gap="medium"):
        for name, (label, text) in _TOGGLES.items():
            values[name] = st.toggle(label, key=KEYS[name], persist_state="session", help=text)
    columns = st.columns([1, 1, 1, 1.3], gap="small")
    for column, (name, (label, text)) in zip(columns, _NUMBERS.items(), strict=True):
        # No limits in the widget: `Caps` checks every value that is sent, and its error states the limits.
        values[name] = column.number_input(
            label,
            step=500 if name == "most_pairs" else 1,
            value=None,
            placeholder="no limit",
            key=KEYS[name],
            persist_state="session",
            help=f"{text} At least 1.",
        )
    try:
        return Caps(**values)
    except InputError as error:
        show_error(error)
        return None

"""How much of a person's pairs is kept: caps that a small model can learn, and their widgets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import streamlit as st

from pages.shared.plain import refuse
from transformer.errors import InputError
from transformer.tasks.pairs.caps import Caps, capped
from transformer.tasks.pairs.reading import Reading

LENGTHS = ((8, 12), (16, 24), (None, None))
"""Longest source and target: short sentences first, which are learned in minutes."""
FREQUENCIES = (5, 3, 2, 1)
"""Rare words cannot be learned, so the more often each occurs, the better."""
ENOUGH, LEAST_SHARE = 2_000, 0.4
"""Pairs that should remain, or of a small file this share."""
MOST_PAIRS = 5_000
LOOKED_AT = 20_000
"""Pairs of a large file from which its caps are told."""
KEYS = {
    "swap": "pairs_swap",
    "lower": "pairs_lower",
    "longest_source": "pairs_longest_source",
    "longest_target": "pairs_longest_target",
    "min_frequency": "pairs_min_frequency",
    "most_pairs": "pairs_most",
}
"""Of the caps, the keys of their widgets."""


def suggested(reading: Reading) -> Caps:
    """The strictest caps that leave enough to learn from; of a small file they leave most of it."""
    every = reading.pairs[:: -(-len(reading.pairs) // LOOKED_AT)]
    some = replace(reading, pairs=every)
    enough = min(ENOUGH, LEAST_SHARE * len(every))
    for (source, target), often in product(LENGTHS, FREQUENCIES):
        caps = Caps(longest_source=source, longest_target=target, min_frequency=often)
        if len(capped(some, caps).pairs) >= enough:
            break
    return replace(caps, most_pairs=MOST_PAIRS)


def put_caps(caps: Caps) -> None:
    """Show these in the widgets; call it before they are drawn."""
    st.session_state.update({key: getattr(caps, name) for name, key in KEYS.items()})


def caps_widgets() -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw the widgets; returns what they say, and where a message about each goes, by the caps' names."""
    values: dict[str, Any] = {}
    boxes: dict[str, Any] = {}
    for name, key in KEYS.items():
        st.session_state.setdefault(key, getattr(Caps(), name))
    with st.container(horizontal=True, gap="medium"):
        values["swap"] = st.toggle(
            "Swap the direction",
            key=KEYS["swap"],
            persist_state="session",
            help="Learn from the second side to the first.",
        )
        values["lower"] = st.toggle(
            "Lower case",
            key=KEYS["lower"],
            persist_state="session",
            help="Whether capitals are of no account: fewer different words, which are learned sooner.",
        )
    for column, name in zip(st.columns([1, 1, 1, 1.3], gap="small"), list(KEYS)[2:], strict=True):
        with column:
            values[name] = _number(name)
    for name in values:
        boxes[name] = st.container()
    return values, boxes


_LABELS = {
    "longest_source": (
        "Longest source",
        "Words and signs of a sentence. Longer ones are left out; empty: none.",
    ),
    "longest_target": (
        "Longest target",
        "Words and signs of a translation. Longer ones are left out; empty: none.",
    ),
    "min_frequency": (
        "Each word at least",
        "Pairs are kept of which every word occurs so many times. A word that occurs once cannot be learned.",
    ),
    "most_pairs": ("Most pairs", "Of those that are left some by chance, of frequent words; empty: all."),
}


def _number(name: str) -> int | None:
    # No limits in the widget: they are said by the caps, in words, to any value that is sent.
    label, text = _LABELS[name]
    return st.number_input(
        label,
        step=500 if name == "most_pairs" else 1,
        value=None,
        placeholder="no limit",
        key=KEYS[name],
        persist_state="session",
        help=f"{text} At least 1.",
    )


def checked(values: dict[str, Any], boxes: dict[str, Callable[..., Any]]) -> Caps | None:
    """The caps that widgets say; None where they cannot be, and a message stands beside the widget."""
    try:
        return Caps(**values)
    except InputError as error:
        with boxes[error.field or "most_pairs"]:  # type: ignore[attr-defined]
            refuse(error)
        return None

"""Which layers and heads the strip shows, where there are more than fit: chosen, never squeezed."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

MAX_LAYERS = 4
MAX_HEADS = 8


def tile_choice(n_layers: int, n_heads: int) -> None:
    """Offer the groups of layers and heads, where there is more than one."""
    for name, count, most in (("layers", n_layers, MAX_LAYERS), ("heads", n_heads, MAX_HEADS)):
        if count > most:
            st.segmented_control(
                f"Show {name}",
                list(range(-(-count // most))),
                default=-(-count // most) - 1 if name == "layers" else 0,
                required=True,
                key=f"shown_{name}",
                format_func=lambda i, c=count, m=most: f"{i * m + 1}–{min(c, (i + 1) * m)}",
                persist_state="session",
                help=f"{count} {name} do not fit on one screen; choose which to see.",
            )


def chosen_tiles(sites: Sequence[str], n_heads: int) -> tuple[list[str], list[int]]:
    """The sites and heads of the chosen groups."""
    layers = _group(len(sites), MAX_LAYERS, "shown_layers")
    heads = _group(n_heads, MAX_HEADS, "shown_heads")
    return [sites[i] for i in layers], heads


def _group(count: int, most: int, key: str) -> list[int]:
    groups = -(-count // most)
    last = groups - 1 if key == "shown_layers" else 0  # the last layers are the ones that turn
    chosen = st.session_state.get(key, last) if groups > 1 else 0
    chosen = chosen if isinstance(chosen, int) and 0 <= chosen < groups else last
    return list(range(chosen * most, min(count, (chosen + 1) * most)))

"""Which layers and heads the strip shows, where there are more than fit: chosen, never squeezed."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

MAX_LAYERS = 4
MAX_TILES = 16


def _most(n_layers: int) -> dict[str, int]:
    """How many layers and heads fit beside one another."""
    return {"layers": MAX_LAYERS, "heads": min(8, MAX_TILES // min(n_layers, MAX_LAYERS))}


def tile_choice(n_layers: int, n_heads: int) -> None:
    """Offer the groups of layers and heads, where there is more than one."""
    for name, count in (("layers", n_layers), ("heads", n_heads)):
        most = _most(n_layers)[name]
        groups = -(-count // most)
        if groups > 1:
            st.segmented_control(
                f"Show {name}",
                list(range(groups)),
                default=groups - 1 if name == "layers" else 0,  # the last layers are the ones that turn
                required=True,
                key=f"shown_{name}",
                format_func=lambda i, c=count, m=most: f"{i * m + 1}–{min(c, (i + 1) * m)}",
                persist_state="session",
                help=f"{count} {name} do not fit on one screen; choose which to see.",
            )


def n_choices(n_layers: int, n_heads: int) -> int:
    """How many choices of groups there are."""
    most = _most(n_layers)
    return (n_layers > most["layers"]) + (n_heads > most["heads"])


def chosen_tiles(sites: Sequence[str], n_heads: int) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The sites and heads of the chosen groups."""
    most = _most(len(sites))
    layers = _group(len(sites), most["layers"], st.session_state.get("shown_layers"), last=True)
    heads = _group(n_heads, most["heads"], st.session_state.get("shown_heads"), last=False)
    return tuple(sites[i] for i in layers), heads


def _group(count: int, most: int, chosen: object, *, last: bool) -> tuple[int, ...]:
    """The members of the chosen group; of the last or the first where none is chosen that exists."""
    groups = -(-count // most)
    if not isinstance(chosen, int) or not 0 <= chosen < groups:
        chosen = groups - 1 if last else 0
    return tuple(range(chosen * most, min(count, (chosen + 1) * most)))

"""What moves on the Watch page: the large map, the strip of all heads, the curves and the outputs."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.live_figure import live_figure
from pages.parts.pictures import curves_picture, large_picture, sites_of, strip_picture
from pages.parts.tiles import chosen_tiles, n_choices
from pages.parts.wording import by_length, outputs
from transformer.figures.maps import tile_at
from transformer.runs.registry import REGISTRY
from transformer.runs.view import Frame, RunView

# What stands above the pictures leaves this much of the window to them; type grows with it.
TALL = "max(370px, calc(100vh - 355px))"
CURVES_TALL = "max(190px, calc(100vh - 550px))"
MESSAGE_FRAMES = 4
"""At a slow pace a message carries this many steps, so that one that comes late loses none."""


@dataclass(frozen=True)
class Choice:
    """What the visitor looks at."""

    word: str
    kind: str
    """cross, encoder or decoder."""
    outline: bool
    """Whether the mirrored letters are marked."""


@dataclass(frozen=True)
class Places:
    """Where the pictures stand. A fragment may write only where it wrote in the last full run, so it always
    writes to all of them."""

    large: DeltaGenerator
    strip: DeltaGenerator
    curves: DeltaGenerator


def draw(view: RunView, choice: Choice, places: Places) -> None:
    """Show the newest frame of a run, or that there is none yet."""
    frame = view.frame
    if frame is None:
        for place in (places.large, places.strip, places.curves):
            place.skeleton(height=380)
        return
    frames = _frames_to_draw(view)
    sites = sites_of(frame, choice.kind)
    shown_sites, shown_heads = chosen_tiles(sites, view.config.model.n_heads)
    site, head = _large_head(frame, sites)
    name = f"headlight-{choice.word}-seed{view.config.seed}"
    with places.large, st.container(key="live_map"):
        live_figure(
            [
                large_picture(frame, choice.word, site, head, view.config.seed, choice.outline)
                for frame in frames
            ],
            key="live_map_figure",
            height=TALL,
            file_name=f"{name}-{site}-head{head + 1}",
        )
    with places.strip, st.container(key="live_maps"):
        live_figure(
            [strip_picture(frame, choice.word, shown_sites, shown_heads, (site, head)) for frame in frames],
            key="live_maps_figure",
            height=_strip_height(len(sites), view.config.model.n_heads),
            file_name=f"{name}-{choice.kind}",
            on_click=lambda trace: _pin(trace, shown_sites, shown_heads),
        )
    with places.curves:
        before = REGISTRY.get(view.after)
        with st.container(key="live_curves"):
            live_figure(
                [curves_picture(view, before.view if before else None)],
                key="live_curves_figure",
                height=CURVES_TALL,
                file_name=f"{name}-curves",
            )
        with st.container(key="live_outputs"):
            st.caption("Written by the model alone:")
            st.html(outputs(frame, choice.word) + by_length(view))


def _strip_height(n_layers: int, n_heads: int) -> str:
    """As tall as the large map, less what stands above the strip: the kinds, and groups to choose from."""
    above = 38 + 68 * n_choices(n_layers, n_heads)
    return f"max({370 - above}px, calc(100vh - {355 + above}px))"


def _frames_to_draw(view: RunView) -> list[Frame]:
    """The newest frame, and before it those of the steps just taken."""
    newest = list(view.frames[-MESSAGE_FRAMES:])
    while len(newest) > 1 and newest[0].step + 1 != newest[1].step:
        newest.pop(0)
    return newest


def _large_head(frame: Frame, sites: list[str]) -> tuple[str, int]:
    """The pinned head, or the one with the clearest pattern."""
    pinned = st.session_state.get("pinned")
    if pinned and pinned[0] in sites and pinned[1] < frame.maps[pinned[0]].shape[1]:
        return pinned
    return frame.clearest if frame.clearest[0] in sites else (sites[-1], 0)


def _pin(trace: int, sites: list[str], heads: list[int]) -> None:
    """A click on a small map shows it large and keeps it there; a second click lets go."""
    layer, head = tile_at(trace % (len(sites) * len(heads)), len(sites))
    chosen = sites[layer], heads[head]
    st.session_state["pinned"] = None if st.session_state.get("pinned") == chosen else chosen

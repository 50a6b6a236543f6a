"""What moves on the Watch page: the large map, the strip of all heads, the curves and the outputs."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts import selection
from pages.parts.live_figure import Kept, live_figure
from pages.parts.look_inside import look_at_cell
from pages.parts.pictures import (
    curves_picture,
    large_picture,
    narration,
    score_picture,
    sites_of,
    strip_picture,
)
from pages.parts.plain import plain
from pages.parts.refresh import is_slow
from pages.parts.tiles import chosen_tiles, n_choices
from pages.parts.wording import by_length, outputs, samples
from transformer.figures.curves import PINS
from transformer.figures.maps import tile_at
from transformer.recording.frame import Frame, reading_sites
from transformer.recording.view import RunView
from transformer.runs.registry import REGISTRY

# What stands above the pictures leaves this much of the window to them; type grows with it.
TALL = "max(330px, calc(100vh - 390px))"
CURVES_TALL = "max(200px, calc(100vh - 530px))"
MASS = {
    "mirror": "Attention mass on the mirrored letters",
    "gold": "Attention mass on the gold links",
    "focus": "Highest weight of a row",
}
"""What the curves of all heads show, by what a head is to find in the task."""
MESSAGE_FRAMES, SLOW_FRAMES = 4, 8
"""A message carries so many steps, and more at a slow pace, so that one that comes late loses none there."""


@dataclass(frozen=True)
class Choice:
    """What the visitor looks at."""

    word: str
    kind: str
    """cross, encoder, decoder or sequence."""
    outline: bool
    """Whether the cells that each row needs are marked."""


@dataclass(frozen=True)
class Places:
    """Where the pictures stand. A refresh may write only where the whole page wrote, so it writes to all."""

    large: DeltaGenerator
    narrator: DeltaGenerator
    strip: DeltaGenerator
    curves: DeltaGenerator
    outputs: DeltaGenerator
    mass: DeltaGenerator
    samples: DeltaGenerator | None
    """Where answers are sentences."""
    kept: Kept
    """What the browser has of the pictures."""


def draw(view: RunView, frame: Frame | None, choice: Choice, places: Places) -> None:
    """Show one frame of a run in every panel, or that there is none yet."""
    if frame is None:
        for place in (places.large, places.strip, places.curves, places.mass):
            place.skeleton(height=380)
        with places.narrator:
            st.markdown("")
        return
    frames = _frames_to_draw(view) if selection.step() is None else [frame]
    sites = sites_of(frame, choice.kind)
    shown_sites, shown_heads = chosen_tiles(sites, view.config.model.n_heads)
    site, head = selection.head(frame, sites)
    name = f"headlight-{choice.word}-seed{view.config.seed}"
    with places.large:
        live_figure(
            [
                large_picture(frame, choice.word, site, head, view.config.seed, choice.outline)
                for frame in frames
            ],
            key="live_map_figure",
            height=TALL,
            file_name=f"{name}-{site}-head{head + 1}",
            on_click=lambda _trace, point: look_at_cell(choice.kind, site, head, point),
            kept=places.kept,
        )
    with places.narrator:
        st.markdown(plain(narration(frame, choice.word, site, head)))
    with places.strip:
        live_figure(
            [strip_picture(frame, choice.word, shown_sites, shown_heads, (site, head)) for frame in frames],
            key="live_maps_figure",
            height=_strip_height(len(sites), view.config.model.n_heads),
            file_name=f"{name}-{choice.kind}",
            on_click=lambda trace, _point: _pin(trace, shown_sites, shown_heads),
            kept=places.kept,
        )
    at = None if selection.step() is None else frame.step
    parent = selection.parent_of(view)
    before = None if parent is None else REGISTRY.get(parent.id)
    with places.curves:
        live_figure(
            [curves_picture(view, before.view if before else None, at)],
            key="live_curves_figure",
            height=CURVES_TALL,
            file_name=f"{name}-curves",
            on_click=lambda trace, point: _go_to(view, trace, point),
            kept=places.kept,
        )
    with places.outputs:
        st.html(outputs(frame, choice.word) + by_length(frame))
    with places.mass:
        live_figure(
            [score_picture(view, frame.aim, at, reading_sites(frame.axes))],
            key="alignment_mass_figure",
            height="300px",
            file_name=f"{name}-alignment",
            kept=places.kept,
        )
    if places.samples:
        with places.samples:
            st.html(samples(frame))


def _strip_height(n_layers: int, n_heads: int) -> str:
    """As tall as the large map, less what stands above the strip: the kinds, and groups to choose from."""
    above = 38 + 68 * n_choices(n_layers, n_heads)
    return f"max({330 - above}px, calc(100vh - {390 + above}px))"


def _frames_to_draw(view: RunView) -> list[Frame]:
    """The newest frame, and before it those of the steps just taken."""
    newest = list(view.frames[-(SLOW_FRAMES if is_slow(view) else MESSAGE_FRAMES) :])
    while len(newest) > 1 and newest[0].step + 1 != newest[1].step:
        newest.pop(0)
    return newest


def _pin(trace: int, sites: list[str], heads: list[int]) -> None:
    """A click on a small map shows it large and keeps it there; a second click lets go."""
    layer, head = tile_at(trace % (len(sites) * len(heads)), len(sites))
    selection.pin(sites[layer], heads[head])


def _go_to(view: RunView, trace: int, point: object) -> None:
    """A click on a pin of the curves goes to its moment."""
    if trace == PINS and isinstance(point, int) and point < len(view.moments):
        selection.look_at(view.moments[point].step)

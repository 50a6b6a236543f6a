"""The one component for pictures that move: Plotly draws once, then only changed arrays, in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from pages.parts.live_figure.kept import Kept, packed, whole
from pages.stream.files import loading, plotly
from transformer.figures.picture import Picture

__all__ = ["Kept", "live_figure", "packed", "point_of"]

# What is given here goes with every message.
_component = st.components.v2.component(
    "live_figure",
    html='<div class="live-figure"></div>',
    js=loading(Path(__file__).with_name("live_figure.js")),
    isolate_styles=False,  # plotly.js puts its styles into the document's head
)


def point_of(picture: Picture, sent: Any) -> tuple[int, int | tuple[int, int] | None] | None:
    """The trace and the point that were clicked, if they exist: a visitor can send anything."""
    if not isinstance(sent, dict):
        return None
    number, point = sent.get("trace"), sent.get("point")
    traces = picture.figure()["data"]
    if type(number) is not int or not 0 <= number < len(traces):
        return None
    if point is None:
        return number, None
    trace = traces[number]
    cells = np.shape(trace["z"] if "z" in trace else trace.get("x", ()))
    place = point if len(cells) == 2 else [point]
    if not isinstance(place, list) or len(place) != len(cells):
        return None
    if not all(type(i) is int and 0 <= i < n for i, n in zip(place, cells, strict=True)):
        return None
    return number, (place[0], place[1]) if len(place) == 2 else place[0]


def live_figure(
    pictures: Sequence[Picture],
    *,
    key: str,
    height: str,
    file_name: str,
    on_click: Callable[[int, int | tuple[int, int] | None], None] | None = None,
    kept: Kept | None = None,
) -> None:
    """Show a picture and keep it in place while it changes.

    Args:
        pictures: the newest one last. Earlier ones, which must share its spec, are drawn first where the
            browser has not shown their steps yet, so that at a slow pace no step is lost to a late message.
        key: the element's key; the same for the same picture from one refresh to the next.
        height: as CSS, such as "calc(100vh - 20rem)"; type grows with it.
        file_name: of the PNG that the picture's own menu saves.
        on_click: called with the number of the trace that was clicked and of the point in it, which is (row,
            column) in a heatmap.
        kept: what the browser has since the last full run of the page, which makes a new one; without it
            every message is whole.
    """
    newest = pictures[-1]
    still = {
        "library": plotly(),
        "height": height,
        "fileName": file_name,
        "clickable": on_click is not None,
        "spec": newest.spec,
    }
    alike = [picture for picture in pictures if picture.spec == newest.spec]

    def clicked() -> None:
        if on_click is not None and (found := point_of(newest, st.session_state[key].clicked)) is not None:
            on_click(*found)

    _component(
        key=key,
        height="content",
        data=whole(still, alike) if kept is None else kept.message(key, still, alike),
        on_clicked_change=clicked,
        on_lost_change=lambda: None if kept is None else kept.forget(key),
    )

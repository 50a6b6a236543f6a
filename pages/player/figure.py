"""One figure on a page, drawn by the JavaScript module of the player."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import numpy as np
import streamlit as st

from pages.shared.session import sent_value
from pages.stream.files import loading, plotly
from transformer.figures.picture import Array, Picture

_component = st.components.v2.component(
    "live_figure",
    html='<div class="live-figure"></div>',
    js=loading("figure"),
    isolate_styles=False,  # plotly.js puts its styles into the document's head
)


def point_of(picture: Picture, sent: Any) -> tuple[int, int | tuple[int, int] | None] | None:
    """Return the indices of the trace and the point of a click; None if they do not exist, because a browser
    can send anything. The point is (row, column) in a heatmap, and None if no point was clicked."""
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
    picture: Picture,
    *,
    key: str,
    height: str,
    file_name: str,
    on_click: Callable[[int, int | tuple[int, int] | None], None] | None = None,
) -> None:
    """Show a figure, and change it in place when its numbers change.

    Args:
        key: key of the element; it must stay the same in all reruns of the page.
        height: as CSS, such as "calc(100vh - 20rem)"; a larger figure has larger type.
        file_name: name, without suffix, of the PNG that the figure's menu saves.
        on_click: called with the index of the clicked trace, and that of the point: (row, column) in a
            heatmap, None where no point was clicked.
    """

    def clicked() -> None:
        point = point_of(picture, sent_value(key, "clicked"))
        if on_click is not None and point is not None:
            on_click(*point)

    _component(
        key=key,
        height="content",
        data={
            "plotly": plotly(),
            "height": height,
            "fileName": file_name,
            "clickable": on_click is not None,
            "spec": picture.spec,
            "arrays": {name: packed(values) for name, values in picture.arrays.items()},
            "layout": dict(picture.layout),
            "step": picture.step,
            "hatched": picture.hatched,
        },
        on_clicked_change=clicked,
    )


def packed(values: Array) -> dict[str, Any]:
    """Encode an array: `b` is base64 of little-endian float32, row after row; `shape` is there for 2 axes."""
    text = base64.b64encode(values.astype("<f4").tobytes()).decode()
    return {"shape": values.shape, "b": text} if values.ndim == 2 else {"b": text}

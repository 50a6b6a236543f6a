"""The one component for pictures that move: Plotly draws once, then only changed arrays, in place."""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from transformer.figures.picture import Array, Picture

_HERE = Path(__file__).parent
_STATIC = _HERE.parents[2] / "static"  # Streamlit serves this folder beside app.py
_BLOCKED = 65535  # the one 16-bit number that is no weight

_component = st.components.v2.component(
    "live_figure",
    html='<div class="live-figure"></div>\n',
    css=".live-figure { width: 100%; }\n.live-figure .failed { padding: 1rem; }\n",
    js=(_HERE / "live_figure.js").read_text(encoding="utf-8"),
    isolate_styles=False,  # plotly.js puts its styles into the document's head
)


@cache
def _library() -> str:
    """Copy the plotly.js of the installed plotly package beside the app, once; returns its file name."""
    spec = find_spec("plotly")
    assert spec is not None
    assert spec.origin is not None
    name = f"plotly-{version('plotly')}.min.js"
    if not (_STATIC / name).exists():
        _STATIC.mkdir(exist_ok=True)
        partial = _STATIC / f"{name}.{os.getpid()}"
        shutil.copyfile(Path(spec.origin).parent / "package_data" / "plotly.min.js", partial)
        partial.replace(_STATIC / name)
    return name


def packed(values: Array) -> dict[str, Any]:
    """Numbers as text: weights, a table in [0, 1], as 16 bits with a code for blocked; curves as float32."""
    if values.ndim == 2:
        shares = np.nan_to_num(values.astype(np.float32), nan=0.0).clip(0.0, 1.0)  # float16 ends at 65504
        codes = np.rint(shares * (_BLOCKED - 1)).astype("<u2")
        codes[np.isnan(values)] = _BLOCKED
        return {"shape": values.shape, "b": base64.b64encode(codes.tobytes()).decode()}
    return {"b": base64.b64encode(values.astype("<f4").tobytes()).decode()}


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
    """
    newest = pictures[-1]

    def clicked() -> None:
        if on_click is not None and (found := point_of(newest, st.session_state[key].clicked)) is not None:
            on_click(*found)

    _component(
        key=key,
        height="content",
        data={
            "library": _library(),
            "height": height,
            "fileName": file_name,
            "clickable": on_click is not None,
            "spec": newest.spec,
            "frames": [
                {
                    "step": picture.step,
                    "layout": picture.layout,
                    "arrays": {name: packed(values) for name, values in picture.arrays.items()},
                }
                for picture in pictures
                if picture.spec == newest.spec
            ],
        },
        on_clicked_change=clicked,
    )

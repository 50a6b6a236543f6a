"""A picture: a Plotly figure whose changing arrays are kept apart from its constant part."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
"""A letter of a script such as Arabic or Hebrew."""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure at one step: a live figure draws it in place, and `figure` converts it to plain Plotly."""

    spec: str
    """JSON of {"data": [...], "layout": {...}}: all that stays the same while the arrays change."""
    arrays: Mapping[str, Array] = field(default_factory=dict)
    """"TRACE.ATTRIBUTE" (such as "0.z") to its numbers; NaN is a gap."""
    layout: Mapping[str, Any] = field(default_factory=dict)
    """Parts of the layout that change too, by Plotly's attribute path (such as "title.text")."""
    step: int = 0
    """The step that the picture shows."""
    hatched: tuple[tuple[float, float, float, float], ...] = ()
    """Rectangles (x0, x1, y0, y1) in axis coordinates, hatched to show that a head is switched off."""

    def figure(self) -> dict[str, Any]:
        """The Plotly figure with its arrays, for a static page, an export or a test; without `hatched`."""
        figure: dict[str, Any] = json.loads(self.spec)
        for name, values in self.arrays.items():
            trace, attribute = name.split(".")
            cells = values.astype(object)
            cells[np.isnan(values)] = None
            figure["data"][int(trace)][attribute] = cells.tolist()
        for path, value in self.layout.items():
            _set(figure["layout"], path, value)
        return figure


def isolated(text: str) -> str:
    """A token for a label: one that is written from right to left does not turn the text around it."""
    return f"\u2068{text}\u2069" if _RIGHT_TO_LEFT.search(text) else text


def escaped(text: str) -> str:
    """Escape a text for titles, labels and hover texts, where Plotly interprets tags and entities."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _set(layout: dict[str, Any], path: str, value: Any) -> None:
    """Follow a Plotly path such as "annotations[2].text" and put the value there."""
    *steps, last = path.replace("[", ".[").split(".")
    place: Any = layout
    for step in steps:
        place = place[int(step[1:-1])] if step.startswith("[") else place.setdefault(step, {})
    place[last] = value

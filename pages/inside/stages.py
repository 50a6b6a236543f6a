"""Stages of a forward pass on a page: the same on Look inside and on Masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from pages.player.figure import live_figure
from transformer.anatomy.panels import Focus, Panel
from transformer.config import RunConfig
from transformer.figures.matrix import matrix_picture, panel_of
from transformer.insight.scores import first_row
from transformer.recording.view import RunView
from transformer.recording.weights import Snapshot
from transformer.runs.watched import Watched

if TYPE_CHECKING:  # it brings torch
    from transformer.anatomy.passes import ForwardTrace


def trace_of(
    view: RunView,
    snapshot: Snapshot,
    word: str,
    beside: tuple[str, ...] = (),
    config: RunConfig | None = None,
) -> ForwardTrace:
    """The forward pass of a word through the model of a snapshot, perhaps with other settings.

    Raises:
        InputError: a word that cannot be asked.
    """
    from transformer.anatomy.trace import trace

    return trace(config or view.config, snapshot, word, beside)


def focus() -> Focus:
    """The cell that is looked at, on every stage and page."""
    return st.session_state.get("focus", Focus(row=1, column=None))


def begin_focus(kind: str, word: str) -> None:
    """Where no cell has been chosen, look at the row of the first letter: behind [SEP] it is written."""
    if "focus" not in st.session_state and kind == "sequence":
        st.session_state["focus"] = Focus(row=first_row(kind, len(word)), column=None)


def batch_of(run: Watched, word: str) -> tuple[str, ...]:
    """The other probes: with them a word travels in one batch, filled up with [PAD]."""
    return tuple(question.text for question in run.questions if question.text != word)


def draw_panels(
    panels: Sequence[Panel],
    *,
    at: Focus,
    sources: Sequence[Panel] = (),
    title: str,
    step: int,
    key: str,
    height: str,
    file_name: str,
    moved: Callable[[], None] = lambda: None,
    width: float = 900.0,
    same_scale: Sequence[Panel] = (),
) -> None:
    """Show tables of numbers; a click on a cell looks at it.

    Args:
        at: the cell that is looked at.
        moved: called after a click has moved the focus.
        width: pixels that there are for it on a small screen.
        same_scale: tables of other pictures whose numbers are to have the same colours.
    """
    picture = matrix_picture(
        panels, focus=at, title=title, step=step, sources=sources, width=width, same_scale=same_scale
    )

    def look_at(trace: int, point: object) -> None:
        found = panel_of(picture, trace)
        if found is None or found >= len(panels) or not isinstance(point, tuple):
            return
        places, before = dict(zip(panels[found].axes, point, strict=True)), focus()
        st.session_state["focus"] = Focus(
            row=places.get("row", before.row),
            column=places.get("column", before.column),
            feature=places.get("feature", before.feature),
        )
        moved()

    live_figure(picture, key=key, height=height, file_name=file_name, on_click=look_at)

"""The interventions chosen on the tab Break, and the callbacks of its buttons.

The buttons use callbacks because Streamlit never interrupts a callback, even if the next click opens
another page.
"""

from __future__ import annotations

import numpy as np
import streamlit as st

from pages.controls.commands import INTERVENTION_SECONDS, await_effect, check_train_on, train_on
from pages.questions.asking import NO_WEIGHTS, asked_snapshot, asked_word, model_of
from pages.shared import ownership, selection
from transformer.errors import InputError
from transformer.insight.names import short_head_name
from transformer.insight.scores import THRESHOLD
from transformer.recording.view import ENDED, RunView
from transformer.recording.weights import Snapshot
from transformer.runs.any_run import AnyRun
from transformer.shared.attention_info import sites_of
from transformer.shared.interventions import NO_INTERVENTIONS, Block, Interventions

PROBLEMS = ("block_problem", "intervene_problem")


def forget_problems() -> None:
    """Forget the errors of earlier button presses."""
    for problem in PROBLEMS:
        st.session_state.pop(problem, None)


def head_options(view: RunView) -> dict[str, tuple[str, int]]:
    """Every head of the model as (site, head), by its name; empty before there is a frame."""
    sites = view.frame.axes if view.frame else ()
    heads = [(site, head) for site in sites for head in range(view.config.model.n_heads)]
    return {short_head_name(*head): head for head in heads}


def blocks(run: AnyRun, word: str) -> tuple[Block, ...]:
    """The cells that were blocked for this run and word; empty after others were blocked for another."""
    owner, cells = st.session_state.get("blocks", (None, ()))
    return cells if owner == (run.id, word) else ()


def taken(run: AnyRun, word: str) -> Interventions:
    """The chosen interventions: heads that are switched off, and blocked cells."""
    options = head_options(run.view)
    chosen = [options[name] for name in st.session_state.get("ablate_heads") or () if name in options]
    return Interventions(ablated=tuple(chosen), blocked=blocks(run, word))


def switch_off(run: AnyRun, what: str) -> None:
    """Callback: switch off the heads that a button stands for, and switch on all others."""
    forget_problems()
    if shown := _shown(run.view):
        meant = _meant(what, run.view, shown)
        st.session_state["ablate_heads"] = [
            name for name, head in head_options(run.view).items() if head in meant
        ]


def block(run: AnyRun, word: str | None = None) -> None:
    """Callback: block what the widgets describe, from the row and the column in the number boxes.

    Args:
        word: the word on the clicked map; by default the word in the text box.
    """
    forget_problems()
    word = word or asked_word(run)
    try:
        if shown := _shown(run.view):
            _block(run, word, shown)
    except InputError as error:
        st.session_state["block_problem"] = str(error)


def unblock(run: AnyRun, word: str, number: int) -> None:
    """Callback: unblock a cell."""
    forget_problems()
    left = tuple(one for i, one in enumerate(blocks(run, word)) if i != number)
    st.session_state["blocks"] = (run.id, word), left


def _shown(view: RunView) -> tuple[str, int] | None:
    """The head on the maps; None before there is a frame."""
    frame = selection.shown_frame(view)
    if frame is None:
        return None
    return selection.head(frame, sites_of(frame.axes, selection.kind(view)))


def _meant(what: str, view: RunView, shown: tuple[str, int]) -> list[tuple[str, int]]:
    """The heads that a button switches off; empty for the button "None"."""
    if what == "shown":
        return [shown]
    if what == "others":
        return [head for head in head_options(view).values() if head != shown and head[0] == shown[0]]
    frame = selection.shown_frame(view)
    scores = frame.scores if frame and what == "turned" else {}
    return [(site, head) for site, row in scores.items() for head in np.flatnonzero(row >= THRESHOLD)]


def _block(run: AnyRun, word: str, shown: tuple[str, int]) -> None:
    """Add the blocks that the widgets describe. Raises InputError if they are invalid."""
    snapshot = asked_snapshot(run.view)
    if snapshot is None:
        raise InputError(NO_WEIGHTS, "block_cell")
    before = Interventions(blocked=blocks(run, word))
    both = before | Interventions(blocked=_asked_blocks(run.view, snapshot, word, shown, before))
    model_of(run.view, snapshot, both).answer(word)
    st.session_state["blocks"] = (run.id, word), both.blocked


def _asked_blocks(
    view: RunView, snapshot: Snapshot, word: str, shown: tuple[str, int], before: Interventions
) -> tuple[Block, ...]:
    """The blocks that the widgets describe.

    Raises:
        InputError: the cell is not on the map, or a mask or an intervention of the run blocks it already.
    """
    what, where = st.session_state.get("block_what"), st.session_state.get("block_where")
    reading = model_of(view, snapshot, before if what == "cell" else None).answer(word).forced
    site, head = shown
    axes = reading.axes[site]
    rows, columns = reading.tokens(axes.query), reading.tokens(axes.key)
    row, column = st.session_state.get("block_row"), st.session_state.get("block_column")
    for name, value, most in (("Row", row, len(rows)), ("Column", column, len(columns))):
        if not isinstance(value, int) or not 1 <= value <= most:
            raise InputError(f"{name} {value} is not on this map; choose from 1 to {most}.", "block_cell")
    if np.isnan(reading.maps[site][head, row - 1, column - 1]):
        raise InputError(
            f"Row {row}, column {column} is already blocked. Choose another cell.",
            "block_cell",
        )
    return tuple(
        Block(
            site=name,
            head=head if where == "head" else None,
            row=row - 1 if what == "cell" else None,
            column=column - 1 if what in ("cell", "column") else None,
            token=columns[column - 1] if what == "token" else None,
        )
        for name in (sites_of(reading.axes, axes.kind) if where == "kind" else [site])
    )


def apply_to_run(run: AnyRun, word: str) -> None:
    """Callback: add the chosen interventions to those of the run."""
    _intervene(run, run.view.interventions | taken(run, word))


def undo_in_run(run: AnyRun) -> None:
    """Callback: end all interventions in the run; its masks are as configured again."""
    _intervene(run, NO_INTERVENTIONS)


def _intervene(run: AnyRun, wanted: Interventions) -> None:
    """Give a run these interventions in place of its own; the session keeps an error.

    If the run has ended, it continues its training, and the screen follows it.
    """
    forget_problems()
    ended = run.view.state in ENDED
    try:
        command = ownership.command(run)
        if ended:
            check_train_on(command)
        await_effect(command.intervene(wanted), INTERVENTION_SECONDS)
        if ended:
            train_on(command)
            selection.look_at(None)
    except InputError as error:
        st.session_state["intervene_problem"] = str(error)

"""Break: switch heads off or block cells, in a copy of the model or in the run itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.controls.commands import MORE_STEPS, continuing_rate
from pages.player.figure import live_figure
from pages.questions import interventions
from pages.questions.asking import Draw, kind_choice, model_of
from pages.questions.readings import ShownMap, changed_outputs, verdict
from pages.shared import ownership, selection
from pages.shared.plain import plain, show_error
from pages.shared.session import session
from transformer.config import TASK_INFO
from transformer.errors import InputError
from transformer.insight.names import short_head_name
from transformer.recording.view import ENDED, FAILED, IDLE, RunView
from transformer.recording.weights import Snapshot
from transformer.runs.any_run import AnyRun
from transformer.shared.attention_info import sites_of
from transformer.shared.interventions import Interventions

if TYPE_CHECKING:
    from transformer.asking.answers import Answer
    from transformer.asking.model import SnapshotModel

TALL = "max(300px, calc(100vh - 470px))"
WHAT = {"cell": "one cell", "column": "its column", "token": "all columns of its token"}
WHERE = {"head": "in this head", "site": "in all heads of this layer", "kind": "in all heads of every layer"}
SWITCHES = (
    ("shown", "This head", "Switch off the head on the maps."),
    ("turned", "Clear heads", "Switch off every head with a clear pattern at this step."),
    ("others", "Other heads of its layer", "Switch off all heads of the layer except the one on the maps."),
    ("none", "None", "Switch all heads on."),
)
"""Key, label and help of each button."""


@dataclass(frozen=True)
class Side:
    """The containers for one model, before or after the change."""

    name: str
    text: DeltaGenerator
    picture: DeltaGenerator


def break_tab(run: AnyRun, word: str) -> Draw:
    """Draw the widgets of the tab; return the function that draws the rest at a step."""
    if st.session_state.get("broken") != (run.id, word):
        st.session_state["broken"] = run.id, word
        interventions.forget_problems()
    view = run.view
    left, right = st.columns([1, 2.3], gap="medium")
    with left:
        st.multiselect(
            "Switch heads off (ablation)",
            list(interventions.head_options(view)),
            key="ablate_heads",
            placeholder="choose heads…",
            persist_state="session",
            help="The output of a switched-off head is replaced by zero.",
        )
        with st.container(horizontal=True, gap="xsmall"):
            for key, label, tip in SWITCHES:
                st.button(
                    label, key=f"ablate_{key}", help=tip, on_click=interventions.switch_off, args=(run, key)
                )
        _block_controls(run, word)
        taken = interventions.taken(run, word)
        _in_training(run, word, view, taken)
    with st.sidebar:
        kind = kind_choice(run)
        _head_choice(view, kind)
    with right:
        before, after = (
            Side(name, column.container(key=f"break_{name}"), column.container())
            for name, column in zip(("before", "after"), st.columns(2, gap="small"), strict=True)
        )
        problem = st.container()

    def draw(view: RunView, snapshot: Snapshot | None, answer: Answer | None) -> None:
        """Draw the map, the answer and the accuracy on held-out words, before and after the change."""
        if answer is None or snapshot is None or view.frame is None:
            _draw_side(before, view, None, None, kind)
            _draw_side(after, view, None, None, kind)
            problem.markdown("")
            return
        whole, broken, changed, refused = model_of(view, snapshot), None, None, ""
        try:
            broken = model_of(view, snapshot, taken)
            changed = broken.answer(answer.question.text)
        except InputError as error:
            refused = str(error)
        with problem:
            if refused:
                show_error(refused)
            else:
                if taken:
                    st.html(changed_outputs(whole, broken, TASK_INFO[run.config.train.task].plural))
                st.caption(_said(taken, snapshot.interventions))
        _draw_side(
            before,
            view,
            whole,
            answer,
            kind,
            on_click=lambda _, point: _block_clicked(run, answer.question.text, point),
        )
        _draw_side(after, view, broken, changed, kind)

    return draw


def _head_choice(view: RunView, kind: str) -> None:
    """Draw the choice of the head on the maps; it begins with the large head of this kind."""
    frame = selection.shown_frame(view)
    if frame is None:
        return
    sites = sites_of(frame.axes, kind)
    st.session_state["break_head"] = selection.head(frame, sites)
    st.selectbox(
        "Head on the maps",
        [(site, head) for site in sites for head in range(view.config.model.n_heads)],
        key="break_head",
        format_func=lambda one: short_head_name(*one),
        on_change=_head_chosen,
    )


def _head_chosen() -> None:
    """Callback: pin the chosen head. A head of the kind shown before arrives as text and is ignored."""
    match st.session_state.get("break_head"):
        case (str(site), int(head)):
            session.pinned = site, head


def _block_controls(run: AnyRun, word: str) -> None:
    """Draw the widgets that block a cell, and the list of what is blocked."""
    with st.container(key="block_cell"):
        st.markdown("**Block a cell**: click on the left map, or enter a row and a column")
        # Restore the values, because Streamlit drops them while another tab is open.
        for name, place in (("block_row", 1), ("block_column", 2)):
            kept = st.session_state.get(name)
            st.session_state[name] = place if kept is None else kept
        with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
            for name in ("row", "column"):
                st.number_input(name, key=f"block_{name}", step=1, width=80, persist_state="session")
            st.button("Block", key="block_add", on_click=interventions.block, args=(run,))
        for label, key, options in (("What", "block_what", WHAT), ("Where", "block_where", WHERE)):
            st.selectbox(
                label,
                list(options),
                key=key,
                format_func=options.get,
                label_visibility="collapsed",
                persist_state="session",
            )
        if "block_problem" in st.session_state:
            show_error(st.session_state["block_problem"])
        for i, block in enumerate(interventions.blocks(run, word)):
            st.button(
                f"✕ {plain(block.text())}",
                key=f"unblock_{i}",
                type="tertiary",
                on_click=interventions.unblock,
                args=(run, word, i),
            )


def _in_training(run: AnyRun, word: str, view: RunView, taken: Interventions) -> None:
    """Draw the buttons that apply the change to the run itself, or undo all changes there."""
    if view.interventions:
        st.caption(f"Active in the run: {plain(view.interventions.text())}.")
    with st.container(key="break_training"):
        own = ownership.owns(run)
        ended = view.state in ENDED
        rate = f"{MORE_STEPS} steps, learning rate up to {continuing_rate(run):g}"
        # Switching a head off above changes the answers only; this button changes the run.
        st.button(
            f"Continue with these changes: {rate}" if ended else "Apply to the running training",
            key="intervene_run",
            icon=":material/play_arrow:" if ended else ":material/content_cut:",
            disabled=not own or view.state in (IDLE, FAILED) or not taken,
            on_click=interventions.apply_to_run,
            args=(run, word),
        )
        if own and view.interventions:
            st.button(
                f"Continue without changes: {rate}" if ended else "Undo all changes in the run",
                key="intervene_none",
                on_click=interventions.undo_in_run,
                args=(run,),
            )
        if "intervene_problem" in st.session_state:
            show_error(st.session_state["intervene_problem"])


def _said(taken: Interventions, before: Interventions) -> str:
    there = f" (already {plain(before.text())})" if before else ""
    return f"Left: the model of this step{there}. Right: {plain(taken.text()) if taken else 'no change'}."


def _draw_side(
    side: Side,
    view: RunView,
    model: SnapshotModel | None,
    answer: Answer | None,
    kind: str,
    on_click: Callable[[int, object], None] | None = None,
) -> None:
    """Draw the answer and the map of one model, or a placeholder."""
    if model is None or answer is None:
        side.text.markdown("")
        side.picture.skeleton(height=300)
        return
    site, head = selection.head(selection.shown_frame(view), sites_of(answer.forced.axes, kind))
    off = ", switched off" if (site, head) in answer.interventions.ablated else ""
    with side.text:
        st.html(verdict(side.name, answer, model.exact, TASK_INFO[view.config.train.task].plural))
    with side.picture:
        live_figure(
            ShownMap(answer, answer.forced, site, head).large(f" · {side.name}{off}"),
            key=f"break_{side.name}_figure",
            height=TALL,
            file_name=f"headlight-{answer.question.text}-{side.name}",
            on_click=on_click,
        )


def _block_clicked(run: AnyRun, word: str, point: object) -> None:
    """Callback: block the clicked cell of the left map, in the scope of the widgets "What" and "Where"."""
    if isinstance(point, tuple):
        st.session_state["block_row"], st.session_state["block_column"] = point[0] + 1, point[1] + 1
        interventions.block(run, word)
        session.page_is_stale = True  # the list of blocked cells is outside the fragment

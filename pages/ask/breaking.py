"""Break: take heads or single looks away, see what that does; if wanted, in the running training too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.ask.answers import answered_otherwise, verdict
from pages.ask.asking import model_of
from pages.ask.readings import head_options, reading_map
from pages.controls.kinds import kind_choice
from pages.player.figure import live_figure
from pages.shared import ownership, selection
from pages.shared.plain import plain, refuse
from transformer.errors import InputError
from transformer.insight.names import full_head_name
from transformer.insight.scores import THRESHOLD
from transformer.interventions import NOTHING, Block, Interventions
from transformer.recording.frame import sites_of
from transformer.recording.view import ENDED, FAILED, IDLE, RunView
from transformer.recording.weights import Snapshot
from transformer.runs.registry import REGISTRY
from transformer.runs.watched import Watched

if TYPE_CHECKING:
    from transformer.answers import Answer

TALL = "max(300px, calc(100vh - 470px))"
WHAT = {"cell": "one cell", "column": "its whole column", "token": "every such token"}
WHERE = {"head": "in this head", "site": "in all heads of its layer", "kind": "in every layer"}
SWITCHES = (
    ("shown", "This head", "The head on the maps: the clearest one, unless another was chosen."),
    ("turned", "All that turned", "Every head that has a clear pattern at this step."),
    ("others", "All others of its layer", "Every head of the layer but the one on the maps."),
    ("none", "None", "Every head is on."),
)
"""Key, label and help of what can be switched off with one press."""
OBEYED_SECONDS = 2.0
MORE_STEPS = 100
"""For which a run that has ended trains on without its heads."""


@dataclass(frozen=True)
class BreakParts:
    """What was chosen, and where the pictures go."""

    kind: str
    taken: Interventions
    before: DeltaGenerator
    after: DeltaGenerator
    text_before: DeltaGenerator
    text_after: DeltaGenerator
    problem: DeltaGenerator


def break_controls(run: Watched, word: str) -> BreakParts:
    """Draw the widgets of the tab."""
    view = run.view
    if st.session_state.get("broken") != (run.id, word):  # what was said of another word is no longer true
        st.session_state["broken"] = run.id, word
        st.session_state.pop("block_problem", None)
        st.session_state.pop("intervene_problem", None)
    _take_up(run, view, word)
    view = run.view  # with what was just taken away or given back
    options = head_options(view)
    left, right = st.columns([1, 2.3], gap="medium")
    with left:
        st.multiselect(
            "Switch heads off (ablation)",
            list(options),
            key="ablate_heads",
            placeholder="choose heads…",
            persist_state="session",
            help="Their output counts as zero, as if their slice of the output projection were removed.",
        )
        with st.container(horizontal=True, gap="xsmall"):
            for key, label, tip in SWITCHES:
                st.button(label, key=f"ablate_{key}", help=tip, on_click=_note, args=(key,))
        _block_controls(run, word)
        taken = _taken(run, view, word)
        _in_training(run, view, taken)
    with st.sidebar:
        kind = kind_choice(run.config.model)
        _head_choice(view, kind)
    with right:
        before, after = st.columns(2, gap="small")
        problem = st.container()
    return BreakParts(
        kind=kind,
        taken=taken,
        text_before=before.container(key="break_before"),
        before=before.container(),
        text_after=after.container(key="break_after"),
        after=after.container(),
        problem=problem,
    )


def _head_choice(view: RunView, kind: str) -> None:
    """Which head both maps show: the same as everywhere."""
    frame = selection.shown_frame(view)
    if frame is None:
        return
    sites = sites_of(frame.axes, kind)
    heads = [(site, head) for site in sites for head in range(view.config.model.n_heads)]
    st.session_state["break_head"] = selection.head(frame, sites)
    st.selectbox(
        "Head on the maps",
        heads,
        key="break_head",
        format_func=lambda one: full_head_name(*one),
        on_change=_show_head,
    )


def _show_head() -> None:
    st.session_state["pinned"] = st.session_state.get("break_head")


def _block_controls(run: Watched, word: str) -> None:
    """Choosing a cell, or clicking on one of the left map, and what of it is blocked."""
    with st.container(key="block_cell"):
        st.markdown("**Block a look**: click on the left map, or choose a cell")
        # Put back, as another tab has dropped them.
        for name, place in (("block_row", 1), ("block_column", 2)):
            kept = st.session_state.get(name)
            st.session_state[name] = place if kept is None else kept
        with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
            for name in ("row", "column"):
                st.number_input(name, key=f"block_{name}", step=1, width=80, persist_state="session")
            st.button("Block", key="block_add", on_click=_note, args=("block",))
        st.selectbox(
            "What",
            list(WHAT),
            key="block_what",
            format_func=WHAT.get,
            label_visibility="collapsed",
            persist_state="session",
        )
        st.selectbox(
            "Where",
            list(WHERE),
            key="block_where",
            format_func=WHERE.get,
            label_visibility="collapsed",
            persist_state="session",
        )
        if "block_problem" in st.session_state:
            refuse(st.session_state["block_problem"])
        for i, block in enumerate(_blocks(run, word)):
            st.button(
                f"✕ {plain(block.text())}",
                key=f"unblock_{i}",
                type="tertiary",
                on_click=_note,
                args=("unblock", i),
            )


def _in_training(run: Watched, view: RunView, taken: Interventions) -> None:
    """The same in the run itself, which then trains on without it."""
    if view.interventions:
        st.caption(f"In force in the run: {plain(view.interventions.text())}.")
    with st.container(key="break_training"):
        own = ownership.owns(run)
        ended = view.state in ENDED
        rate = f"{MORE_STEPS} steps, freshly warmed up to {_rate(run):g}"
        # A run that has ended stays as it is: a head off is an answer here, until it is to train without it.
        st.button(
            f"Continue with it off: {rate}" if ended else "Do this to the running training too",
            key="intervene_run",
            icon=":material/play_arrow:" if ended else ":material/content_cut:",
            disabled=not own or view.state in (IDLE, FAILED) or not taken,
            on_click=_note,
            args=("intervene",),
        )
        if own and view.interventions:
            st.button(
                f"Continue with everything back: {rate}" if ended else "Give everything back to the run",
                key="intervene_none",
                on_click=_note,
                args=("give back",),
            )
        if "intervene_problem" in st.session_state:
            refuse(st.session_state["intervene_problem"])


def _rate(run: Watched) -> float:
    """The highest learning rate of these steps."""
    return run.config.train.learning_rate / 2


def _note(what: str, number: int = 0) -> None:
    """Callback of every button: only notes what is asked."""
    st.session_state["break_asked"] = what, number
    st.session_state.pop("block_problem", None)
    st.session_state.pop("intervene_problem", None)


def _blocks(run: Watched, word: str) -> tuple[Block, ...]:
    """Blocked looks; they belong to one run and one word, whose places they name."""
    owner, blocks = st.session_state.get("blocks", (None, ()))
    return blocks if owner == (run.id, word) else ()


def _taken(run: Watched, view: RunView, word: str) -> Interventions:
    """What is chosen to be taken away."""
    options = head_options(view)
    chosen = [options[name] for name in st.session_state.get("ablate_heads") or () if name in options]
    return Interventions(ablated=tuple(chosen), blocked=_blocks(run, word))


def _take_up(run: Watched, view: RunView, word: str) -> None:
    """Do what a button asked for, with the run and the word as they are now."""
    what, number = st.session_state.pop("break_asked", (None, 0))
    options = head_options(view)
    blocks = _blocks(run, word)
    shown = _shown(view)
    if what in ("none", "shown", "others", "turned") and shown:
        meant = {
            "none": lambda head: False,
            "shown": lambda head: head == shown,
            "others": lambda head: head != shown and head[0] == shown[0],
            "turned": lambda head: head in _turned(view),
        }[what]
        st.session_state["ablate_heads"] = [name for name, head in options.items() if meant(head)]
    elif what == "block" and shown:
        try:
            new = _asked_blocks(run, view, word, shown)
            both = Interventions(blocked=blocks) | Interventions(blocked=new)
            snapshot = view.snapshots[-1]
            model_of(view, snapshot, both).answer(word)  # refuses what would leave a row nothing
            st.session_state["blocks"] = (run.id, word), both.blocked
        except InputError as error:
            st.session_state["block_problem"] = str(error)
    elif what == "unblock":
        left = tuple(block for i, block in enumerate(blocks) if i != number)
        st.session_state["blocks"] = (run.id, word), left
    elif what in ("intervene", "give back"):
        taken = _taken(run, view, word)
        try:
            # What was shown: all that is taken away already, and this too.
            wanted = run.view.interventions | taken if what == "intervene" else NOTHING
            ended = view.state in ENDED
            ownership.command(run).intervene(wanted).wait(OBEYED_SECONDS)
            if ended:
                REGISTRY.continue_for(ownership.command(run), MORE_STEPS, _rate(run)).wait(OBEYED_SECONDS)
                selection.look_at(None)
        except InputError as error:
            st.session_state["intervene_problem"] = str(error)


def _shown(view: RunView) -> tuple[str, int] | None:
    frame = selection.shown_frame(view)
    if frame is None:
        return None
    return selection.head(frame, sites_of(frame.axes, selection.kind(view.config.model)))


def _turned(view: RunView) -> list[tuple[str, int]]:
    """The heads that have a clear pattern at the step on the screen."""
    frame = selection.shown_frame(view)
    scores = frame.scores if frame else {}
    return [(site, head) for site, row in scores.items() for head in np.flatnonzero(row >= THRESHOLD)]


def _asked_blocks(run: Watched, view: RunView, word: str, shown: tuple[str, int]) -> tuple[Block, ...]:
    """The blocks that the boxes mean. Raises InputError for a cell that is not on the map."""
    reading = model_of(view, view.snapshots[-1]).answer(word).forced
    site, head = shown
    axes = reading.axes[site]
    rows, columns = reading.tokens(axes.query), reading.tokens(axes.key)
    row, column = st.session_state.get("block_row"), st.session_state.get("block_column")
    for name, value, most in (("Row", row, len(rows)), ("Column", column, len(columns))):
        if not isinstance(value, int) or not 1 <= value <= most:
            raise InputError(f"{name} {value} is not on this map; choose from 1 to {most}.", "block_cell")
    if np.isnan(reading.maps[site][head, row - 1, column - 1]):
        raise InputError(
            f"Row {row} may not look at column {column} anyway: a mask blocks it. Choose another cell.",
            "block_cell",
        )
    what, where = st.session_state.get("block_what"), st.session_state.get("block_where")
    every = [name for name, other in reading.axes.items() if other.kind == axes.kind]
    return tuple(
        Block(
            site=name,
            head=head if where == "head" else None,
            row=row - 1 if what == "cell" else None,
            column=column - 1 if what in ("cell", "column") else None,
            token=columns[column - 1] if what == "token" else None,
        )
        for name in (every if where == "kind" else [site])
    )


def draw_break(
    run: Watched, view: RunView, snapshot: Snapshot | None, answer: Answer | None, parts: BreakParts
) -> None:
    """The same map before and after, with what the model writes and how many held-out words are right."""
    if "break_asked" in st.session_state:
        st.rerun()  # a click on the map: what it asks for is done with the widgets, in a full run
    if answer is None or snapshot is None or view.frame is None:
        for place in (parts.before, parts.after):
            place.skeleton(height=300)
        for place in (parts.text_before, parts.text_after, parts.problem):
            place.markdown("")
        return
    sites = sites_of(answer.forced.axes, parts.kind)
    site, head = selection.head(selection.shown_frame(view), sites)
    seed = view.config.seed
    whole, broken, after, refused = model_of(view, snapshot), None, None, ""
    try:
        broken = model_of(view, snapshot, parts.taken)
        after = broken.answer(answer.question.text)
    except InputError as error:
        refused = str(error)
    with parts.problem:
        if refused:
            refuse(refused)
        else:
            if parts.taken and broken is not None:
                st.html(answered_otherwise(whole, broken))
            taken = plain(parts.taken.text()) if parts.taken else "nothing yet"
            there = (
                f" (there already: {plain(snapshot.interventions.text())})" if snapshot.interventions else ""
            )
            st.caption(
                f"Taken away here: {taken}. The left side is the model of this step as it was{there}; "
                "held-out words are the 200 of the live curve."
            )
    before = " · before, switched off" if (site, head) in snapshot.interventions.ablated else " · before"
    with parts.text_before:
        st.html(verdict("before", answer, whole.exact))
    with parts.before:
        live_figure(
            reading_map(answer, answer.forced, site, head, seed=seed, note=before),
            key="break_before_figure",
            height=TALL,
            file_name=f"headlight-{answer.question.text}-before",
            on_click=_block_clicked,
        )
    if after is None or broken is None:
        parts.text_after.markdown("")
        parts.after.skeleton(height=300)
        return
    note = " · switched off" if (site, head) in parts.taken.ablated else " · after"
    with parts.text_after:
        st.html(verdict("after", after, broken.exact))
    with parts.after:
        live_figure(
            reading_map(after, after.forced, site, head, seed=seed, note=note),
            key="break_after_figure",
            height=TALL,
            file_name=f"headlight-{answer.question.text}-after",
        )


def _block_clicked(_trace: int, point: object) -> None:
    """A click on a cell of the left map blocks what the boxes say of it."""
    if isinstance(point, tuple):
        st.session_state["block_row"], st.session_state["block_column"] = point[0] + 1, point[1] + 1
        _note("block")

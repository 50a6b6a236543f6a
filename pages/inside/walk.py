"""The walk of Look inside: its chapters and stages, the widgets, and the drawing of a stage."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.controls.heads import head_choice
from pages.inside.stages import begin_focus, draw_panels, focus, trace_of
from pages.shared import selection
from pages.shared.plain import plain
from pages.shared.session import session
from pages.shared.wording import SETTING_NAMES
from transformer.anatomy.panels import STAGES, Focus, Stage
from transformer.anatomy.positions import position_stages, position_table, positions
from transformer.anatomy.stages import chapters, stages
from transformer.config import ModelConfig, RunConfig
from transformer.errors import InputError
from transformer.figures.picture import escaped
from transformer.player.index import KIND_NAMES
from transformer.recording.frame import sites_of
from transformer.recording.view import RunView
from transformer.recording.weights import Snapshot

POSITIONS = "positions"
TALL = "max(300px, calc(100vh - 400px))"
MOST_MOVES = 60
"""Snapshots that the stage on moved positions reads, at most; each is read from a file."""
WHAT_IF = {"norm_placement": ("pre", "post", "branch"), "score_scale": ("sqrt_d_head", "sqrt_d_model")}
"""Settings that can change without changing the shapes of the weights."""


@dataclass(frozen=True)
class WalkParts:
    """The chosen stage, and the places where it is drawn."""

    chapter: str
    stage: str
    changes: dict[str, str]
    title: DeltaGenerator
    formula: DeltaGenerator
    picture: DeltaGenerator


def _stages_of(chapter: str, model: ModelConfig) -> dict[str, str]:
    """Key to title of every stage of a chapter."""
    return position_stages(model) if chapter == POSITIONS else STAGES


def _at(model: ModelConfig) -> tuple[str, str]:
    """The chosen chapter and stage; the kind of attention is shared by all pages."""
    if session.at_positions is None:
        session.at_positions = st.query_params.get("chapter") == POSITIONS
    if session.at_positions:
        chapter = POSITIONS
    else:
        chapter = selection.kind(model, opens_on="encoder")  # where the forward pass begins
    known = _stages_of(chapter, model)
    if session.stage is None:
        session.stage = st.query_params.get("stage")
    return chapter, session.stage if session.stage in known else next(iter(known))


def _go(chapter: str, stage: str) -> None:
    session.at_positions = chapter == POSITIONS
    if chapter != POSITIONS:
        selection.choose_kind(chapter)
    session.stage = stage


def _move(model: ModelConfig, by: int) -> None:
    """Move by stages, across chapters; the last stage is followed by the first."""
    every = [(chapter, stage) for chapter in chapters(model.kinds) for stage in _stages_of(chapter, model)]
    # From what was drawn last: on fast presses the select box may still send the previous stage.
    at = st.session_state.get("walk_at")
    _go(*every[(every.index(at if at in every else _at(model)) + by) % len(every)])


def _stage_chosen(model: ModelConfig) -> None:
    _go(_at(model)[0], st.session_state.get("anatomy_stage", ""))


def walk_controls(view: RunView, word: str) -> WalkParts:
    """Draw the widgets of the walk, and its places."""
    model = view.config.model
    chapter, stage = _at(model)
    begin_focus(chapter, word)
    titles = _stages_of(chapter, model)
    st.session_state["walk_at"] = chapter, stage
    st.session_state["anatomy_stage"] = stage
    with st.container(key="anatomy_bar", horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            "Back",
            key="anatomy_prev",
            icon=":material/chevron_left:",
            shortcut="Left",
            on_click=_move,
            args=(model, -1),
        )
        st.button(
            "Next", key="anatomy_next", type="primary", shortcut="Right", on_click=_move, args=(model, 1)
        )
        st.selectbox(
            "Stage",
            list(titles),
            key="anatomy_stage",
            format_func=lambda key: f"{list(titles).index(key) + 1} of {len(titles)}: {titles[key]}",
            label_visibility="collapsed",
            on_change=_stage_chosen,
            args=(model,),
            width=330,
        )
        # Buttons, since a focused button leaves the arrow keys to the walk.
        for name in chapters(model.kinds):
            st.button(
                KIND_NAMES.get(name, "Positions"),
                key=f"chapter_{name}",
                type="primary" if name == chapter else "tertiary",
                on_click=_go,
                args=(name, stage),
            )
    with st.sidebar:
        if chapter != POSITIONS:
            head_choice(
                view, selection.shown_frame(view), chapter, key="anatomy_head", label="Layer and head"
            )
        changes = _what_if(model)
        _cell_boxes()
        st.caption(
            "Use the left and right arrow keys to change the stage. Click a cell to see how its value is "
            "computed; the rows below the picture show the inputs."
        )
    return WalkParts(
        chapter=chapter,
        stage=stage,
        changes=changes,
        title=st.container(key="anatomy_title"),
        formula=st.container(key="anatomy_formula"),
        picture=st.container(key="anatomy_picture"),
    )


def _what_if(model: ModelConfig) -> dict[str, str]:
    """Draw the settings of `WHAT_IF`; returns those that differ from the model's own."""
    changes = {}
    for name, options in WHAT_IF.items():
        own = getattr(model, name)
        key = f"what_if_{name}"
        if st.session_state.get(key) not in options or st.session_state.get(f"{key}_of") != own:
            st.session_state[key] = own
        st.session_state[f"{key}_of"] = own
        chosen = st.segmented_control(
            f"What if: {SETTING_NAMES[name]}",
            options,
            key=key,
            required=True,
            format_func=lambda option: {"sqrt_d_head": "√ head width", "sqrt_d_model": "√ width"}.get(
                option, option
            ),
            help="Apply the trained weights with another value of this setting.",
        )
        if chosen in options and chosen != own:
            changes[name] = chosen
    if changes:
        st.caption(":material/warning: The model was not trained with this setting.")
    return changes


def _cell_boxes() -> None:
    """Draw number boxes for the focused cell; an empty column means the one with the highest weight."""
    at = focus()
    with st.container(horizontal=True, gap="xsmall"):
        for name, label in (("row", "Row"), ("column", "Column"), ("feature", "Feature")):
            place = getattr(at, name)
            st.session_state[f"focus_{name}"] = None if place is None else place + 1
            st.number_input(
                label,
                key=f"focus_{name}",
                min_value=1,
                step=1,
                placeholder="strongest",
                width=110 if name == "column" else 84,
                on_change=_cell_chosen,
            )


def _cell_chosen() -> None:
    """Set the focus; a number beyond the last cell means the last."""

    def chosen(name: str) -> int | None:
        value = st.session_state.get(f"focus_{name}")
        return None if value is None else min(max(int(value), 1), 10_000) - 1

    st.session_state["focus"] = Focus(chosen("row") or 0, chosen("column"), chosen("feature") or 0)


def walked(view: RunView, snapshot: Snapshot, word: str, parts: WalkParts) -> Stage:
    """The chosen stage, of a word in the model of a snapshot.

    Raises:
        InputError: a word that cannot be asked.
    """
    if parts.chapter == POSITIONS:
        moved = view.snapshots if parts.stage == "moved" else ()
        moved = moved[:: -(-len(moved) // MOST_MOVES) or 1]  # each has to be read from disk
        tables = {one.step: position_table(view.config, one.weights) for one in moved}
        found = positions(view.config, snapshot.weights, focus(), tables=tables)
    else:
        frame = selection.shown_frame(view)
        if frame is None:
            raise InputError("The untrained model is still being built.")
        site, head = selection.head(frame, sites_of(frame.axes, parts.chapter))
        trace = trace_of(view, snapshot, word, config=_config(view, parts))
        found = stages(trace, site, head, focus(), only=(parts.stage,))
    return next((stage for stage in found if stage.key == parts.stage), found[0])


def _config(view: RunView, parts: WalkParts) -> RunConfig:
    return view.config.with_changes(**parts.changes) if parts.changes else view.config


def draw_stage(
    view: RunView, snapshot: Snapshot | None, stage: Stage | None, word: str, parts: WalkParts
) -> None:
    """One stage: its sentence, its formula with the numbers of the chosen cell, its picture."""
    if snapshot is None or stage is None:
        for place in (parts.title, parts.formula):
            place.markdown("")
        parts.picture.skeleton(height=300)
        return
    with parts.title:
        st.markdown(f"**{stage.title}** :gray[{stage.shape}]. {plain(stage.sentence)}")
    with parts.formula:
        st.latex(stage.formula)
        st.latex(stage.cell.numbers)
    with parts.picture:
        draw_panels(
            stage.panels,
            at=stage.focus,
            sources=stage.cell.sources,
            title=f"<span style='font-size:0.75em'>“{escaped(word)}” · step {snapshot.step:,} · "
            f"seed {view.config.seed} · {parts.chapter}</span>",
            step=snapshot.step,
            key="anatomy_figure",
            height=TALL,
            file_name=f"headlight-{parts.chapter}-{stage.key}-{word}-step{snapshot.step}",
            moved=st.rerun,
        )

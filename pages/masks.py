"""Masks: the scores before and after the mask, the weights, and runs without a mask."""

from __future__ import annotations

import streamlit as st

from pages.ask.asking import asked_snapshot
from pages.controls.buttons import buttons_row, controls
from pages.controls.commands import begin
from pages.controls.heads import head_choice
from pages.controls.kinds import kind_choice
from pages.controls.mask_switches import (
    beside,
    mask_problem,
    mask_switches,
    masks_pending,
    to_train,
)
from pages.controls.words import probe_words, word_choice
from pages.inside.mask_words import batch_table, compared, explained, learned_with, two_losses
from pages.inside.stages import batch_of, draw_panels, focus, trace_of
from pages.player.figure import live_figure
from pages.player.following import following
from pages.runs import drafts, known
from pages.runs.keyring import keyring
from pages.runs.lost import lost_run
from pages.runs.run_list import run_list
from pages.settings.presets import DEFAULT_PRESET, PRESETS
from pages.shared import selection
from pages.shared.plain import plain, refuse
from pages.shared.session import session
from pages.shared.style import style
from pages.shared.wording import changed
from transformer.anatomy.stages import stages
from transformer.errors import InputError
from transformer.insight.names import full_head_name
from transformer.interventions import MASKS
from transformer.player.outputs import outputs
from transformer.player.pictures import run_curves
from transformer.player.sentences import without_masks
from transformer.recording.frame import sites_of
from transformer.recording.view import FAILED, RunView
from transformer.runs.registry import REGISTRY
from transformer.runs.watched import Watched

PANELS = {
    "mask_scores": ("scale", "Scores before"),
    "mask_layer": ("mask", "The mask"),
    "mask_after": ("masked", "Scores after"),
    "mask_weights": ("weights", "Weights"),
}
"""Key of each picture to the stage of the forward pass that it shows, and its title."""
TALL = "max(270px, calc(100vh - 470px))"


def compared_with(run: Watched) -> RunView | None:
    """The run that this one was started from, if only their masks differ."""
    parent = known.parent_of(run.view)
    found = None if parent is None else REGISTRY.get(parent.id)
    if found is None or found.view.frame is None or found.config.model.masks == run.config.model.masks:
        return None
    return found.view if {*changed(found, run.config)} <= {f"{mask}_mask" for mask in MASKS} else None


style()
run = selection.chosen_run() or drafts.draft(PRESETS[DEFAULT_PRESET].config, keep=True)
config = session.settings = to_train(run)
run = begin(run, config, edited=False)
model = run.config.model
before = compared_with(run)
if session.word is None and "word" not in st.query_params:
    session.word = min((question.text for question in run.questions), key=len)  # with padding

lost_run("This page shows another model. Press Start to train it.")
seen = run.view
controls(run, seen, {}, config, buttons_row(), start=beside(run))
control = st.container(key="step_control")
with st.container(key="mask_switches", horizontal=True, vertical_alignment="center", gap="medium"):
    mask_switches(run)
    two = st.container(key="two_losses", width="stretch")
mask_problem()
both = st.container(key="both_runs")
sentence = st.container(key="moment")
with st.container(key="probe_words", horizontal=True, vertical_alignment="center", gap="small"):
    word = word_choice(run)
with st.sidebar:
    with st.container(key="mask_kind"):
        kind = kind_choice(model, opens_on="decoder")  # the attention that has both masks
    head_choice(seen, selection.shown_frame(seen), kind, key="mask_head", label="Head")
    st.caption(explained(kind, seen.masks))
    st.caption(
        "All words of a batch are padded with [PAD] to the length of the longest one. Hover over a row of "
        "the mask to see which tokens it may look at, and which mask blocks the others."
    )
    with st.container(key="own_words", horizontal=True, vertical_alignment="bottom", gap="xsmall"):
        probe_words(run)
places = {
    key: column.container(key=key)
    for key, column in zip(PANELS, st.columns(len(PANELS), gap="small"), strict=True)
}
problem = st.container(key="mask_refused")
left, right = st.columns([1.15, 1], gap="medium")
curves, written = left.container(key="mask_curves"), right.container(key="mask_outputs")
run_list(run)


def fixed(view: RunView) -> tuple[object, ...]:
    """The state that the switches depend on."""
    return (masks_pending(view),)


def live(view: RunView) -> int | None:
    """Draw the stages around the mask, of the newest snapshot or of the chosen step."""
    frame, snapshot = selection.shown_frame(view), asked_snapshot(view)
    said, refused = "", view.reason if view.state == FAILED else ""
    drawn = {}
    if frame is not None and snapshot is not None:
        said = " ".join(filter(None, ("" if before else without_masks(frame), learned_with(view))))
        site, head = selection.head(frame, sites_of(frame.axes, kind))
        try:
            trace = trace_of(view, snapshot, word, batch_of(run, word))
            walk = stages(trace, site, head, focus(), only=[stage for stage, _ in PANELS.values()])
            drawn = {stage.key: stage for stage in walk}
        except InputError as error:
            refused = str(error)
        if selection.step() is not None and frame.interventions.masks != view.interventions.masks:
            said += " The switches show the masks at the newest step."
    with sentence:
        st.html(f"<div>{said}</div>")
    with two:
        st.html(two_losses(frame) if before is None else "<div></div>")
    with both:
        st.html("<div></div>" if before is None or frame is None else compared(before, view, word))
    for key, (stage_key, name) in PANELS.items():
        with places[key]:
            if stage_key not in drawn:
                st.skeleton(height=270)
                continue
            stage = drawn[stage_key]
            draw_panels(
                stage.panels,
                at=stage.focus,
                title=f"<b>{name}</b> · step {snapshot.step:,}",
                step=snapshot.step,
                width=205.0,
                same_scale=drawn["scale"].panels if stage_key == "masked" else (),
                key=f"{key}_figure",
                height=TALL,
                file_name=f"headlight-{stage_key}-{word}-{site}-head{head + 1}-step{snapshot.step}",
            )
    with problem:
        if refused:
            refuse(refused)
        elif drawn:
            st.caption(
                ":gray-background[ ╱ ] blocked by the **causal** mask &nbsp; "
                ":orange-background[ • ] blocked by the **padding** mask. "
                f"“{plain(word)}” in its batch of {len(run.questions)} words · "
                f"{full_head_name(site, head)} · model of step {snapshot.step:,} · seed {view.config.seed}. "
                "Each row of weights adds up to 100%."
            )
        else:
            st.markdown("")
    with curves:
        live_figure(
            run_curves(view, before, None if selection.step() is None or frame is None else frame.step),
            key="mask_curves_figure",
            height="300px",
            file_name=f"headlight-masks-seed{view.config.seed}",
        )
    with written:
        st.caption("The batch, padded to its longest word:")
        st.html(batch_table(run, word))
        st.caption("Free-running output:")
        if frame is not None:
            st.html(outputs(frame, word))
    selection.keep_in_link()
    return selection.answered(view)


following(run, live, word=word, control=control, fixed=fixed)
keyring()

"""Masks: scores before the mask, the mask, scores after it, weights; and what breaks without it."""

from __future__ import annotations

import streamlit as st

from pages.controls.buttons import buttons_row, controls
from pages.controls.commands import start_if_asked, store_error
from pages.controls.mask_switches import beside, mask_problem, mask_switches, masks_pending, to_train
from pages.controls.racing import race
from pages.controls.words import askable, draw_word_box, word_choice
from pages.explanations.explanation import explanation
from pages.explanations.mask_words import batch_table, learned_with, others, two_losses, with_masks
from pages.player.figure import live_figure
from pages.player.following import following
from pages.runs import drafts
from pages.runs.keyring import keyring
from pages.runs.run_list import lost_run_notice, run_list
from pages.shared import selection
from pages.shared.session import Place, session, take_requests
from pages.shared.style import style
from transformer.player.outputs import outputs
from transformer.player.pictures import run_curves
from transformer.player.sentences import without_masks
from transformer.recording.view import RunView
from transformer.shared.attention_info import sites_of

STAGES = ("scale", "mask", "masked", "weights")
"""Tables of an open attention that this page shows."""


style()
run = selection.chosen_run() or drafts.draft()
config = session.settings = to_train(run)
if beside(run):
    for _ in take_requests("start"):
        with store_error():
            race(run, [config])
run = start_if_asked(run, config, edited=False)
if session.word is None and "word" not in st.query_params:
    session.word = min(askable(run), key=len)  # the shortest, which has padding if others are longer
session.arranged = {}  # here the model is shown as it was trained
seen = run.view
kind = selection.kind(run.view, opens_on="decoder")  # the attention that has both masks
if session.box is None and seen.frame is not None:
    session.box = Place(*selection.head(seen.frame, sites_of(seen.frame.axes, kind)))

lost_run_notice("This page shows another model. Press Start to train it.")
row = st.container(key="masks_row", horizontal=True, vertical_alignment="center")
with row, st.container(key="mask_switches", horizontal=True, width="content"):
    mask_switches(run)
sentence = row.container(key="moment", width="stretch")
mask_problem()
races = beside(run)
controls(run, seen, {}, config, buttons_row(), start=races, key="race_start" if races else "run_start")
with st.sidebar:
    st.caption(
        "All examples of a batch are padded with [PAD] to the length of the longest one. Point at a cell of "
        "the mask to see which mask blocks it."
    )
    word = word_choice(run)
draw_word_box(run)
picture = st.container(key="step_control")
below = st.container(key="anatomy_formula")
two = st.container(key="two_losses")
left, right = st.columns([1.15, 1], gap="medium")
curves, written = left.container(key="mask_curves"), right.container(key="mask_outputs")
run_list(run)


def fixed(view: RunView) -> tuple[object, ...]:
    """The state that the switches depend on: whether one has not taken effect yet."""
    return (masks_pending(view),)


def live(view: RunView) -> None:
    """Draw the sentence above the picture and everything below it, at the newest step or the chosen one."""
    frame = selection.shown_frame(view)
    text = ""
    if frame is not None:
        text = " ".join(filter(None, (without_masks(frame), with_masks(view), learned_with(view))))
        if selection.step() is not None and frame.interventions.masks != view.interventions.masks:
            text += " The switches show the masks at the newest step."
    with below:
        explanation(view, word, others(run, word))
    with sentence:
        st.html(f"<div>{text}</div>")
    with two:
        st.html(two_losses(frame, view.config.train.task))
    with curves:
        live_figure(
            run_curves(view, None if selection.step() is None or frame is None else frame.step),
            key="mask_curves_figure",
            height="300px",
            file_name=f"headlight-masks-seed{view.config.seed}",
        )
    with written:
        st.caption("The batch, padded to its longest example:")
        st.html(batch_table(run, word))
        st.caption("What the model writes on its own:")
        if frame is not None:
            st.html(outputs(frame, word))


following(
    run,
    live,
    word=word,
    control=picture,
    fixed=fixed,
    parts="model",
    picture={"only": STAGES, "how": {"batch": "1"}},
)
keyring()

"""Beams: beam search as a tree, and the greedy answer for comparison."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from pages.player.figure import live_figure
from pages.questions.asking import Draw, model_of
from pages.questions.readings import RIGHT, as_written
from pages.settings.form import drop_infinite
from pages.shared.plain import show_error_in
from transformer.errors import InputError
from transformer.figures.picture import escaped
from transformer.figures.tree import beam_tree
from transformer.recording.view import RunView
from transformer.recording.weights import Snapshot
from transformer.runs.any_run import AnyRun

if TYPE_CHECKING:  # imports torch
    from transformer.asking.answers import Answer
    from transformer.decoding.tree import Beams, Candidate

TALL = "max(340px, calc(100vh - 470px))"


def beams_tab(run: AnyRun, word: str) -> Draw:
    """Draw the widgets of the tab; return the function that draws the rest at a step."""
    train = run.config.train
    drop_infinite("beam_width")
    with st.sidebar:
        # The widgets have no limits: an error message states them for an invalid value.
        width = st.number_input(
            "Beams",
            value=train.beam_width,
            step=1,
            key="beam_width",
            bind="query-params",
            help="Number of beams, 1 to 16. One beam is greedy decoding.",
        )
        penalty = st.number_input(
            "Length penalty",
            value=train.length_penalty,
            step=0.1,
            format="%.4g",
            key="beam_penalty",
            bind="query-params",
            help="0 to 2. The score is the log-probability divided by ((5 + length) / 6) to this power "
            "(Wu et al., 2016). At 0, short answers are favoured.",
        )
        problem = st.container(key="beam_problem")
    verdict, tree, table = (st.container(key=f"beam_{name}") for name in ("verdict", "tree", "table"))

    def draw(view: RunView, snapshot: Snapshot | None, answer: Answer | None) -> None:
        """Draw the beam search for the word, with the model at one step."""
        beams, refused = None, ""
        try:
            if answer is not None and snapshot is not None:
                asked = model_of(view, snapshot)
                beams = asked.beams(answer.question.text, width, penalty)
        except InputError as error:
            refused = str(error)
        show_error_in(problem, refused)
        if beams is None:
            verdict.markdown("")
            for place in (tree, table):
                place.skeleton(height=200)
            return
        with verdict:
            st.html(_verdict(beams))
        with tree:
            at = f"beams{beams.width}-step{beams.step}-seed{view.config.seed}"
            live_figure(
                beam_tree(
                    beams.tree.nodes,
                    list(beams.tokens),
                    title=f"<b>{_beams_of(beams.width)}</b> · step {beams.step:,}"
                    f"<br><span style='font-size:0.75em'>“{escaped(beams.question.text)}” · "
                    f"length penalty {beams.length_penalty:g} · seed {view.config.seed}</span>",
                    step=beams.step,
                ),
                key="beam_tree_figure",
                height=TALL,
                file_name=f"headlight-{beams.question.text}-{at}",
            )
        with table:
            st.caption(_how_to_read(beams, view.config.model.topology == "encoder-only"))
            st.dataframe(
                pd.DataFrame(
                    [_row(_beams_of(beams.width), output) for output in beams.outputs]
                    + [_row("greedy", beams.greedy)]
                ),
                hide_index=True,
                column_config={
                    "probability": st.column_config.NumberColumn(format="%.3g%%"),
                    "score": st.column_config.NumberColumn(format="%.3f"),
                },
            )

    return draw


def _verdict(found: Beams) -> str:
    """The answers of beam search and greedy decoding side by side, as HTML."""
    sentence = f"{_beams_of(found.width)} → {_said(found.outputs[0])}"
    beside = _said(found.greedy) if found.differs_from_greedy else "<b>the same</b>"
    return (
        f"<div class='hl-verdict' data-step='{found.step}'>{sentence}<span style='padding-left: 2.5rem'>"
        f"greedy → {beside}</span></div>"
    )


def _said(found: Candidate) -> str:
    mark = "" if found.right is None else f" {RIGHT[found.right]}"
    return f"<b>{html.escape(as_written(found.text, found.stopped))}</b>{mark}"


def _beams_of(width: int) -> str:
    return "1 beam" if width == 1 else f"{width} beams"


def _how_to_read(found: Beams, at_once: bool) -> str:
    if at_once:
        return (
            "An encoder predicts all tokens at once, so there is nothing to search: its one beam is greedy "
            "decoding."
        )
    if found.width == 1:
        return "One beam is greedy decoding: the most probable token at each position."
    ended = "" if found.outputs[0].stopped else " No beam has ended: the most probable one is shown."
    return (
        f"Each column adds one token and keeps the {found.width} most probable continuations, best first. "
        f"The answer is the finished beam with the highest score.{ended}"
    )


def _row(by: str, found: Candidate) -> dict[str, object]:
    return {
        "found by": by,
        "answer": as_written(found.text, found.stopped),
        "score": found.score,
        "probability": 100 * found.probability,
        "right": {True: "✓ right", False: "✗ wrong", None: "not known"}[found.right],
    }

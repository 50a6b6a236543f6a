"""Measure: the scores of each head over training, and the accuracy by length and position."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from pages.player.figure import live_figure
from pages.questions.asking import Draw, model_of
from pages.shared import selection
from transformer.figures.lengths import length_heatmap
from transformer.insight.names import short_head_name
from transformer.insight.scores import THRESHOLD
from transformer.player.pictures import SCORES, score_picture
from transformer.recording.frame import Frame
from transformer.recording.view import RunView
from transformer.recording.weights import Snapshot
from transformer.runs.any_run import AnyRun
from transformer.tasks.unknown import mostly_known

if TYPE_CHECKING:
    from transformer.asking.answers import Answer

_ALL_UNKNOWN = "All scores are 0: every test example has too many unknown tokens to be scored."
_HEIGHT = "max(300px, calc(100vh - 460px))"


def measure_tab(run: AnyRun, word: str) -> Draw:
    """Draw the widgets of the tab; return the function that draws its figures and its table."""
    left, right = st.columns(2, gap="medium")
    names, target = _names(run.view.frame), run.task.target_score
    with left:
        score = st.selectbox(
            "Score over training",
            names,
            index=names.index(target),
            key="measure_score",
            format_func=SCORES.get,
            persist_state="session",
            help="Score of each head on up to 64 test examples, at every measured step.",
        )
    with right:
        st.markdown("**Accuracy by length and position**")
        st.caption("Free-running. “All right” counts the answers that have every token right and stop there.")
        lengths = st.container(key="length_report")
    score = score if score in names else target
    curves, table = left.container(key="score_curves"), st.container(key="head_scores")

    def draw(view: RunView, snapshot: Snapshot | None, answer: Answer | None) -> None:
        """Draw one score at all steps, and the accuracy and all scores at, or near, the chosen step."""
        frame = selection.shown_frame(view)
        if frame is None or snapshot is None:
            for place in (curves, lengths, table):
                place.skeleton(height=200)
            return
        with curves:
            live_figure(
                score_picture(view, score, marker=None if selection.step() is None else frame.step),
                key="score_curves_figure",
                height=_HEIGHT,
                file_name=f"headlight-{score}-seed{view.config.seed}",
            )
        report = model_of(view, snapshot).by_length
        with lengths:
            live_figure(
                length_heatmap(
                    report.share,
                    np.array(report.asked),
                    report.exact,
                    longest_trained=run.task.corpus.longest_question,
                    title=f"accuracy by position · step {snapshot.step:,} · seed {view.config.seed}",
                    step=snapshot.step,
                    shortest=report.lengths[0],
                ),
                key="length_report_figure",
                height=_HEIGHT,
                file_name=f"headlight-lengths-step{snapshot.step}-seed{view.config.seed}",
            )
        with table:
            st.caption(
                f"Scores at step {frame.measurement.step:,}, on up to 64 test examples, over the rows that "
                "write or stand for their tokens. Entropy is 0 if the weight on their tokens is all on one, "
                "and 1 if all of them get the same, or special tokens get everything. A head’s role is its "
                f"highest score, from {THRESHOLD:g} on. By place "
                "and by token: the share of its weights that places alone, or pairs of tokens alone, explain "
                "(adjusted R²), on examples of one length; the two are measured apart and may add up to "
                "more than 1."
                + ("" if mostly_known(run.task, run.task.held_out(), 1) else f" {_ALL_UNKNOWN}")
            )
            names = _names(frame)
            rows = [
                {"head": short_head_name(site, head), "role": frame.role(site, head)}
                | {name: float(scores[name][head]) if name in scores else None for name in names}
                for site, scores in frame.head_scores.items()
                for head in range(len(next(iter(scores.values()))))
            ]
            st.dataframe(
                pd.DataFrame(rows),
                hide_index=True,
                column_config={"head": st.column_config.TextColumn(pinned=True)}
                | {
                    name: st.column_config.ProgressColumn(
                        SCORES[name], min_value=0.0, max_value=1.0, format="percent"
                    )
                    for name in names
                },
            )

    return draw


def _names(frame: Frame | None) -> list[str]:
    """The names of the scores that this model's heads have, in display order; all before there is a frame."""
    sites = frame.head_scores.values() if frame else ()
    return [name for name in SCORES if frame is None or any(name in scores for scores in sites)]

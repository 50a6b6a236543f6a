"""The curves of a run as pictures, and as numbers for JSON; used by the player, the pages and exports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from transformer.config import TASK_INFO
from transformer.figures.curves import Series, curves, ghost, highest_loss, number_curves
from transformer.figures.picture import Array, Picture
from transformer.figures.score_curves import score_curves
from transformer.insight.names import short_head_name, without_prefix
from transformer.insight.scores import ROLES
from transformer.recording.metrics import Metrics
from transformer.recording.view import ENDED, RunView
from transformer.shared.attention_info import reading_sites

SCORES = {
    **ROLES,
    "focus": "focus (highest weight of a row)",
    "entropy": "entropy (how even)",
    "place": "by place (explained by places alone)",
    "token": "by token (explained by tokens alone)",
}
"""The name of each score on the screen."""
SHORT_AXIS = 400
"""Least last step of the axis of curves until the run ends, unless fewer steps are planned."""
COVERED = 0.01
"""A curve that nowhere differs by more than this share lies under the curve drawn over it, and would not be
seen."""
MOST_LINES = 48
"""Maximum number of heads drawn; if there are more, those whose newest score is highest, or whose newest
worth differs most from 0."""


def listed(values: Array, digits: int = 5) -> list[Any]:
    """Numbers as nested lists for JSON, rounded to a number of decimal places; NaN becomes None."""
    rounded = np.round(values.astype(np.float64), digits)
    if not np.isnan(rounded).any():
        numbers: list[Any] = rounded.tolist()
        return numbers
    cells = rounded.astype(object)
    cells[np.isnan(rounded)] = None
    return list(cells.tolist())


def run_curves(view: RunView, marker: int | None = None) -> Picture:
    """Loss and accuracy of a run; for an own model, its loss and the other numbers that it records."""
    if view.own is not None:
        steps, *numbers = view.metrics.columns("step", "loss", *view.own.curves)
        named = dict(zip(("loss", *view.own.curves), numbers, strict=True))
        if len(steps) and np.isnan(named["loss"]).all():
            lossless = named.pop("loss")
            named = named or {"no loss was given": lossless}
        return number_curves(steps, named, run_id=view.id, marker=marker)
    return curves(
        _series(view.metrics),
        planned=_end_of_axis(view),
        highest_loss=highest_loss(view.config.model.tgt_vocab_size, view.metrics.column("free_loss")),
        run_id=view.id,
        marker=marker,
        called=(TASK_INFO[view.config.train.task].units, TASK_INFO[view.config.train.task].plural),
    )


def _end_of_axis(view: RunView) -> int:
    """The last step of the axis of curves. Until the run ends, it is `SHORT_AXIS`, doubled as often as the
    steps need, but not more than the planned steps: so short curves of a long run can be seen."""
    if view.state in ENDED:
        return max(1, view.step)
    end = SHORT_AXIS
    while end < view.step:
        end *= 2
    return min(end, view.planned)


def ghost_of(view: RunView, over: RunView) -> dict[str, Any] | None:
    """The curves of a run, to be drawn as a ghost behind those of another run; None if the loss curve of the
    other run covers that of this one."""
    before, after = view.metrics.columns("loss")[0], over.metrics.columns("loss")[0]
    if 0 < len(before) <= len(after) and np.allclose(
        before, after[: len(before)], rtol=COVERED, equal_nan=True
    ):
        return None
    return {name: listed(values) for name, values in ghost(_series(view.metrics)).items()}


def _series(metrics: Metrics) -> Series:
    names = ("step", "loss", "held_out_loss", "token_accuracy", "exact", "free_loss")
    return Series(*metrics.columns(*names))


def head_picture(view: RunView, target_score: str) -> Picture:
    """Over the training, what each head is worth if that was measured; else the target score of each head
    that reads the question. At most `MOST_LINES` heads."""
    ablations = view.frames.ablations
    if not ablations:
        return score_picture(view, target_score, reading_sites(view.frames[-1].axes))
    steps, losses = view.metrics.columns("step", "loss")
    newest = ablations[-1]
    heads = sorted(
        ((site, head) for site, changes in newest.changes.items() for head in range(len(changes))),
        key=lambda one: -abs(np.nan_to_num(newest.changes[one[0]][one[1]])),
    )[:MOST_LINES]
    return score_curves(
        np.array([ablation.step for ablation in ablations], dtype=float),
        {
            _line_name(site, head, newest.without): np.array(
                [
                    ablation.changes[site][head] if site in ablation.changes else np.nan
                    for ablation in ablations
                ],
                dtype=float,
            )
            for site, head in heads
        },
        steps,
        losses,
        score_name=f"{newest.name} without a head, minus {newest.name}",
        planned=_end_of_axis(view),
        highest_loss=highest_loss(2, losses),
        run_id=f"{view.id} worth",
        shares=False,
    )


def score_picture(
    view: RunView, score: str, sites: Sequence[str] | None = None, marker: int | None = None
) -> Picture:
    """One score of every head, but of at most `MOST_LINES`, over the training, above the loss.

    Args:
        view: a run with a measurement that has this score.
        score: a key of `SCORES`.
        sites: the sites whose heads are drawn; by default all sites that have this score.
        marker: the step to mark; None hides the marker.
    """
    measured = [
        measurement
        for measurement in view.frames.measurements
        if any(
            score in scores for scores in measurement.head_scores.values()
        )  # an older version had fewer scores
    ]
    heads = [
        (site, head)
        for site, scores in measured[-1].head_scores.items()
        if score in scores and (sites is None or site in sites)
        for head in range(len(scores[score]))
    ]
    newest = measured[-1].head_scores
    if len(heads) > MOST_LINES:
        heads = sorted(heads, key=lambda one: -newest[one[0]][score][one[1]])[:MOST_LINES]
    steps, losses = view.metrics.columns("step", "loss")
    return score_curves(
        np.array([one.step for one in measured], dtype=float),
        {
            _line_name(site, head, newest): np.array(
                [one.head_scores[site][score][head] for one in measured], dtype=float
            )
            for site, head in heads
        },
        steps,
        losses,
        score_name=SCORES[score],
        planned=_end_of_axis(view),
        highest_loss=highest_loss(2, losses) if view.own else highest_loss(view.config.model.tgt_vocab_size),
        run_id=f"{view.id} {score}",
        marker=marker,
    )


def _line_name(site: str, head: int, sites: Iterable[str]) -> str:
    return short_head_name(without_prefix(site, sites), head).replace(" · head ", " h")

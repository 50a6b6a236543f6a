"""From a run to its pictures: which head, which labels, which numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from transformer.figures.curves import Series, curves, highest_loss
from transformer.figures.labels import map_axes, tile_name, wrong_predictions
from transformer.figures.maps import large_map, map_strip
from transformer.figures.picture import Picture, escaped
from transformer.figures.score_curves import score_curves
from transformer.insight.names import full_head_name, short_head_name, shortened
from transformer.insight.narrator import narrate
from transformer.insight.scores import ROLES, THRESHOLD, gold_cells
from transformer.recording.frame import Frame, Probe
from transformer.recording.metrics import Metrics
from transformer.recording.view import RunView

if TYPE_CHECKING:  # it brings torch
    from transformer.asking import Answer, Reading


_seen_by_many = lru_cache(maxsize=64)
"""A class looks at the same few frames: a picture of one is made once."""


def sites_of(seen: Frame | Reading, kind: str) -> list[str]:
    """The sites of one kind of attention, first layer first."""
    return [site for site, axes in seen.axes.items() if axes.kind == kind]


def wrong_rows(frame: Frame, probe: Probe, site: str) -> dict[int, str]:
    """Rows of a map whose prediction is wrong, with what they would write."""
    return wrong_predictions(frame.axes[site], probe.expected, probe.predicted)


@_seen_by_many
def large_picture(frame: Frame, word: str, site: str, head: int, seed: int, outline: bool) -> Picture:
    """One head of one site for one word."""
    row = frame.row_of(word)
    probe = frame.probes[row]
    axes = frame.axes[site]
    kind = axes.kind
    # Whether the right answer was read, or the model's own; an encoder alone reads neither.
    fed = "" if axes.writes and kind == "encoder" else f" · {fed_with(probe.forced)}"
    links = probe.links if outline and site in frame.scores else None
    cells = [] if links is None else gold_cells(kind, probe.n_read, links)
    return large_map(
        frame.map(row, site)[head],
        map_axes(frame.axes[site], probe, probe.expected),
        title=f"<b>{short_head_name(site, head)}</b> · step {frame.step:,}<br><span style='font-size:0.75em'>"
        f"{frame.role(site, head)} · “{escaped(shortened(probe.text))}” · seed {seed}{fed}</span>",
        step=frame.step,
        wrong=wrong_rows(frame, probe, site),
        outlined=cells,
    )


@_seen_by_many
def strip_picture(
    frame: Frame, word: str, sites: tuple[str, ...], heads: tuple[int, ...], chosen: tuple[str, int]
) -> Picture:
    """These heads of these sites for one word; lit where they have turned."""
    row = frame.row_of(word)
    probe = frame.probes[row]
    scores = [frame.scores.get(site) for site in sites]
    off = frame.interventions.ablated
    return map_strip(
        [frame.map(row, site)[list(heads)] for site in sites],
        map_axes(frame.axes[sites[0]], probe, probe.expected),
        names=[[tile_name(site, head, len(sites) * len(heads)) for head in heads] for site in sites],
        lit=[
            [s is not None and s[head] >= THRESHOLD and (site, head) not in off for head in heads]
            for site, s in zip(sites, scores, strict=True)
        ],
        chosen=(sites.index(chosen[0]), heads.index(chosen[1]))
        if chosen[0] in sites and chosen[1] in heads
        else None,
        step=frame.step,
    )


@_seen_by_many
def narration(frame: Frame, word: str, site: str, head: int) -> str:
    """What one head does with one word, in a sentence made from its numbers."""
    row = frame.row_of(word)
    probe, axes = frame.probes[row], frame.axes[site]
    if probe.text != word:
        return (
            f"“{word}” was not recorded yet at step {frame.step:,}: this is “{probe.text}”. "
            "The page Ask answers for any word at any step."
        )
    return narrate(
        frame.map(row, site)[head],
        axes.kind,
        probe.tokens(axes.query),
        probe.tokens(axes.key),
        **counts(probe, frame.aim),
    )


def fed_with(forced: bool) -> str:
    """What a decoder has read."""
    return "teacher-forced" if forced else "free-running"


def counts(read: Probe | Answer, aim: str) -> dict[str, Any]:
    """How many tokens there are on both sides, and which need which, for the narrator."""
    if aim == "mirror":
        return {"n_letters": read.n_read}
    return {"n_letters": read.n_read, "n_answer": read.n_written, "links": read.links}


def curves_picture(view: RunView, before: RunView | None, marker: int | None) -> Picture:
    """Loss and accuracy of a run, with the one before it as a ghost, its moments and the step looked at."""
    return curves(
        _series(view.metrics),
        planned=view.planned,
        highest_loss=highest_loss(view.config.model.tgt_vocab_size, view.metrics.column("free_loss")),
        run_id=view.id,
        ghost=_series(before.metrics) if before is not None else None,
        marker=marker,
        moments=tuple((moment.step, moment.text) for moment in view.moments),
    )


SCORES = {**ROLES, "focus": "focus (highest weight of a row)", "entropy": "entropy (how even)"}
"""Every score by the name that people read."""


def score_picture(
    view: RunView, score: str, marker: int | None, sites: Sequence[str] | None = None
) -> Picture:
    """One score of every head over the training, with the loss beside it.

    Args:
        sites: whose heads; by default all that have this score.
    """
    measured = view.frames.measurements
    heads = [
        (site, head)
        for site, scores in measured[-1].head_scores.items()
        if score in scores and (sites is None or site in sites)
        for head in range(len(scores[score]))
    ]
    steps, losses = view.metrics.columns("step", "loss")
    return score_curves(
        np.array([one.step for one in measured], dtype=float),
        {
            full_head_name(site, head).replace(" · head ", " h"): np.array(
                [one.head_scores[site][score][head] for one in measured], dtype=float
            )
            for site, head in heads
        },
        steps,
        losses,
        score_name=SCORES[score],
        threshold=THRESHOLD,
        planned=view.planned,
        highest_loss=highest_loss(view.config.model.tgt_vocab_size),
        run_id=f"{view.id} {score}",
        marker=marker,
    )


def _series(metrics: Metrics) -> Series:
    names = ("step", "loss", "held_out_loss", "token_accuracy", "exact", "free_loss")
    return Series(*metrics.columns(*names))

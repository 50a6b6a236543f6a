"""From an answer of the Ask page to its pictures: which head, which labels, which numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from transformer.figures.labels import map_axes, wrong_predictions
from transformer.figures.lines import line_view
from transformer.figures.maps import MapAxes, large_map, map_strip
from transformer.figures.picture import Array, Picture, escaped
from transformer.insight.names import short_head_name, shortened
from transformer.insight.rollout import pooled, rollout
from transformer.insight.scores import THRESHOLD
from transformer.recording.view import RunView

if TYPE_CHECKING:
    from transformer.answers import Answer, Reading


def axes_of(answer: Answer, reading: Reading, site: str) -> MapAxes:
    """Rows read "after reading X → writes Y": the right Y, or what the model itself goes on with."""
    answered = answer.expected if reading is answer.forced else reading.written
    return map_axes(reading.axes[site], reading, reading.to_write(answered))


def _weights(reading: Reading, site: str, head: int, pool: str) -> Array:
    """(Q, K) of one head, of all heads of its layer, or of all layers."""
    if pool == "rollout":
        through = rollout(reading.maps)[reading.axes[site].kind].astype(np.float32)
        if reading.axes[site].causal:  # of the future nothing can have come, whatever was taken away
            through[~np.tri(len(through), dtype=bool)] = np.nan
        return through
    if pool in ("mean", "max"):
        return pooled(reading.maps[site], pool)
    return reading.maps[site][head]


def _name(reading: Reading, site: str, head: int, pool: str) -> str:
    if pool == "rollout":
        return f"rollout, {reading.axes[site].kind}"
    if pool in ("mean", "max"):
        return f"{pool} over the heads of {site.split('.')[0]} {int(site.split('.')[1]) + 1}"
    return short_head_name(site, head)


def reading_map(
    answer: Answer,
    reading: Reading,
    site: str,
    head: int,
    *,
    seed: int,
    pool: str = "head",
    lit: int | None = None,
    note: str = "",
) -> Picture:
    """One map, large; the row that is being written is lit."""
    forced = reading is answer.forced
    expected = reading.to_write(answer.expected)
    wrong = wrong_predictions(reading.axes[site], expected, reading.predicted) if forced else {}
    asked = escaped(shortened(answer.question.text))
    fed = (
        "free-running" if reading is answer.free else "teacher-forced"
    )  # where nobody knows it, both are free
    return large_map(
        _weights(reading, site, head, pool),
        axes_of(answer, reading, site),
        title=f"<b>{_name(reading, site, head, pool)}</b> · step {answer.step:,}{note}"
        f"<br><span style='font-size:0.75em'>“{asked}” · seed {seed} · {fed}</span>",
        step=answer.step,
        wrong=wrong,
        lit_row=lit,
        off=pool == "head" and (site, head) in answer.interventions.ablated,
    )


def reading_strip(
    view: RunView, answer: Answer, reading: Reading, sites: list[str], chosen: tuple[str, int]
) -> Picture:
    """All heads of one kind as small maps."""
    frame = view.frame_at(answer.step)
    n_heads, off = len(reading.maps[sites[0]]), answer.interventions.ablated
    scores = [frame.scores.get(site) if frame else None for site in sites]
    return map_strip(
        [reading.maps[site] for site in sites],
        axes_of(answer, reading, sites[0]),
        lit=[
            [s is not None and s[head] >= THRESHOLD and (site, head) not in off for head in range(n_heads)]
            for site, s in zip(sites, scores, strict=True)
        ],
        chosen=(sites.index(chosen[0]), chosen[1]),
        off=[(sites.index(site), head) for site, head in off if site in sites],
        step=answer.step,
    )


def reading_lines(
    answer: Answer, reading: Reading, site: str, head: int, *, pool: str, lit: int | None
) -> Picture:
    """The same weights as lines between two columns of tokens."""
    return line_view(
        _weights(reading, site, head, pool),
        axes_of(answer, reading, site),
        title=f"{_name(reading, site, head, pool)} as lines: opacity is the weight",
        step=answer.step,
        lit_row=lit,
    )

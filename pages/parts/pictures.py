"""From a run to its pictures: which head, which labels, which numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from pages.parts.wording import short_head_name, tile_name
from transformer.figures.curves import Series, curves
from transformer.figures.maps import MapAxes, large_map, map_strip
from transformer.figures.masks import mask_picture
from transformer.figures.picture import Picture
from transformer.insight.scores import MIRROR_THRESHOLD, mirrored_cells
from transformer.runs.metrics import Metrics
from transformer.runs.view import Frame, Probe, RunView
from transformer.tasks.tokenizer import PAD


@lru_cache(maxsize=256)
def _axes(
    query: str,
    key: str,
    causal: bool,
    src_tokens: tuple[str, ...],
    tgt_tokens: tuple[str, ...],
    expected: tuple[str, ...],
) -> MapAxes:
    if query == "src":
        rows, row_title = src_tokens, "letter at work"
    else:
        rows = tuple(f"{read} → {write}" for read, write in zip(tgt_tokens, expected, strict=True))
        row_title = "after reading → writes"
    column_title = "letters of the word" if key == "src" else "letters written so far"
    return MapAxes(
        rows=rows,
        columns=src_tokens if key == "src" else tgt_tokens,
        row_title=row_title,
        column_title=column_title,
        causal=causal,
    )


def map_axes(frame: Frame, probe: Probe, site: str) -> MapAxes:
    """What stands at the axes of this site's maps of a probe: the tokens really attended to."""
    axes = frame.axes[site]
    return _axes(axes.query, axes.key, axes.causal, probe.src_tokens, probe.tgt_tokens, probe.expected)


def sites_of(frame: Frame, kind: str) -> list[str]:
    """The sites of one kind of attention, first layer first."""
    return [site for site, axes in frame.axes.items() if axes.kind == kind]


def wrong_rows(frame: Frame, probe: Probe, site: str) -> dict[int, str]:
    """Rows of a decoder map whose prediction is wrong, with what they would write."""
    if frame.axes[site].query == "src":
        return {}
    pairs = zip(probe.expected, probe.predicted, strict=True)
    return {i: predicted for i, (expected, predicted) in enumerate(pairs) if expected != predicted}


def large_picture(frame: Frame, word: str, site: str, head: int, seed: int, outline: bool) -> Picture:
    """One head of one site for one word."""
    row = frame.row_of(word)
    probe = frame.probes[row]
    score = f" · mirror {frame.scores[site][head]:.2f}" if site in frame.scores else ""
    cells = mirrored_cells(len(probe.text)) if outline and frame.axes[site].kind == "cross" else []
    return large_map(
        frame.map(row, site)[head],
        map_axes(frame, probe, site),
        title=f"<b>{short_head_name(site, head)}</b>{score} · step {frame.step:,}"
        f"<br><span style='font-size:0.75em'>“{probe.text}” · seed {seed} · teacher-forced</span>",
        step=frame.step,
        wrong=wrong_rows(frame, probe, site),
        outlined=cells,
    )


def strip_picture(
    frame: Frame, word: str, sites: Sequence[str], heads: Sequence[int], chosen: tuple[str, int]
) -> Picture:
    """These heads of these sites for one word; lit where the mirror score has crossed the threshold."""
    row = frame.row_of(word)
    scores = [frame.scores.get(site) for site in sites]
    return map_strip(
        [frame.map(row, site)[list(heads)] for site in sites],
        map_axes(frame, frame.probes[row], sites[0]),
        names=[[tile_name(site, head, len(sites) * len(heads)) for head in heads] for site in sites],
        lit=[[s is not None and s[h] >= MIRROR_THRESHOLD for h in heads] for s in scores],
        chosen=(sites.index(chosen[0]), heads.index(chosen[1]))
        if chosen[0] in sites and chosen[1] in heads
        else None,
        step=frame.step,
    )


def mask_panels(frame: Frame, word: str, site: str, head: int, seed: int) -> Picture:
    """The masks of one word of the batch as the model saw it, padding included, and one head's weights."""
    row, kind = frame.row_of(word), frame.axes[site]
    allowed = frame.allowed(site)[row]
    causal = np.tri(*allowed.shape, dtype=bool) if kind.causal else np.ones(allowed.shape, dtype=bool)
    padding = np.broadcast_to(frame.real(kind.key)[row], allowed.shape)
    weights = np.where(allowed, frame.maps[site][row, head].astype(np.float32), np.float32("nan"))
    return mask_picture(
        weights,
        batch_axes(frame, row, site),
        causal=causal,
        padding=np.ascontiguousarray(padding),
        head=short_head_name(site, head),
        title=f"“{frame.probes[row].text}” in its batch · step {frame.step:,} · seed {seed}",
        step=frame.step,
    )


def batch_axes(frame: Frame, row: int, site: str) -> MapAxes:
    """The axes of one word in its batch, filled up with [PAD]."""
    kind, axes = frame.axes[site], map_axes(frame, frame.probes[row], site)
    n_rows, n_columns = frame.real(kind.query).shape[1], frame.real(kind.key).shape[1]
    return replace(
        axes,
        rows=axes.rows + (PAD,) * (n_rows - len(axes.rows)),
        columns=axes.columns + (PAD,) * (n_columns - len(axes.columns)),
    )


def curves_picture(view: RunView, before: RunView | None) -> Picture:
    """Loss and accuracy of a run, with the one before it as a ghost."""
    return curves(
        _series(view.metrics),
        planned=view.planned,
        highest_loss=round(float(np.log(view.config.model.tgt_vocab_size)) + 0.5, 1),
        run_id=view.id,
        ghost=_series(before.metrics) if before is not None else None,
    )


def _series(metrics: Metrics) -> Series:
    names = ("step", "loss", "held_out_loss", "token_accuracy", "exact")
    return Series(*metrics.columns(*names))

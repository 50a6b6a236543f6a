"""What an exported page holds of a run, as JSON: every frame's words and numbers, the maps tightly packed."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from transformer.exports.frames import (
    KIND_NAMES,
    axes_of,
    fed_with,
    film_frames,
    map_of,
    probe_of,
    widest,
    wrong_rows,
)
from transformer.figures import colors
from transformer.figures.curves import Series, curves, highest_loss
from transformer.figures.labels import tile_name
from transformer.figures.maps import large_map, map_strip
from transformer.figures.picture import escaped
from transformer.insight.blocking import BY_HAND, FUTURE, PADDING
from transformer.insight.names import examples_of, short_head_name, shortened
from transformer.insight.scores import THRESHOLD
from transformer.recording.frame import Array, Frame, Probe
from transformer.recording.view import RunView

MOST_FRAMES = 120
LEAST_FRAMES = 8
LONGEST = 28
"""Letters of the example in a heading."""
ROOM = 8 * 2**20
"""Bytes of maps before they are packed; a large model shows fewer steps."""
PARTS = 1000
"""Weights are kept in thousandths, which is what a page can show ..."""
BLOCKED = {FUTURE: 65534, PADDING: 65533, BY_HAND: 65535}
"""... and these stand for a cell that is blocked, by why it is."""
_LOOKS = (
    (FUTURE, colors.CAUSAL, "╱", "blocked: in the future", "Hatched cells lie in the future"),
    (PADDING, colors.PADDING, "•", "blocked: padding", "Dotted cells are padding"),
    (BY_HAND, colors.TAKEN, "✕", "blocked by hand", "Crossed cells were blocked by hand"),
)
_BACKWARDS = "A word read backwards draws a line from top right to bottom left"
READING_BACKWARDS = {
    "cross": "Each row is a letter being written (“after reading → writes”), each column a letter of the "
    f"word. {_BACKWARDS}.",
    "encoder": "Each row is a letter of the word at work, each column a letter that it looks at.",
    "decoder": "Each row is a letter being written, each column a letter written so far.",
    "sequence": "Rows and columns are the word, [SEP] and what is written so far; from [SEP] on each row "
    f"writes (“after reading → writes”). {_BACKWARDS}, there and over the letters of the word.",
    "encoder that writes": "Each row is a letter of the word and what it becomes, each column a letter that "
    f"it looks at. {_BACKWARDS}.",
}
"""How to read the maps of a kind of attention where words are read backwards ..."""
READING = {
    "cross": "Each row is a token being written (“after reading → writes”), each column a token of the "
    "question.",
    "encoder": "Each row is a token of the question at work, each column a token that it looks at.",
    "decoder": "Each row is a token being written, each column a token written so far.",
    "sequence": "Rows and columns are the question, [SEP] and what is written so far; from [SEP] on each row "
    "writes (“after reading → writes”).",
    "encoder that writes": "Each row is a token of the question and what it becomes, each column a token "
    "that it looks at.",
}
"""... and in other tasks ..."""
_ALIGNED = " Where a head reads what its row writes, the cells of the alignment are bright."
"""... whose answers are aligned with their questions."""


def page_data(view: RunView) -> dict[str, Any]:
    """Everything that the page shows, ready for JSON.

    Raises:
        InputError: nothing has been recorded yet.
    """
    frames = film_frames(view, 2)
    frames = film_frames(view, min(MOST_FRAMES, max(LEAST_FRAMES, ROOM // _map_bytes(frames[-1]))))
    newest = frames[-1]
    kinds = {}
    for kind in view.config.model.kinds:
        sites = [site for site, axes in newest.axes.items() if axes.kind == kind]
        writes = newest.axes[sites[0]].writes
        kinds[kind] = {
            "name": KIND_NAMES[kind],
            "sites": sites,
            "writes": writes,
            "reading": _reading(view.config.train.task, newest, sites[0]),
        }
    texts = list(dict.fromkeys(probe.text for frame in reversed(frames) for probe in frame.probes))
    return {
        "seed": view.config.seed,
        "examples": examples_of(view.config.train.task),
        "token": "letter" if view.config.train.task == "reverse" else "token",
        "parts": PARTS,
        "blocked": [
            {"code": BLOCKED[reason], "color": color, "mark": mark, "why": why, "cells": cells}
            for reason, color, mark, why, cells in _LOOKS
        ],
        "mark": colors.MARK,
        "kinds": kinds,
        "heads": {
            site: [short_head_name(site, head) for head in range(view.config.model.n_heads)]
            for site in newest.axes
        },
        "frames": [_frame(frame) for frame in frames],
        "words": {text: _word(frames, text, kinds) for text in texts},
        "curves": _curves(view),
        "moments": [{"step": moment.step, "text": moment.text} for moment in view.moments],
    }


def _reading(task: str, frame: Frame, site: str) -> str:
    """How to read the maps of a site, and of the others of its kind."""
    axes = frame.axes[site]
    kind = "encoder that writes" if axes.writes and axes.kind == "encoder" else axes.kind
    if task == "reverse":
        return READING_BACKWARDS[kind]
    return READING[kind] + (_ALIGNED if frame.aim == "gold" and site in frame.scores else "")


def _map_bytes(frame: Frame) -> int:
    """What the maps of one frame take."""
    return 2 * sum(frame.map(row, site).size for row in range(len(frame.probes)) for site in frame.axes)


def packed(weights: Array, reasons: Array) -> dict[str, Any]:
    """Weights in [0, 1], and why the others are blocked, as text: thousandths in 16 bits, deflated."""
    codes = np.rint(np.nan_to_num(weights).clip(0.0, 1.0) * PARTS).astype("<u2")
    for reason, code in BLOCKED.items():
        codes[reasons == reason] = code
    return {"shape": codes.shape, "b": base64.b64encode(zlib.compress(codes.tobytes(), 9)).decode()}


def _frame(frame: Frame) -> dict[str, Any]:
    return {
        "step": frame.step,
        "loss": frame.loss,
        "right": (frame.evaluation.right, frame.evaluation.total),
        "rightStep": frame.evaluation.step,
        "taken": frame.interventions.text() if frame.interventions else "",
        "roles": {
            site: [frame.role(site, head) for head in range(frame.n_heads(site))] for site in frame.axes
        },
        "lit": {
            site: [
                bool(score >= THRESHOLD) and (site, head) not in frame.interventions.ablated
                for head, score in enumerate(scores)
            ]
            for site, scores in frame.scores.items()
        },
        "written": max((one.output_step or 0 for one in frame.probes), default=0),
        "probes": {probe.text: _probe(frame, probe) for probe in frame.probes},
    }


def _probe(frame: Frame, probe: Probe) -> dict[str, Any]:
    """What was written, each token with whether it is right; as a whole null where nobody knows.

    The letters are null where the word had not been asked yet.
    """
    asked = probe.output_step is not None
    writing = next(site for site, axes in frame.axes.items() if axes.writes)
    return {
        "letters": probe.marked if asked else None,
        "right": probe.right if asked and probe.forced else None,
        "over": probe.written_at,
        "wrong": {i: escaped(would) for i, would in wrong_rows(frame, probe.text, writing).items()},
    }


def _word(frames: Sequence[Frame], text: str, kinds: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """One word's maps at every frame that has it, and how they are drawn."""
    numbers = [i for i, frame in enumerate(frames) if any(probe.text == text for probe in frame.probes)]
    whole = widest([frames[i] for i in numbers], text)
    _, probe = probe_of(whole, text)
    drawn: dict[str, dict[str, Any]] = {}
    for kind, described in kinds.items():
        sites = described["sites"]
        # What is blocked may change from step to step, and is drawn by the page.
        axes = replace(axes_of(whole, text, sites[0], whole), causal=False)
        n_heads = whole.n_heads(sites[0])
        # Only their shape is drawn here.
        maps = [np.zeros((n_heads, len(axes.rows), len(axes.columns)), np.float32) for _ in sites]
        n_tiles = sum(len(heads) for heads in maps)
        names = [[tile_name(site, head, n_tiles) for head in range(len(maps[0]))] for site in sites]
        unlit = [[False] * len(maps[0])] * len(sites)
        large = large_map(maps[0][0], axes, title="", step=0)
        strip = map_strip(maps, axes, names=names, lit=unlit, chosen=None, step=0)
        drawn[kind] = {"large": large.spec, "strip": strip.spec, "names": names, "rows": _labels(axes.rows)}
        if not probe.forced:  # the tokens are the model's own, and others at every step
            shown = [axes_of(frames[number], text, sites[0], whole) for number in numbers]
            drawn[kind]["changing"] = [
                {"rows": _labels(one.rows), "columns": _labels(one.columns)} for one in shown
            ]
    first = frames[numbers[0]]
    remarks = {
        "unknown": not probe.forced,
        "too long": probe.too_long,
        "too short": probe.too_short,
        "held out": probe.held_out,
    }
    return {
        "frames": numbers,
        "since": first.step,
        "short": escaped(shortened(text, LONGEST)),
        "fed": fed_with(whole, text),
        "remark": next((remark for remark, holds in remarks.items() if holds), ""),
        "drawn": drawn,
        "weights": {
            site: packed(
                *map(np.stack, zip(*(map_of(frames[i], text, site, whole) for i in numbers), strict=True))
            )
            for site in whole.axes
        },
    }


def _labels(tokens: Sequence[str]) -> list[str]:
    return [escaped(token) for token in tokens]


def _curves(view: RunView) -> dict[str, Any]:
    """The whole run's loss and accuracy, with a pin at every moment."""
    names = ("step", "loss", "held_out_loss", "token_accuracy", "exact", "free_loss")
    series = Series(*view.metrics.columns(*names))
    figure = curves(
        series,
        planned=max(view.step, 1),
        highest_loss=highest_loss(view.config.model.tgt_vocab_size, series.free_loss),
        run_id="run",
        ghost=None,
        moments=tuple((moment.step, moment.text) for moment in view.moments),
    ).figure()
    # The axis ends with the run: the accuracy ends high at the right, where its panel's name stands.
    named = next(note for note in figure["layout"]["annotations"] if note["text"] == "share right")
    named |= {"x": 0.02, "xanchor": "left"}
    return figure

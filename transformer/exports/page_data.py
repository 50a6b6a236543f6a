"""What an exported page holds of a run, as JSON: every frame's words and numbers, the maps tightly packed."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from transformer.exports.frames import KIND_NAMES, film_frames, probe_of
from transformer.figures import colors
from transformer.figures.curves import Series, curves, highest_loss
from transformer.figures.labels import map_axes, tile_name, wrong_predictions
from transformer.figures.maps import large_map, map_strip
from transformer.insight.names import short_head_name
from transformer.insight.scores import MIRROR_THRESHOLD
from transformer.recording.frame import Array, Frame, Probe
from transformer.runs.view import RunView

MOST_FRAMES = 120
LEAST_FRAMES = 8
ROOM = 8 * 2**20
"""Bytes of maps before they are packed; a large model shows fewer steps."""
PARTS = 1000
"""Weights are kept in thousandths, which is what a page can show ..."""
BLOCKED = 65535
"""... and this stands for a cell that a mask blocks."""


def page_data(view: RunView) -> dict[str, Any]:
    """Everything that the page shows, ready for JSON.

    Raises:
        InputError: nothing has been recorded yet.
    """
    frames = film_frames(view, 2)
    frames = film_frames(view, min(MOST_FRAMES, max(LEAST_FRAMES, ROOM // _map_bytes(frames[-1]))))
    newest = frames[-1]
    kinds = {}
    for kind, name in KIND_NAMES.items():
        sites = [site for site, axes in newest.axes.items() if axes.kind == kind]
        if sites:
            kinds[kind] = {"name": name, "sites": sites}
    texts = list(dict.fromkeys(probe.text for frame in reversed(frames) for probe in frame.probes))
    return {
        "seed": view.config.seed,
        "parts": PARTS,
        "blocked": BLOCKED,
        "look": {"taken": colors.TAKEN, "mark": colors.MARK},
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


def _map_bytes(frame: Frame) -> int:
    """What the maps of one frame take."""
    return 2 * sum(frame.map(row, site).size for row in range(len(frame.probes)) for site in frame.axes)


def packed(weights: Array) -> dict[str, Any]:
    """Weights in [0, 1], NaN where blocked, as text: thousandths in 16 bits, deflated."""
    codes = np.rint(np.nan_to_num(weights).clip(0.0, 1.0) * PARTS).astype("<u2")
    codes[np.isnan(weights)] = BLOCKED
    return {"shape": codes.shape, "b": base64.b64encode(zlib.compress(codes.tobytes(), 9)).decode()}


def _frame(frame: Frame) -> dict[str, Any]:
    return {
        "step": frame.step,
        "loss": frame.loss,
        "right": frame.exact,
        "rightStep": frame.exact_step,
        "taken": frame.interventions.text() if frame.interventions else "",
        "roles": {
            site: [frame.role(site, head) for head in range(maps.shape[1])]
            for site, maps in frame.maps.items()
        },
        "lit": {
            site: [
                bool(score >= MIRROR_THRESHOLD) and (site, head) not in frame.interventions.ablated
                for head, score in enumerate(scores)
            ]
            for site, scores in frame.scores.items()
        },
        "probes": {probe.text: _probe(probe) for probe in frame.probes},
    }


def _probe(probe: Probe) -> dict[str, Any]:
    """What was written, each letter with whether it is right."""
    return {
        "letters": probe.marked,
        "right": probe.right,
        "wrong": wrong_predictions("tgt", probe.expected, probe.predicted),
    }


def _word(frames: Sequence[Frame], text: str, kinds: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """One word's maps at every frame that has it, and how they are drawn."""
    numbers = [i for i, frame in enumerate(frames) if any(probe.text == text for probe in frame.probes)]
    frame = frames[numbers[-1]]
    row, probe = probe_of(frame, text)
    drawn = {}
    for kind, described in kinds.items():
        sites = described["sites"]
        axes = map_axes(frame.axes[sites[0]], probe, probe.expected)
        maps = [np.zeros_like(frame.map(row, site)) for site in sites]  # only their shape is drawn here
        n_tiles = sum(len(heads) for heads in maps)
        names = [[tile_name(site, head, n_tiles) for head in range(len(maps[0]))] for site in sites]
        unlit = [[False] * len(maps[0])] * len(sites)
        large = large_map(maps[0][0], axes, title="", step=0)
        strip = map_strip(maps, axes, names=names, lit=unlit, chosen=None, step=0)
        drawn[kind] = {"large": large.spec, "strip": strip.spec, "names": names, "rows": axes.rows}
    first = frames[numbers[0]]
    remark = "too long" if probe.too_long else "held out" if probe.held_out else ""
    return {
        "frames": numbers,
        "asked": first.step,
        "remark": remark,
        "drawn": drawn,
        "weights": {
            site: packed(np.stack([frames[i].map(frames[i].row_of(text), site) for i in numbers]))
            for site in frame.axes
        },
    }


def _curves(view: RunView) -> dict[str, Any]:
    """The whole run's loss and accuracy, with a pin at every moment."""
    series = Series(*view.metrics.columns("step", "loss", "held_out_loss", "token_accuracy", "exact"))
    figure = curves(
        series,
        planned=max(view.step, 1),
        highest_loss=highest_loss(view.config.model.tgt_vocab_size),
        run_id="run",
        ghost=None,
        moments=tuple((moment.step, moment.text) for moment in view.moments),
    ).figure()
    # The axis ends with the run: the accuracy ends high at the right, where its panel's name stands.
    named = next(note for note in figure["layout"]["annotations"] if note["text"] == "share right")
    named |= {"x": 0.02, "xanchor": "left"}
    return figure

"""Runs as numbers for other programs: curves as CSV and Parquet, the ends of several runs as CSV, a frame as
JSON, weights as safetensors."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from safetensors.numpy import save

from transformer.config import RunConfig
from transformer.player.pictures import listed
from transformer.recording.frame import Array, Frame, RecordedWord
from transformer.recording.view import RunView
from transformer.shared.evaluation import MARKS

FORMAT = 1
"""Version of the JSON that `frame_json` writes."""
WEIGHTS_FORMAT = "headlight-weights-1"
DIGITS = 4
"""Decimals of weights and scores; recorded weights are accurate to 1e-5."""


def endings_csv(views: Sequence[RunView]) -> str:
    """A row for each of several runs: its seed, state, step and id, the head that turned first, and the first
    steps with a half, nine tenths and 99% of the held-out examples right."""
    columns = ["seed", "state", "step", "turned", "site", "head", "run", *(f"right_{mark}" for mark in MARKS)]
    file = io.StringIO()
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(columns)
    for view in views:
        step, site, head = view.turned_at or (None, None, None)
        reached = (view.first_step_at.get(str(mark)) for mark in MARKS)
        number = None if head is None else head + 1
        rows.writerow([view.config.seed, view.state, view.step, step, site, number, view.id, *reached])
    return file.getvalue()


def curves_csv(view: RunView) -> str:
    """Every step's numbers so far, one row a step; empty where a step has no such number."""
    table: str = view.metrics.table().to_csv(index=False, lineterminator="\n")
    return table


def curves_parquet(view: RunView) -> bytes:
    """The same numbers as Parquet; NaN where a step has no such number."""
    table: bytes = view.metrics.table().to_parquet(index=False)
    return table


def frame_json(view: RunView, frame: Frame) -> str:
    """Everything recorded at one step: each word's tokens, output and attention maps, and the heads' scores.

    The maps of a site are a list of heads, each a list of rows (queries), each a list of weights (keys); null
    where a mask or an intervention blocks. For each site, `rows` and `columns` name the side of their tokens
    (src: `src_tokens` of each word; also tgt or seq, or a name of an own model);
    `writes`: whether rows write tokens; `causal`: whether the future is blocked; `padding`: whether [PAD] is
    blocked (if not, it is on the maps). BLEU and chrF, 0 to 100, are of the same evaluation as
    `held_out_words`; null where answers are not sentences. If the right answer of a word is not known,
    `answer` and `right` are null; if `written_at` is not null, the maps of the word run over the model's own
    output of that step.
    Outputs and scores are of the newest step that measured them: `output_step` and `scored_step`.
    A word that was added after that step has no output: the fields about it are null.
    """
    evaluation = frame.evaluation
    held_out = {"right": evaluation.right, "asked": evaluation.total, "step": evaluation.step}
    document = {
        "format": FORMAT,
        "configuration": {"model": view.own.name} if view.own else json.loads(view.config.to_json()),
        "seed": None if view.own else view.config.seed,
        "step": frame.step,
        "seconds": round(frame.seconds, 3),
        "loss": frame.loss if frame.loss is not None and math.isfinite(frame.loss) else None,
        "held_out_words": held_out,
        "bleu": evaluation.bleu,
        "chrf": evaluation.chrf,
        "interventions": frame.interventions.to_dict(),
        "sites": {
            site: {
                "kind": axes.kind,
                "rows": axes.query,
                "columns": axes.key,
                "writes": axes.writes,
                "causal": axes.causal,
                "padding": axes.padding,
            }
            for site, axes in frame.axes.items()
        },
        "scored_step": frame.measurement.step,
        "scores": {
            site: {name: listed(values, DIGITS) for name, values in scores.items()}
            for site, scores in frame.head_scores.items()
        },
        "without": None
        if frame.ablations is None
        else {
            "step": frame.ablations.step,
            "measure": frame.ablations.name,
            "with_all": frame.ablations.whole,
            "heads": {site: listed(values, DIGITS) for site, values in frame.ablations.without.items()},
        },
        "probes": [_word_facts(frame, row, tracked) for row, tracked in enumerate(frame.words)],
    }
    return json.dumps(document, allow_nan=False, ensure_ascii=False)


def _word_facts(frame: Frame, row: int, tracked: RecordedWord) -> dict[str, Any]:
    asked = tracked.output_step is not None
    sides = dict.fromkeys(side for axes in frame.axes.values() for side in (axes.query, axes.key))
    return {
        "word": tracked.text,
        "answer": tracked.answer,
        "written_at": tracked.written_at,
        "output": tracked.output if asked else None,
        "output_step": tracked.output_step,
        "stopped": tracked.stopped if asked else None,
        "right": tracked.right if asked and tracked.forced else None,
        "held_out": tracked.held_out,
        "too_long": tracked.too_long,
        **{f"{side}_tokens": tracked.tokens(side) for side in sides},
        "expected": tracked.expected,
        "predicted": tracked.predicted,
        "maps": {site: listed(frame.map(row, site), DIGITS) for site in frame.axes},
    }


def weights_file(config: RunConfig, step: int, weights: Mapping[str, Array]) -> bytes:
    """Weights by the name of their parameter, with the configuration and the step in the file's metadata."""
    metadata = {"format": WEIGHTS_FORMAT, "config": config.to_json(), "step": str(step)}
    data: bytes = save({name: np.ascontiguousarray(array) for name, array in weights.items()}, metadata)
    return data

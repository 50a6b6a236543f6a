"""What a player is told of a run before it asks for chunks, and what is new of it while the run goes on."""

from __future__ import annotations

import html
import json
import math
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from transformer.config import RunConfig
from transformer.figures import colors
from transformer.figures.curves import Series, curves, highest_loss
from transformer.figures.picture import Array, Picture
from transformer.figures.score_curves import score_curves
from transformer.insight.names import examples_of, full_head_name, short_head_name
from transformer.insight.narrator import narrate
from transformer.insight.scores import ROLES, THRESHOLD
from transformer.player.chunks import look_name, look_of, name_of
from transformer.player.sentences import (
    by_length,
    headline,
    looking_back,
    output_row,
    samples,
    words_right,
)
from transformer.recording.frame import Frame, Probe, reading_sites
from transformer.recording.metrics import Metrics
from transformer.recording.view import ENDED, RunView

KIND_NAMES = {
    "cross": "Cross",
    "encoder": "Encoder",
    "decoder": "Decoder",
    "sequence": "Question and answer",
}
SCORES = {**ROLES, "focus": "focus (highest weight of a row)", "entropy": "entropy (how even)"}
"""Every score by the name that people read."""
CURVES_SECONDS = 1.0
"""Curves are brought up to date this often at most."""
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
_SHARES = "The brighter a cell, the more of its attention the row puts there; every row adds up to 100 %."


class Index:
    """Of one run, made from its views one after the other. Everything in it is JSON.

    Args:
        config: of the run.
        look_for: what there is to see in a run of these settings, for its first sentence.
    """

    def __init__(self, config: RunConfig, look_for: str = "") -> None:
        self.version = 0
        """Counts what has been new; who has one version less than this needs `news`, and others `whole`."""
        self.news: dict[str, Any] = {}
        """What is new in this version: more steps and segments, and other parts whole."""
        self._config, self._look_for = config, look_for
        self._segments: dict[int, dict[str, Any]] = {}  # by the step at which each begins
        self._texts: dict[str, int] = {}  # each only once: most outputs stay as they are
        self._looks: dict[str, Any] = {}
        self._said: dict[str, Any] = {}  # what changes, as it was said last
        self._basis: tuple[object, ...] = ()
        self._reach: tuple[int, ...] = ()  # of each word the first step
        self._due_at = -math.inf

    def update(self, view: RunView) -> bool:
        """Bring it up to date; returns whether there is a new version.

        Measurements, moments and other words make one at once, steps alone every CURVES_SECONDS.
        """
        frames = view.frames
        if not frames:
            return False
        basis = frames.generation, frames.words
        measured = frames.changes
        reach = tuple(frames.chunks_of(word)[0].steps[0] for word in frames.words)
        still = (*basis, measured, view.moments, view.state in ENDED, view.planned) == self._basis
        same = still and (reach, frames.steps[-1]) == (self._reach, self._said["steps"][-1])
        if same or (still and time.monotonic() < self._due_at):
            return False
        again = self._basis[:2] != basis
        self._basis = (*basis, measured, view.moments, view.state in ENDED, view.planned)
        self._due_at = time.monotonic() + CURVES_SECONDS
        if again:
            self._segments, self._texts, self._looks = {}, {}, {}
        elif reach != self._reach:  # of words that came later, more of the past is there now
            n_words = len(frames.words)
            self._segments = {at: one for at, one in self._segments.items() if len(one["outputs"]) == n_words}
        self._reach = reach
        self._describe(view)
        parts = self._parts(view)
        self.news = {"whole": True} if again else _since(self._said, parts)
        self._said = parts
        self.version += 1
        return True

    def whole(self, view: RunView) -> dict[str, Any]:
        """All that there is, with the addresses of chunks as they are now."""
        if not self._said:
            self.update(view)
        chunks = {
            word: [
                [chunk.steps[0], chunk.steps[-1], len(chunk.steps), name_of(chunk)]
                for chunk in view.frames.chunks_of(word)
            ]
            for word in view.frames.words
        }
        return self._fixed(view) | self._said | {"version": self.version, "chunks": chunks}

    def headline(self, view: RunView, frame: Frame) -> list[str]:
        """The sentence of a run as it is: at the first step of the newest segment, and later."""
        return [headline(view, frame, self._look_for, later=later) for later in (False, True)]

    def _fixed(self, view: RunView) -> dict[str, Any]:
        """What stays the same for the whole run."""
        assert view.frame is not None
        task, frame = self._config.train.task, view.frame
        kinds = {}
        for kind in self._config.model.kinds:
            sites = [site for site, axes in frame.axes.items() if axes.kind == kind]
            kinds[kind] = {
                "name": KIND_NAMES[kind],
                "sites": sites,
                "reading": f"{_reading(task, frame, sites[0])} {_SHARES}",
            }
        return {
            "run": view.id,
            "seed": self._config.seed,
            "examples": examples_of(task),
            "token": "letter" if task == "reverse" else "token",
            "kinds": kinds,
            "heads": {
                site: [short_head_name(site, head) for head in range(frame.n_heads(site))]
                for site in frame.axes
            },
            "colors": {"outline": colors.MIRROR, "mark": colors.MARK},
        }

    def _describe(self, view: RunView) -> None:
        """Make the segments that are new; the newest one may have been measured further meanwhile."""
        steps = segment_steps(view)
        newest = max(self._segments, default=-1)
        for step in steps:
            if step >= newest or step not in self._segments:
                self._segments[step] = self._described(view.frames.of_step(step), step)
        self._segments = {step: self._segments[step] for step in steps}

    def _parts(self, view: RunView) -> dict[str, Any]:
        frames = view.frames
        for word in frames.words:
            for chunk in frames.chunks_of(word):
                if (name := look_name(chunk)) not in self._looks:
                    self._looks[name] = json.loads(look_of(chunk)[1])
        steps, losses = view.metrics.columns("step", "loss")
        known = dict(zip(steps.tolist(), listed(losses), strict=True))
        return {
            "words": list(frames.words),
            "steps": list(frames.steps),
            "losses": [known.get(step) for step in frames.steps],
            "segments": list(self._segments.values()),
            "texts": list(self._texts),
            "looks": dict(self._looks),
            "moments": [
                {"step": one.step, "text": one.text, "said": html.escape(one.text)} for one in view.moments
            ],
            "curves": drawn(run_curves(view)),
            "mass": drawn(score_picture(view, frames[-1].aim, reading_sites(frames[-1].axes))),
        }

    def _described(self, frame: Frame, step: int) -> dict[str, Any]:
        off = frame.interventions.ablated
        return {
            "from": step,
            "right": self._text(words_right(frame, self._config.train.task)),
            "said": [looking_back(frame), looking_back(frame, later=True)],
            "taken": html.escape(frame.interventions.text()) if frame.interventions else "",
            "roles": roles_of(frame),
            "later": roles_of(replace(frame, step=step + 1)),  # as long as the segment lasts
            "lit": {
                site: [
                    bool(score >= THRESHOLD) and (site, head) not in off for head, score in enumerate(scores)
                ]
                for site, scores in frame.scores.items()
            },
            "clearest": list(frame.clearest),
            "outputs": {probe.text: self._text(output_row(probe)) for probe in frame.probes},
            "written": max((one.output_step or 0 for one in frame.probes), default=0),
            "lengths": self._text(by_length(frame)),
            "samples": self._text(samples(frame)),
        }

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))


def roles_of(frame: Frame) -> dict[str, list[str]]:
    """What every head of every site may be called."""
    return {site: [frame.role(site, head) for head in range(frame.n_heads(site))] for site in frame.axes}


def segment_steps(view: RunView) -> list[int]:
    """The recorded steps at which something else than maps changes."""
    steps, frames = view.frames.steps, view.frames
    drawn = {chunk.drawn_at for word in frames.words for chunk in frames.chunks_of(word)} - {None}
    places = {bisect_left(steps, step) for step in (*frames.changes, *drawn) if step is not None}
    return sorted({steps[0], *(steps[place] for place in places if place < len(steps))})


def _since(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """What is new: of lists that have grown what came behind, of others everything, of what is the same
    nothing."""
    fresh: dict[str, Any] = {}
    for name, value in now.items():
        old = before[name]
        if name in ("curves", "mass"):
            fresh[name] = _figure_since(old, value)
        elif isinstance(value, list) and value[: len(old)] == old:
            if len(value) > len(old):
                fresh[name] = {"from": len(old), "more": value[len(old) :]}
        elif name == "looks":
            if more := {key: look for key, look in value.items() if key not in old}:
                fresh[name] = more
        elif value != old:
            fresh[name] = {"from": 0, "more": value}
    return fresh


def _figure_since(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """A figure whose lines have grown, without what a player has of it."""
    if before["spec"] != now["spec"] or before["arrays"].keys() != now["arrays"].keys():
        return now
    arrays = {}
    for name, values in now["arrays"].items():
        old = before["arrays"][name]
        n = next((i for i, (a, b) in enumerate(zip(old, values, strict=False)) if a != b), None)
        n = min(len(old), len(values)) if n is None else n
        if n < max(len(old), len(values)):
            arrays[name] = {"from": n, "more": values[n:]}
    return {"arrays": arrays, "layout": now["layout"], "step": now["step"]}


def drawn(picture: Picture) -> dict[str, Any]:
    """A picture for a player: arrays as lists, a gap as None."""
    return {
        "spec": picture.spec,
        "arrays": {name: listed(values) for name, values in picture.arrays.items()},
        "layout": dict(picture.layout),
        "step": picture.step,
    }


def listed(values: Array) -> list[Any]:
    """Numbers as JSON has them, to the fifth place; NaN is None."""
    rounded = np.round(values.astype(np.float64), 5)
    if not np.isnan(rounded).any():
        found: list[Any] = rounded.tolist()
        return found
    cells = rounded.astype(object)
    cells[np.isnan(rounded)] = None
    return list(cells.tolist())


def narration(frame: Frame, word: str, site: str, head: int) -> str:
    """What one head does with one word, in a sentence made from its numbers; empty where not known."""
    row = next((i for i, probe in enumerate(frame.probes) if probe.text == word), None)
    if row is None or site not in frame.axes or not 0 <= head < frame.n_heads(site):
        return ""
    probe, axes = frame.probes[row], frame.axes[site]
    said = narrate(
        frame.map(row, site)[head],
        axes.kind,
        probe.tokens(axes.query),
        probe.tokens(axes.key),
        **counts(probe, frame.aim),
    )
    return html.escape(said, quote=False)


def counts(read: Probe, aim: str) -> dict[str, Any]:
    """How many tokens there are on both sides, and which need which, for the narrator."""
    if aim == "mirror":
        return {"n_letters": read.n_read}
    return {"n_letters": read.n_read, "n_answer": read.n_written, "links": read.links}


def _reading(task: str, frame: Frame, site: str) -> str:
    """How to read the maps of a site, and of the others of its kind."""
    axes = frame.axes[site]
    kind = "encoder that writes" if axes.writes and axes.kind == "encoder" else axes.kind
    if task == "reverse":
        return READING_BACKWARDS[kind]
    return READING[kind] + (_ALIGNED if frame.aim == "gold" and site in frame.scores else "")


def run_curves(view: RunView, before: RunView | None = None, marker: int | None = None) -> Picture:
    """Loss and accuracy of a run, with the one before it as a ghost, and its moments."""
    return curves(
        _series(view.metrics),
        planned=max(1, view.step) if view.state in ENDED else view.planned,
        highest_loss=highest_loss(view.config.model.tgt_vocab_size, view.metrics.column("free_loss")),
        run_id=view.id,
        ghost=None if before is None else _series(before.metrics),
        marker=marker,
        moments=tuple((moment.step, moment.text) for moment in view.moments),
    )


def ghost_of(view: RunView) -> dict[str, Any]:
    """The curves of a run as the ghost behind another's."""
    made = run_curves(view, view)
    return {name: listed(values) for name, values in made.arrays.items() if name[0] in "01"}


def _series(metrics: Metrics) -> Series:
    names = ("step", "loss", "held_out_loss", "token_accuracy", "exact", "free_loss")
    return Series(*metrics.columns(*names))


def score_picture(
    view: RunView, score: str, sites: Sequence[str] | None = None, marker: int | None = None
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

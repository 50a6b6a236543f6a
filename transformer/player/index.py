"""The index of a run, which a player loads before it requests chunks, and its changes during the run."""

from __future__ import annotations

import html
import json
import math
import time
from base64 import b64encode
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np

from transformer.config import TASK_INFO, RunConfig
from transformer.figures import colors
from transformer.figures.picture import Picture
from transformer.insight.names import TARGET_SCORES, short_head_name, without_prefix
from transformer.insight.scores import THRESHOLD
from transformer.player.chunks import look_name, look_of, name_of
from transformer.player.outputs import by_length, output_row, samples
from transformer.player.pictures import head_picture, listed, run_curves
from transformer.player.sentences import change_text, headline, looking_back, moment_said, words_right
from transformer.recording.frame import Frame
from transformer.recording.view import ENDED, RunView
from transformer.shared.attention_info import reading_sites, sites_of
from transformer.shared.evaluation import MARKS

KIND_NAMES = {
    "cross": "Cross",
    "encoder": "Encoder",
    "decoder": "Decoder",
    "sequence": "Question and answer",
}
LOOKS = {
    "cross": "the answer looks at the {question}",
    "encoder": "the {question}’s {token}s look at each other",
    "decoder": "the answer so far looks at itself",
    "sequence": "{question} and answer look at each other",
}
"""What looks at what in a kind of attention."""
CURVES_SECONDS = 1.0
"""Minimum seconds between two versions of the index, and so of its curves, if only steps were added."""
READING = {
    "cross": "Each row is a {token} being written (“just written → to write”), each column a {token} of the "
    "{question}.",
    "encoder": "Each row is a {token} of the {question} at work, each column a {token} that it looks at.",
    "decoder": "Each row is a {token} being written, each column a {token} of the answer.",
    "sequence": "Rows and columns are the {question}, [SEP] and what is written so far; from [SEP] on each "
    "row writes (“just written → to write”).",
    "encoder that writes": "Each row is a {token} of the {question} and what it becomes, each column a "
    "{token} that it looks at.",
}
"""How to read the maps of a kind of attention."""
BACKWARDS = {
    "cross": "",
    "sequence": ", there and over the letters of the word",
    "encoder that writes": "",
}
"""Keys of `READING` whose maps show an anti-diagonal if a head reads the word backwards, each with words on
where that line lies; empty where it crosses the whole map."""
_ALIGNED = " Where a head reads what its row writes, the cells of the alignment are bright."
_SHARES = "The brighter a cell, the more of its attention the row puts there; every row adds up to 100%."


class Index:
    """The index of one run, updated from its successive views. All its parts can be written as JSON.

    Args:
        config: of the run.
        look_for: what to look for in a run with these settings; part of the headline before training.
    """

    def __init__(self, config: RunConfig, look_for: str = "") -> None:
        self.version = 0
        """The version; 0 until a view has a frame. A player that is one version behind needs `news`; a player
        that is further behind needs `whole`."""
        self.news: dict[str, Any] = {}
        """The changes since the version before, as `_since` returns them; {"whole": True} if all is new."""
        self._config, self._look_for = config, look_for
        self._segments: dict[int, dict[str, Any]] = {}  # by the step at which each begins
        self._texts: dict[str, int] = {}  # indices by text; most outputs stay the same
        self._looks: dict[str, Any] = {}
        self._said: dict[str, Any] = {}  # the parts that can change, as of the last version
        self._basis: tuple[object, ...] = ()  # if it changes, the whole index is rebuilt
        self._at_once: tuple[object, ...] = ()  # if it changes, a new version is made without delay
        self._reach: tuple[int, ...] = ()  # the first recorded step of each word
        self._due_at = -math.inf

    def update(self, view: RunView) -> bool:
        """Bring the index up to date. Returns whether there is a new version.

        A new version is made at once for changed words, interventions, moments or planned steps, for new
        scores, outputs or evaluations, at the end of the run, and when frames were removed. If only steps
        were added, there is at most one new version per `CURVES_SECONDS`. There is none before the first
        frame.
        """
        frames = view.frames
        if not frames:
            return False
        basis = frames.generation, frames.words
        at_once = frames.changes, view.moments, view.state in ENDED, view.planned
        reach = tuple(frames.chunks_of(word)[0].steps[0] for word in frames.words)
        again, still = basis != self._basis, (basis, at_once) == (self._basis, self._at_once)
        same = still and (reach, frames.steps[-1]) == (self._reach, self._said["steps"][-1])
        if same or (still and time.monotonic() < self._due_at):
            return False
        self._basis, self._at_once = basis, at_once
        self._due_at = time.monotonic() + CURVES_SECONDS
        if again:
            self._segments, self._texts, self._looks = {}, {}, {}
        elif reach != self._reach:  # earlier steps of a word were added: rebuild these segments
            n_words = len(view.frame.asked) if view.frame else 0
            segments = self._segments.items()
            self._segments = {at: one for at, one in segments if len(one["outputs"]) in (0, n_words)}
        self._reach = reach
        self._describe(view)
        parts = self._parts(view)
        self.news = {"whole": True} if again else _since(self._said, parts)
        self._said = parts
        self.version += 1
        return True

    def whole(self, view: RunView) -> dict[str, Any]:
        """The whole index as of the last `update`, with the present chunks of each word.

        Args:
            view: of this run, with at least one frame.

        Returns:
            What a player needs, as values for JSON. `chunks` maps each word to [first step, last step, number
            of steps, name] of its chunks.
        """
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

    def headline(self, view: RunView, frame: Frame) -> str:
        """The headline of the current state, as HTML."""
        return headline(view, frame, self._look_for)

    def _fixed(self, view: RunView) -> dict[str, Any]:
        """The part that changes only when the tracked words change."""
        assert view.frame is not None
        task, frame = self._config.train.task, view.frame
        letters = task == "reverse"
        nouns = {"token": "letter" if letters else "token", "question": "word" if letters else "question"}
        kinds = {}
        for kind in view.kinds:
            sites = sites_of(frame.axes, kind)
            kinds[kind] = {
                "name": KIND_NAMES.get(kind) or _called(kind, view.kinds),
                "sites": sites,
                "looks": LOOKS.get(kind, "").format(**nouns),
                "reading": f"{_reading(task, frame, sites[0])} {_SHARES}",
            }
        return {
            "run": view.id,
            "own": view.own is not None,
            "seed": self._config.seed,
            "examples": TASK_INFO[task].plural,
            "means": {
                word.text: f"all words of {word.n_read} letters" for word in frame.words if word.n_words
            },
            "token": "letter" if task == "reverse" and view.own is None else "token",
            "kinds": kinds,
            "pictures": {
                word: {
                    kind: made
                    for kind, of in kinds.items()
                    if (made := _picture(view, word, of["sites"][0])) is not None
                }
                for word in view.pictures
                if word in view.frames.words
            },
            "heads": {
                site: [
                    short_head_name(without_prefix(site, frame.axes), head)
                    for head in range(frame.n_heads(site))
                ]
                for site in frame.axes
            },
            "colors": colors.OF_MAPS if view.own is None else colors.OF_OWN_MAPS,
        }

    def _describe(self, view: RunView) -> None:
        """Add new segments, drop those that are gone, and rebuild the newest known one: it may have a new
        measurement."""
        steps = segment_steps(view)
        newest = max(self._segments, default=-1)
        for step in steps:
            if step >= newest or step not in self._segments:
                frame = view.frames.of_step(step)
                self._segments[step] = self._described(frame, step, own=view.own is not None)
        self._segments = {step: self._segments[step] for step in steps}

    def _parts(self, view: RunView) -> dict[str, Any]:
        frames = view.frames
        for word in frames.words:
            for chunk in frames.chunks_of(word):
                if (name := look_name(chunk)) not in self._looks:
                    self._looks[name] = json.loads(look_of(chunk)[1])
        steps, losses, seconds = view.metrics.columns("step", "loss", "seconds")
        loss_at = dict(zip(steps.tolist(), listed(losses), strict=True))
        clock = np.interp(frames.steps, [0, *steps], [0, *seconds])
        return {
            "words": list(frames.words),
            "steps": list(frames.steps),
            "losses": [loss_at.get(step) for step in frames.steps],
            "seconds": listed(clock),
            "segments": list(self._segments.values()),
            "texts": list(self._texts),
            "looks": dict(self._looks),
            "moments": [
                {
                    "step": moment.step,
                    "text": moment.text,
                    "said": moment_said(moment),
                }
                for moment in view.moments
            ],
            "turned": list(view.turned_at or ()),
            "reached": [view.first_step_at.get(str(mark)) for mark in MARKS],
            "best": _best(view),
            "curves": drawn(run_curves(view)),
            "mass": drawn(head_picture(view, frames[-1].target_score)) | {"said": _of_heads(view)},
        }

    def _described(self, frame: Frame, step: int, *, own: bool) -> dict[str, Any]:
        off = frame.interventions.ablated
        return {
            "from": step,
            "right": self._text("" if own else words_right(frame, self._config.train.task)),
            "counted": [frame.evaluation.right, frame.evaluation.total, frame.evaluation.step],
            "measured": frame.measurement.step,
            "said": looking_back(frame),
            "worth": _worth(frame),
            "taken": html.escape(frame.interventions.text()) if frame.interventions else "",
            "roles": roles_of(frame),
            "lit": {
                site: [
                    bool(score >= THRESHOLD) and (site, head) not in off for head, score in enumerate(scores)
                ]
                for site, scores in frame.scores.items()
            },
            "large": {
                kind: frame.large_head(sites_of(frame.axes, kind))
                for kind in dict.fromkeys(one.kind for one in frame.axes.values())
            },
            "outputs": {}
            if own
            else {tracked.text: self._text(output_row(tracked)) for tracked in frame.asked},
            "written": max((word.output_step or 0 for word in frame.words), default=0),
            "lengths": self._text(by_length(frame)),
            "samples": self._text(samples(frame)),
        }

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))


def _best(view: RunView) -> list[tuple[int, float]]:
    """(step, highest target score of the heads that read the question) of every measurement that has this
    score; empty for an own model."""
    frame = view.frames[-1]
    sites = reading_sites(frame.axes) if view.own is None else []
    return [
        (
            measurement.step,
            round(max(float(measurement.head_scores[site][frame.target_score].max()) for site in sites), 4),
        )
        for measurement in view.frames.measurements
        if sites and all(frame.target_score in measurement.head_scores[site] for site in sites)
    ]


def _of_heads(view: RunView) -> str:
    """What the curves of heads show, as HTML."""
    if ablations := view.frames.ablations:
        return (
            f"<b>What each head is worth</b>: how much higher {ablations[-1].name} is without it. Heads far "
            "from the dashed line matter most."
        )
    frame = view.frames[-1]
    n_heads = sum(frame.n_heads(site) for site in reading_sites(frame.axes))
    others = " Grey: other heads." if n_heads > len(colors.NAMED) else ""
    return (
        f"<b>{TARGET_SCORES[frame.target_score].title}</b>, by head and step. "
        f"From the dashed line on, at half of it, the pattern is clear.{others}"
    )


def _picture(view: RunView, word: str, site: str) -> dict[str, Any] | None:
    """The picture that the keys of a site are patches of, as values for JSON; None if there is none."""
    covered = view.covered(word, site)
    if covered is None:
        return None
    picture = covered.picture
    return {
        "width": picture.width,
        "height": picture.height,
        "pixels": b64encode(picture.pixels).decode(),
        "grid": picture.grid,
        "before": picture.before,
        "tokens": picture.n_tokens,
        "pooled": covered.pooled,
        "asks": covered.asks,
        "query": covered.usual_query,
    }


def _worth(frame: Frame) -> dict[str, Any] | None:
    """What each head of an own model is worth: how much a number changes without it; None if not measured."""
    ablations = frame.ablations
    if ablations is None:
        return None
    return {
        "step": ablations.step,
        "name": ablations.name,
        "changes": {
            site: [change_text(change) for change in changes] for site, changes in ablations.changes.items()
        },
        "needed": ablations.needed,
    }


def roles_of(frame: Frame) -> dict[str, list[str]]:
    """For each site, the role of every head, as `Frame.role` returns it."""
    return {site: [frame.role(site, head) for head in range(frame.n_heads(site))] for site in frame.axes}


def segment_steps(view: RunView) -> list[int]:
    """The first step of each segment, ascending: the first recorded step, and every recorded step with new
    scores, outputs or evaluations, with changed interventions, or with a tracked word that training has just
    drawn for the first time.

    Args:
        view: of a run with at least one frame.
    """
    steps, frames = view.frames.steps, view.frames
    drawn = (chunk.drawn_at for word in frames.words for chunk in frames.chunks_of(word))
    places = {bisect_left(steps, step) for step in {*frames.changes, *drawn} if step is not None}
    return sorted({steps[0], *(steps[place] for place in places if place < len(steps))})


def _since(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """The changes between two versions: the new entries of `looks` and of lists that have grown, the
    changed part of a figure, and the full value of any other part that has changed."""
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
    """The part of a figure that differs from the version before; the whole figure if its form has changed."""
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
    """A picture for a player, as values for JSON: arrays as lists, rounded by `listed`, a gap as None."""
    return {
        "spec": picture.spec,
        "arrays": {name: listed(values) for name, values in picture.arrays.items()},
        "layout": dict(picture.layout),
        "step": picture.step,
    }


def _called(kind: str, kinds: Sequence[str]) -> str:
    """The name of a group of attentions, without the parts that the names of all groups share; its last part
    if no other remains."""
    parts = [kind.split(".") for kind in kinds]
    own = [part for part in kind.split(".") if not all(part in others for others in parts)]
    return ".".join(own) or kind.split(".")[-1]


def _reading(task: str, frame: Frame, site: str) -> str:
    """How to read the maps of a site; the same for all sites of its kind."""
    axes = frame.axes[site]
    if axes.group:
        return f"Attention of {axes.group}: each row is a query, each column a key."
    kind = "encoder that writes" if axes.writes and axes.kind == "encoder" else axes.kind
    if task == "reverse":
        reading = READING[kind].format(token="letter", question="word")
        if kind in BACKWARDS:
            reading += (
                " A word read backwards draws an anti-diagonal, a line from top right to bottom left"
                f"{BACKWARDS[kind]}."
            )
        return reading
    reading = READING[kind].format(token="token", question="question")
    return reading + (_ALIGNED if frame.target_score == "gold" and site in frame.scores else "")

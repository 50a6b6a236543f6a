"""Answers as text, and figures of their attention, for the tabs of Ask."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from transformer.figures.labels import MapAxes, map_axes, wrong_predictions
from transformer.figures.lines import line_view
from transformer.figures.maps import large_map, map_strip
from transformer.figures.picture import Array, Picture, escaped
from transformer.insight.names import short_head_name, shortened, site_name
from transformer.insight.rollout import pooled, rollout
from transformer.insight.scores import THRESHOLD
from transformer.recording.view import RunView

if TYPE_CHECKING:
    from transformer.asking.answers import Answer, Reading
    from transformer.asking.model import SnapshotModel

INPUTS = {"forced": "given the right answer so far", "free": "on its own"}
"""What the decoder reads: the right answer (teacher-forced), or its own output (free-running)."""
NAMED = 3
"""Most changed words whose answers before and after are shown."""
RIGHT = {True: "<b class='yes'>✓ right</b>", False: "<b class='not'>✗ wrong</b>"}


def labels(answer: Answer, reading: Reading, site: str) -> MapAxes:
    """The labels of both axes. Rows that write are labelled "X → Y": they read X and should write Y.

    Y is a token of the right answer if teacher-forced, else of the model's own output.
    """
    answered = answer.expected if reading is answer.forced else reading.written
    to_write = reading.to_write(answered)
    return map_axes(reading.axes[site], reading.src_tokens, reading.tgt_tokens, to_write)


@dataclass(frozen=True)
class ShownMap:
    """One map of a reading: of one head, of all heads of its layer, or of all layers."""

    answer: Answer
    reading: Reading
    site: str
    head: int
    pool: str = "head"
    """One head ("head"), "mean" or "max" over the heads of its layer, or "rollout" over all layers."""
    lit: int | None = None
    """The highlighted row."""

    @property
    def weights(self) -> Array:
        """Weights of the map, (Q, K). NaN where blocked; in a rollout only where the causal mask blocks."""
        axes, maps = self.reading.axes[self.site], self.reading.maps
        if self.pool == "head":
            return maps[self.site][self.head]
        if self.pool != "rollout":
            return pooled(maps[self.site], self.pool)
        rolled_out = rollout(maps)[axes.kind].astype(np.float32)
        if axes.causal:  # later tokens are blocked, not 0
            rolled_out[~np.tri(len(rolled_out), dtype=bool)] = np.nan
        return rolled_out

    @property
    def name(self) -> str:
        """The name of the head or of the pooled map."""
        if self.pool == "head":
            return short_head_name(self.site, self.head)
        if self.pool == "rollout":
            return f"rollout, {self.reading.axes[self.site].kind}"
        return f"{self.pool} over the heads of {site_name(self.site)}"

    def large(self, note: str = "") -> Picture:
        """The large map, with a note beside the name of its head. If teacher-forced, wrong predictions are
        marked."""
        answer, reading, axes = self.answer, self.reading, self.reading.axes[self.site]
        wrong = {}
        if reading is answer.forced:
            wrong = wrong_predictions(axes, reading.to_write(answer.expected), reading.predicted)
        # If the right answer is not known, `forced` and `free` are the same free-running pass.
        fed = INPUTS["free" if reading is answer.free else "forced"]
        asked = f"“{escaped(shortened(answer.question.text, 16))}” · step {answer.step:,}"
        return large_map(
            self.weights,
            labels(answer, reading, self.site),
            title=f"<b>{self.name}</b>{note}<br><span style='font-size:0.8em'>{asked} · {fed}</span>",
            step=answer.step,
            wrong=wrong,
            lit_row=self.lit,
            off=self.pool == "head" and (self.site, self.head) in answer.interventions.ablated,
        )

    def lines(self) -> Picture:
        """The same weights as lines between two columns of tokens."""
        return line_view(
            self.weights,
            labels(self.answer, self.reading, self.site),
            title=f"{self.name} as lines<br><span style='font-size:0.8em'>the more opaque, the higher the "
            "weight</span>",
            step=self.answer.step,
            lit_row=self.lit,
        )


def reading_strip(
    view: RunView, answer: Answer, reading: Reading, sites: list[str], chosen: tuple[str, int]
) -> Picture:
    """All heads of one kind of attention as small maps."""
    frame = view.frame_at(answer.step)
    n_heads, off = len(reading.maps[sites[0]]), answer.interventions.ablated
    scores = [frame.scores.get(site) if frame else None for site in sites]
    return map_strip(
        [reading.maps[site] for site in sites],
        labels(answer, reading, sites[0]),
        lit=[
            [s is not None and s[head] >= THRESHOLD and (site, head) not in off for head in range(n_heads)]
            for site, s in zip(sites, scores, strict=True)
        ],
        chosen=(sites.index(chosen[0]), chosen[1]),
        off=[(sites.index(site), head) for site, head in off if site in sites],
        step=answer.step,
    )


def as_written(text: str, stopped: bool) -> str:
    """An output, with an ellipsis if it did not stop by itself."""
    return text if stopped else f"{text}…"


def changed_outputs(before: SnapshotModel, after: SnapshotModel, things: str) -> str:
    """As HTML, how many held-out examples have a different output, and up to `NAMED` of them.

    Those that are no longer right come first.

    Args:
        things: plural noun for the examples.
    """
    pairs = [(word, *was, *after.held_out[word]) for word, was in before.held_out.items()]
    changed = sorted((pair for pair in pairs if pair[1] != pair[3]), key=lambda pair: pair[4] - pair[2])
    some = " · ".join(
        f"{html.escape(word)} → {_marked(was, was_right)} then {_marked(now, now_right)}"
        for word, was, was_right, now, now_right in changed[:NAMED]
    )
    count = f"<b>{len(changed)} of {len(pairs)}</b> test {things} have a different output"
    return f"<div class='hl-changed' data-changed='{len(changed)}'>{count}{': ' if some else ''}{some}.</div>"


def _marked(text: str, right: bool) -> str:
    mark = "<b class='yes'>✓</b>" if right else "<b class='not'>✗</b>"
    return f"<b>{html.escape(text) or '(nothing)'}</b> {mark}"


def verdict(name: str, answer: Answer, exact: tuple[int, int], things: str) -> str:
    """As HTML, the answer to a word, and how many held-out examples are right.

    Args:
        exact: (right, asked).
        things: plural noun for the examples.
    """
    right = f"{exact[0]} of {exact[1]} test {things} right"
    written = as_written(answer.output, answer.stopped)
    return (
        f"<div class='hl-verdict' data-right='{exact[0]}'><small>{name}</small> "
        f"{html.escape(answer.question.text)} → {_marked(written, answer.right)}<br><em>{right}</em></div>"
    )

"""Which frames of a run an export shows, what their heads are called, and what their maps hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from transformer.errors import InputError
from transformer.figures.labels import wrong_predictions
from transformer.figures.maps import MapAxes
from transformer.insight.blocking import BY_HAND, FUTURE, OPEN, PADDING
from transformer.insight.names import short_head_name
from transformer.player.chunks import axes_of
from transformer.recording.frame import Array, Frame, Probe
from transformer.recording.view import RunView

KIND_NAMES = {
    "cross": "cross-attention",
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "sequence": "self-attention (question and answer in one)",
}


def film_frames(
    view: RunView, most: int, *, word: str | None = None, moments: bool = True
) -> tuple[Frame, ...]:
    """At most this many frames, evenly chosen; always the first, the last and, while they fit, the moments.

    Args:
        most: at least 2.
        word: leave out frames recorded before this word was asked.
        moments: whether those of moments are always among them; a few frames show more without this.

    Raises:
        InputError: there is no such frame.
    """
    if most < 2:
        raise ValueError(f"A film of {most} frames has no first and last one; take at least 2.")
    steps = view.frames.steps if word is None else view.frames.steps_of(word)
    if not steps:
        what = "Nothing has been recorded yet" if word is None else f"No frame of this run shows “{word}” yet"
        known = ", ".join(probe.text for probe in view.frame.probes) if view.frame else ""
        advice = f"choose one of its words: {known}." if known else "wait until the untrained model is shown."
        raise InputError(f"{what}; {advice}", "word")
    last = len(steps) - 1
    protected = {moment.step for moment in view.moments} if moments else set()
    marked = [i for i in range(1, last) if steps[i] in protected]
    stay = {marked[i] for i in _spread(len(marked), min(len(marked), most - 2))}
    even = min(most, len(steps))  # two of them are the first and the last, and for these there is always room
    while len(chosen := stay | set(_spread(len(steps), even))) > most:
        even -= 1
    return tuple(view.frames.of_step(steps[i]) for i in sorted(chosen))


def share_of(view: RunView, shown: Sequence[object]) -> str:
    """How many of the run's frames an export holds."""
    return f"{len(shown):,} of {len(view.frames):,} frames"


def _spread(n: int, count: int) -> list[int]:
    """This many of the numbers below n, as even as whole numbers can be."""
    return [int(i) for i in np.linspace(0, n - 1, count).round()] if count else []


def probe_of(frame: Frame, word: str) -> tuple[int, Probe]:
    """The row of a word in this frame's maps, and what was recorded of it."""
    row = frame.row_of(word)
    return row, frame.probes[row]


def widest(frames: Sequence[Frame], word: str) -> Frame:
    """The frame with the most tokens of this word: where [PAD] is not hidden, it follows them."""
    return max(reversed(frames), key=lambda frame: len(probe_of(frame, word)[1].tgt_tokens))


@dataclass(frozen=True, kw_only=True)
class Map:
    """One head's map of one word at one step."""

    axes: MapAxes
    weights: Array
    """(Q, K) in [0, 1]; NaN where a cell is blocked."""
    reasons: Array
    """(Q, K), why a cell is blocked: OPEN, FUTURE, PADDING or BY_HAND."""
    wrong: dict[int, str]
    """Rows that would write a wrong token, and which; none where the right one is unknown."""
    off: bool
    """Whether the head is switched off."""

    @property
    def labels(self) -> list[str]:
        """What stands before each row, with what it would write where that is wrong."""
        return [
            f"{row} ✗ {self.wrong[i]}" if i in self.wrong else row for i, row in enumerate(self.axes.rows)
        ]


def map_of(frame: Frame, word: str, site: str, head: int, like: Frame) -> Map:
    """A map as large as in another frame of the run: tokens that only that one shows are hidden [PAD]s here.

    Where the right answer is not known the tokens are the model's own, and others at every step.
    """
    sides = frame.axes[site]
    row, probe = probe_of(frame, word)
    _, other = probe_of(like, word)
    axes = axes_of(sides, other)
    shape = axes.shape
    if not probe.forced:
        own = axes_of(sides, probe)
        axes = replace(
            own,
            rows=own.rows + ("",) * (shape[0] - len(own.rows)),
            columns=own.columns + ("",) * (shape[1] - len(own.columns)),
        )
    shown = frame.map(row, site)[head]
    n_rows, n_columns = shown.shape
    weights, reasons = np.full(shape, np.nan, dtype=shown.dtype), np.full(shape, PADDING)
    weights[:n_rows, :n_columns] = shown
    later = np.arange(n_columns) > np.arange(n_rows)[:, None]
    blocked = np.where(later & sides.causal, FUTURE, BY_HAND)
    reasons[:n_rows, :n_columns] = np.where(np.isnan(shown), blocked, OPEN)
    return Map(
        axes=axes,
        weights=weights,
        reasons=reasons,
        wrong=wrong_predictions(sides, probe.expected, probe.predicted) if probe.forced else {},
        off=head in frame.interventions.heads_off_at(site),
    )


def head_title(frame: Frame, site: str, head: int) -> str:
    """One head with its kind of attention: "cross-attention · decoder 2 · head 1".

    Raises:
        ValueError: the model has no such head.
    """
    if site not in frame.axes or not 0 <= head < frame.n_heads(site):
        raise ValueError(f"There is no head {head} at {site!r}; the sites are {', '.join(frame.axes)}.")
    kind = KIND_NAMES.get(frame.axes[site].kind)
    return f"{kind} · {short_head_name(site, head)}" if kind else short_head_name(site, head)

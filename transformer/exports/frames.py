"""The frames of a run that an export shows, and the maps of their heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from transformer.errors import InputError
from transformer.figures.labels import MapAxes, wrong_predictions
from transformer.player.chunks import axes_of
from transformer.recording.frame import Array, Frame
from transformer.recording.view import RunView
from transformer.shared.attention_info import BY_HAND, FUTURE, OPEN, PADDING


def film_frames(view: RunView, most: int, word: str, *, moments: bool = True) -> tuple[Frame, ...]:
    """Select evenly spaced frames of a tracked word: always the first and the last, and the moments that fit.

    Args:
        most: maximum number of frames, at least 2.
        moments: whether to prefer the frames of moments; a small selection shows more if it is evenly spaced.

    Raises:
        InputError: nothing is recorded of this word yet.
    """
    steps = view.frames.steps_of(word)
    if not steps:
        listed = ", ".join(tracked.text for tracked in view.frame.words) if view.frame else ""
        advice = (
            f"choose one of its tracked words: {listed}."
            if listed
            else "wait until the untrained model is shown."
        )
        raise InputError(f"No frame of this run shows “{word}” yet; {advice}", "word")
    last = len(steps) - 1
    protected = {moment.step for moment in view.moments} if moments else set()
    marked = [i for i in range(1, last) if steps[i] in protected]
    stay = {marked[i] for i in _spread(len(marked), min(len(marked), most - 2))}
    spaced = min(most, len(steps))  # stays at least 2, the first and the last, if there are two
    while len(chosen := stay | set(_spread(len(steps), spaced))) > most:
        spaced -= 1
    return tuple(view.frames.of_step(steps[i]) for i in sorted(chosen))


def share_of(view: RunView, shown: Sequence[object]) -> str:
    """State how many of the run's frames an export has."""
    return f"{len(shown):,} of {len(view.frames):,} frames"


def _spread(n: int, count: int) -> list[int]:
    """Return `count` evenly spaced indices below n, as far as rounding allows."""
    return [int(i) for i in np.linspace(0, n - 1, count).round()] if count else []


def widest(frames: Sequence[Frame], word: str) -> Frame:
    """Return the frame where this word has the most target tokens. Without a padding mask, [PAD] counts."""
    return max(reversed(frames), key=lambda frame: len(frame.words[frame.row_of(word)].tgt_tokens))


@dataclass(frozen=True, kw_only=True)
class Over:
    """A row of a map over the picture that its columns are patches of."""

    query: str
    """The token whose row it is."""
    pixels: Array
    """(H, W, 3) from 0 to 255."""
    shares: Array
    """(rows, columns) of patches: their weights."""
    patch: tuple[int, int] | None = None
    """Row and column of the query, where it is one patch."""


@dataclass(frozen=True, kw_only=True)
class Map:
    """One head's map of one word at one step."""

    axes: MapAxes
    weights: Array
    """(Q, K) in [0, 1]; NaN where a cell is blocked."""
    reasons: Array
    """(Q, K), why a cell is blocked: OPEN, FUTURE, PADDING or BY_HAND."""
    wrong: dict[int, str]
    """Each row that predicts a wrong token, to that token; empty if the right answer is not known."""
    off: bool
    """Whether the head is switched off."""
    over: Over | None = None
    """One row drawn over the picture that its columns are patches of, in place of the map."""

    @property
    def labels(self) -> list[str]:
        """The label of each row, followed by the predicted token if that is wrong."""
        return [
            f"{row} ✗ {self.wrong[i]}" if i in self.wrong else row for i, row in enumerate(self.axes.rows)
        ]


def map_of(frame: Frame, word: str, site: str, head: int, like: Frame) -> Map:
    """Return a map, padded to the size that it has in the frame `like`: added cells are blocked.

    If the right answer is not known, the labels are those of this frame: they may hold tokens of the model's
    own output, which may change from step to step.
    """
    sides = frame.axes[site]
    row = frame.row_of(word)
    tracked = frame.words[row]
    axes = axes_of(sides, like.words[like.row_of(word)])
    shape = axes.shape
    if not tracked.forced:
        own = axes_of(sides, tracked)
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
        wrong=wrong_predictions(sides, tracked.expected, tracked.predicted) if tracked.forced else {},
        off=head in frame.interventions.heads_off_at(site),
    )


def over_picture(view: RunView, shown: Map, word: str, site: str) -> Map:
    """The same map over the picture of its columns, if it has one."""
    covered = view.covered(word, site)
    if covered is None:
        return shown
    picture, row = covered.picture, covered.usual_query
    is_patch = covered.asks and covered.pooled == 1 and row >= picture.before
    over = Over(
        query=f"{'patch ' if is_patch else ''}{shown.axes.rows[row]}",
        pixels=picture.array(),
        shares=picture.shares(shown.weights[row], covered.pooled),
        patch=divmod(row - picture.before, picture.grid[1]) if is_patch else None,
    )
    return replace(shown, over=over)


def check_head(frame: Frame, site: str, head: int) -> None:
    """Raise ValueError if the model has no such head; heads are counted from 0."""
    if site not in frame.axes or not 0 <= head < frame.n_heads(site):
        raise ValueError(
            f"There is no head {head} at {site!r}, counted from 0; the sites are {', '.join(frame.axes)}."
        )

"""One attention map in pixels: its cells, the labels of both axes, and the legend of its colours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from transformer.exports.canvas import (
    BLOCKED,
    MARK,
    OFF,
    PADDED,
    TAKEN,
    WRONG,
    Array,
    Box,
    Canvas,
    text_width,
    weight_index,
)
from transformer.figures.maps import MapAxes
from transformer.insight.blocking import BY_HAND, FUTURE, PADDING

LARGEST_TYPE, SMALLEST_TYPE = 26, 9
WIDE = 3
"""Among single letters a token of more is wider than its column and stands one line lower."""
MOST_LINES = 4
"""On which words stand under a map."""


@dataclass(frozen=True)
class Still:
    """Where one map stands on a sheet; the same for every step, so that nothing jumps."""

    axes: MapAxes
    left: int
    top: int
    cell: int
    type_size: int

    @classmethod
    def fitted(cls, axes: MapAxes, box: Box, *, labels: Iterable[str] = ()) -> Still:
        """As large as a box allows, in its middle.

        Args:
            labels: every text that may stand before a row; none for a map without row labels.
        """
        left, top, right, bottom = box
        labels = tuple(labels)
        n_rows, n_columns = len(axes.rows), len(axes.columns)
        for size in range(LARGEST_TYPE, SMALLEST_TYPE - 1, -1):
            before = max((text_width(label, size) for label in labels), default=0.0) + (size if labels else 0)
            for n_lines in range(2, MOST_LINES + 1):
                height = bottom - top - _below(size, n_lines)
                cell = max(2, int(min((right - left - before) / n_columns, height / n_rows)))
                lines = _lines(axes.columns, cell, size)
                if max(lines) <= n_lines:
                    break
            if cell >= 1.25 * size and all(lines[i] or _repeats(axes.columns, i) for i in range(n_columns)):
                break
        spare = right - left - before - cell * n_columns
        return cls(axes, round(left + before + spare / 2), round(top), cell, size)

    @property
    def n_lines(self) -> int:
        """Lines of tokens under the map."""
        return max(2, *_lines(self.axes.columns, self.cell, self.type_size))

    @property
    def overhang(self) -> float:
        """How far a token under the map stands out at a side of it, at most."""
        last = len(self.axes.columns) - 1
        halves = [text_width(token, self.type_size) / 2 for token in self.axes.columns]
        return max(0.0, *(half - (min(i, last - i) + 0.5) * self.cell for i, half in enumerate(halves)))

    @property
    def right(self) -> int:
        """Where the cells end."""
        return self.left + self.cell * len(self.axes.columns)

    @property
    def bottom(self) -> int:
        """Where the cells end."""
        return self.top + self.cell * len(self.axes.rows)

    def middle(self, row: int, column: int) -> tuple[int, int]:
        """The pixel (x, y) in the middle of a cell."""
        return self.left + column * self.cell + self.cell // 2, self.top + row * self.cell + self.cell // 2

    def draw_cells(self, canvas: Canvas, weights: Array, reasons: Array, *, off: bool = False) -> None:
        """Draw the weights, (rows, columns) in [0, 1], and what is blocked in the manner of its reason.

        Args:
            off: whether the head is switched off, and so lies under stripes.
        """
        each = np.ones((self.cell, self.cell), dtype=np.uint8)
        pixels = np.kron(weight_index(weights), each)
        for reason, (color, marks, _) in LOOKS.items():
            flat = np.where(marks(*pixels.shape), np.uint8(MARK), np.uint8(color))
            pixels = np.where(np.kron(reasons == reason, each) > 0, flat, pixels)
        if off:
            pixels = np.where(striped(*pixels.shape), np.uint8(OFF), pixels)
        gaps = np.ones(pixels.shape, dtype=bool)  # a line of paper between two cells, where there is room
        if self.cell >= 6:
            gaps[:: self.cell] = gaps[:, :: self.cell] = False
        canvas.fill((self.left, self.top, self.right, self.bottom), np.where(gaps, pixels, 0))

    def draw_rows(self, canvas: Canvas, wrong: Mapping[int, str]) -> None:
        """Write what stands before each row, with what it would write where that is wrong."""
        size = self.type_size
        for i in self._labelled(len(self.axes.rows)):
            mark = f" ✗ {wrong[i]}" if i in wrong else ""
            x, y = self.left - size / 2, self.middle(i, 0)[1]
            canvas.text(x, y, mark, size, align="r", tone=WRONG)
            canvas.text(x - text_width(mark, size), y, self.axes.rows[i], size, align="r")

    def draw_columns(self, canvas: Canvas, *, title: bool = True) -> None:
        """Write what stands under each column."""
        size = self.type_size
        lines = _lines(self.axes.columns, self.cell, size)
        for i in self._labelled(len(self.axes.columns)):
            if lines[i]:
                y = self.bottom + (lines[i] - 0.3) * 1.15 * size
                canvas.text(self.middle(0, i)[0], y, self.axes.columns[i], size, align="m")
        if title:
            y = self.bottom + _below(size, self.n_lines) - 12
            canvas.text((self.left + self.right) / 2, y, self.axes.column_title, 17, align="m")

    def _labelled(self, n: int) -> range:
        """Every position, or every second, third, ... where the type is taller than a cell."""
        return _labelled(n, self.cell, self.type_size)


def _labelled(n: int, cell: int, size: int) -> range:
    return range(0, n, -(-size // cell))


@lru_cache(maxsize=256)
def _lines(tokens: tuple[str, ...], cell: int, size: int) -> tuple[int, ...]:
    """On which line under a map each token stands; 0 for one that is not written."""
    if any(len(token) > 1 and not token.startswith("[") for token in tokens):
        return _staggered(tokens, cell, size)
    lines: list[int] = []
    for i, token in enumerate(tokens):
        beside = i > 0 and lines[-1] == 2
        lines.append(1 if len(token) <= WIDE else 0 if _repeats(tokens, i) else 3 if beside else 2)
    return tuple(lines)


def _repeats(tokens: Sequence[str], i: int) -> bool:
    """Whether this is a [PAD] or the like that only repeats the one before."""
    return i > 0 and len(tokens[i]) > WIDE and tokens[i].startswith("[") and tokens[i] == tokens[i - 1]


def _staggered(tokens: Sequence[str], cell: int, size: int) -> tuple[int, ...]:
    """Words: each on the first line where it does not touch the one before, or nowhere."""
    lines = [0] * len(tokens)
    ends = [float("-inf")] * MOST_LINES
    for i in _labelled(len(tokens), cell, size):
        left = (i + 0.5) * cell - text_width(tokens[i], size) / 2
        free = next((n for n, end in enumerate(ends) if left >= end + 0.4 * size), None)
        if free is not None and not _repeats(tokens, i):
            lines[i], ends[free] = free + 1, left + text_width(tokens[i], size)
    return tuple(lines)


def _below(size: int, n_lines: int) -> float:
    """What the lines of tokens and the title under a map take."""
    return n_lines * 1.15 * size + 30


def hatched(height: int, width: int) -> Array:
    """(height, width) bool: thin lines that rise to the right, the mark of the future."""
    lines: Array = (np.add.outer(np.arange(height), np.arange(width)) % 9) < 2
    return lines


def crossed(height: int, width: int) -> Array:
    """(height, width) bool: thin lines both ways, the mark of what somebody has blocked."""
    return hatched(height, width) | hatched(height, width)[:, ::-1]


def striped(height: int, width: int) -> Array:
    """(height, width) bool: broad stripes that rise to the right, the mark of a head that is switched off."""
    stripes: Array = (np.add.outer(np.arange(height), np.arange(width)) % 10) < 7
    return stripes


def dotted(height: int, width: int) -> Array:
    """(height, width) bool: small dots, the mark of padding."""
    dots: Array = np.logical_and.outer(np.arange(height) % 9 < 3, np.arange(width) % 9 < 3)
    return dots


LOOKS = {
    FUTURE: (BLOCKED, hatched, "future"),
    PADDING: (PADDED, dotted, "padding"),
    BY_HAND: (TAKEN, crossed, "blocked"),
}
"""Why a cell is blocked, to its colour, its mark and its name."""


def draw_legend(canvas: Canvas, left: int, top: int, height: int, reasons: Iterable[Array]) -> None:
    """The colours of the weights from 0 to 100 %, and what the blocked cells of these maps look like."""
    canvas.text(left, top - 20, "weight", 17)
    shades = weight_index(np.linspace(1.0, 0.0, height)[:, None])
    canvas.fill((left, top, left + 18, top + height), shades)
    for share in (1.0, 0.5, 0.0):
        canvas.text(left + 26, top + (1.0 - share) * (height - 1), f"{share:.0%}", 17)
    met = {int(reason) for one in reasons for reason in np.unique(one)}
    y = top + height + 34
    for reason, (color, marks, text) in LOOKS.items():
        if reason in met:
            swatch = np.where(marks(18, 18), np.uint8(MARK), np.uint8(color))
            canvas.fill((left, y - 9, left + 18, y + 9), swatch)
            canvas.text(left + 26, y, text, 17)
            y += 28

"""Where the tables of a stage stand, and which of their labels there is room for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from transformer.figures.cells import LETTER, LINE
from transformer.figures.picture import escaped
from transformer.insight.tables import Panel

WIDTH, HEIGHT = 900.0, 330.0
"""Pixels that an arrangement is made for, if nothing else is said; it stretches with the picture."""
STRIP, HEADING, GAP = 25.0, 20.0, 14.0
MOST_BESIDE = 10
"""Tables in one line; of more, the first two stand above the others."""
WIDEST_CELL = 90.0
SHORT = 3
"""Letters of a label that stands below its own column in any case."""


@dataclass(frozen=True, kw_only=True)
class Box:
    """One pair of axes: where it stands, and the tables in it, more than one where they are strips."""

    tables: tuple[int, ...]
    left: float
    right: float
    top: float
    bottom: float
    """In pixels of the arrangement, from the upper left."""
    labelled: bool = True
    """Whether its rows have their labels; a table to its left may have the same."""
    strips: bool = False
    """Whether its rows are tables of one row each, with their names as labels."""

    def n_rows(self, inside: Sequence[Panel]) -> int:
        """Rows of cells, with these tables in it."""
        return len(inside) if self.strips else len(inside[0].rows)

    def cell(self, inside: Sequence[Panel]) -> tuple[float, float]:
        """Width and height of a cell."""
        width, height = self.right - self.left, self.bottom - self.top
        return width / len(inside[0].columns), height / self.n_rows(inside)


def arranged(
    panels: Sequence[Panel], sources: Sequence[Panel], top: float, sheet: float = WIDTH
) -> list[Box]:
    """A box for each table or for strips of the same columns, panels above and sources below.

    Args:
        top: pixels to leave free above.
        sheet: pixels from left to right.
    """
    tables = [*panels, *sources]
    places = range(len(tables))
    above, below = places[: len(panels)], places[len(panels) :]
    needed = sum(height for _, height in _strips(below, tables, sheet))
    bottom = HEIGHT - needed - (GAP if below else 0)
    if all(len(panel.rows) == 1 for panel in panels):
        stretch = min(2.0, (bottom - top) / sum(height for _, height in _strips(above, tables, sheet)))
        boxes = _stacked(above, tables, top, stretch, sheet)
    else:
        lines = [above] if len(panels) <= MOST_BESIDE else [above[:2], above[2:]]
        each = (bottom - top) / len(lines)
        boxes = [
            box
            for n, line in enumerate(lines)
            for box in _beside(line, panels, top + n * each, top + (n + 1) * each, sheet)
        ]
    return boxes + _stacked(below, tables, bottom + GAP, 1.0, sheet)


def _strips(
    places: Sequence[int], tables: Sequence[Panel], sheet: float
) -> list[tuple[tuple[int, ...], float]]:
    """Neighbours with the same columns, and the height that each group of them needs."""
    groups = [tuple(group) for _, group in groupby(places, lambda i: tables[i].columns)]
    return [(group, len(group) * STRIP + _below(tables[group[0]], sheet * 0.8)) for group in groups]


def _below(table: Panel, width: float) -> float:
    """Pixels for the labels and the title below a table of this width."""
    _, _, lines = column_ticks(table.columns, width / len(table.columns))
    return (lines + 1) * LINE


def _stacked(
    places: Sequence[int], tables: Sequence[Panel], top: float, stretch: float, sheet: float
) -> list[Box]:
    """Tables of one row each below each other, their names to the left."""
    left = _gutter([tables[i].name for i in places])
    boxes = []
    for group, height in _strips(places, tables, sheet):
        right = min(sheet, left + WIDEST_CELL * len(tables[group[0]].columns))
        bottom = top + height * stretch - _below(tables[group[0]], right - left)
        boxes.append(Box(tables=group, left=left, right=right, top=top, bottom=bottom, strips=True))
        top += height * stretch
    return boxes


def _gutter(labels: Sequence[str]) -> float:
    """Pixels for labels left of a table."""
    return min(215.0, max(map(len, labels), default=0) * LETTER + 10)


def _beside(
    places: Sequence[int], panels: Sequence[Panel], top: float, bottom: float, sheet: float
) -> list[Box]:
    """Tables in one line, each with labels of its rows unless its neighbour to the left has the same."""
    labelled = {i: i == places[0] or panels[i].rows != panels[i - 1].rows for i in places}
    gutters = {i: (_gutter(panels[i].rows) + LINE if labelled[i] else 0.0) for i in places}
    room = sheet - sum(gutters.values()) - GAP * (len(places) - 1)
    widths = _widths(places, panels, room)
    left, boxes = 0.0, []
    for i in places:
        left += gutters[i]
        right = left + min(widths[i], WIDEST_CELL * len(panels[i].columns))
        floor = bottom - _below(panels[i], right - left)
        if len(panels[i].rows) == 1:
            floor = min(floor, top + HEADING + 2 * STRIP)
        boxes.append(
            Box(tables=(i,), left=left, right=right, top=top + HEADING, bottom=floor, labelled=labelled[i])
        )
        left = right + GAP
    return boxes


def _widths(places: Sequence[int], panels: Sequence[Panel], room: float) -> dict[int, float]:
    """Wider where there are more columns, and the first one widest for its columns.

    A heading has the room that it needs where that leaves enough to the other tables.
    """
    shares = {i: len(panels[i].columns) ** 0.5 * (1.3 if i == 0 else 1.0) for i in places}
    widths = {i: room * share / sum(shares.values()) for i, share in shares.items()}
    headings = {i: (LETTER + 1) * len(panels[i].name) for i in places}
    tight = {i: heading for i, heading in headings.items() if heading > widths[i]}
    if len(tight) == len(places) or sum(tight.values()) >= room / 2:
        return widths
    each = (room - sum(tight.values())) / sum(shares[i] for i in places if i not in tight)
    return {i: tight.get(i, each * shares[i]) for i in places}


def column_ticks(labels: Sequence[str], width: float) -> tuple[list[float], list[str], int]:
    """Places and texts of labels below columns of this width, and the lines that they need.

    Equal long neighbours, such as [PAD]s, have one label together; long ones stand lower where there is no
    room, and where there is none for letters there are no labels.
    """
    if all(label.replace(",", "").isdigit() for label in labels[:-1]):  # features; the last may be a bias
        step = _step(max(map(len, labels)) * LETTER + 4, width)
        shown = [i for i, label in enumerate(labels) if i % step == 0 and label.isdigit()]
        last = [len(labels) - 1] if not labels[-1].isdigit() else []
        if last and shown and (last[0] - shown[-1]) * width < 5 * LETTER:
            shown.pop()
        return [float(i) for i in shown + last], [labels[i] for i in shown + last], 1
    if width < LETTER + 2:
        return [], [], 1
    runs = _runs(labels)
    texts = [labels[start] + (f" ×{count}" if count > 1 else "") for start, count in runs]
    places = [start + (count - 1) / 2 for start, count in runs]
    short = [count == 1 and len(labels[start]) <= SHORT for start, count in runs]
    spans = [_span(x * width, text) for x, text in zip(places, texts, strict=True)]
    chosen = [n for n, is_short in enumerate(short) if is_short]
    lines = dict.fromkeys(chosen, 0)
    taken = [[spans[n] for n in chosen]]
    for n in (n for n, is_short in enumerate(short) if not is_short):
        line = next(
            (k for k, there in enumerate(taken) if all(_apart(spans[n], other) for other in there)),
            len(taken),
        )
        left, right = spans[n]
        if line and (left < -width / 2 - GAP / 2 or right > (len(labels) - 0.5) * width + GAP / 2):
            continue  # it would reach below the next table
        if line == len(taken):
            taken.append([])
        taken[line].append(spans[n])
        lines[n] = line
    shown = sorted(lines)
    return [places[n] for n in shown], ["<br>" * lines[n] + escaped(texts[n]) for n in shown], len(taken)


def _span(middle: float, text: str) -> tuple[float, float]:
    """Where a label of small type begins and ends."""
    return middle - len(text) * LETTER / 2 - 1, middle + len(text) * LETTER / 2 + 1


def _apart(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one[1] <= other[0] or other[1] <= one[0]


def row_ticks(labels: Sequence[str], height: float) -> tuple[list[float], list[str]]:
    """Places and texts of labels beside rows of this height; equal long neighbours have one together."""
    step = _step(LINE - 2, height)
    runs = [run for n, run in enumerate(_runs(labels)) if n % step == 0]
    places = [start + (count - 1) / 2 for start, count in runs]
    return places, [escaped(labels[start]) + (f" ×{count}" if count > 1 else "") for start, count in runs]


def _step(needed: float, given: float) -> int:
    """Every how many-th label fits: 1, 2, 4, ..."""
    step = 1
    while step * given < needed:
        step *= 2
    return step


def _runs(labels: Sequence[str]) -> list[tuple[int, int]]:
    """Start and number of equal long neighbours; every short label is alone."""
    runs: list[tuple[int, int]] = []
    for i, label in enumerate(labels):
        if runs and len(label) > SHORT and labels[runs[-1][0]] == label:
            runs[-1] = runs[-1][0], runs[-1][1] + 1
        else:
            runs.append((i, 1))
    return runs

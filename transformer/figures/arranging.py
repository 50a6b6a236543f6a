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
    """Places and texts of labels below columns of this width in pixels, and the lines that they need.

    Long labels stand lower where there is no room, and where there is none for letters there are no labels.
    """
    if all(label.replace(",", "").isdigit() for label in labels[:-1]):
        return _feature_ticks(labels, width)
    if width < LETTER + 2:
        return [], [], 1
    ticks = _together(labels)
    lines: list[list[tuple[float, float]]] = [[]]  # of each line the labels that stand there: from, to
    line_of = {}
    for n in sorted(range(len(ticks)), key=lambda n: len(ticks[n][1]) > SHORT):  # short ones first
        place, text = ticks[n]
        half = len(text) * LETTER / 2 + 1
        left, right = place * width - half, place * width + half
        line = 0
        while len(text) > SHORT and line < len(lines) and _meets(left, right, lines[line]):
            line += 1
        if line and (left < -width / 2 - GAP / 2 or right > (len(labels) - 0.5) * width + GAP / 2):
            continue  # it would reach below the next table
        if line == len(lines):
            lines.append([])
        lines[line].append((left, right))
        line_of[n] = line
    shown = sorted(line_of)
    texts = ["<br>" * line_of[n] + escaped(ticks[n][1]) for n in shown]
    return [ticks[n][0] for n in shown], texts, len(lines)


def row_ticks(labels: Sequence[str], height: float) -> tuple[list[float], list[str]]:
    """Places and texts of labels beside rows of this height in pixels."""
    ticks = _together(labels)[:: _step(LINE - 2, height)]
    return [place for place, _ in ticks], [escaped(text) for _, text in ticks]


def _feature_ticks(labels: Sequence[str], width: float) -> tuple[list[float], list[str], int]:
    """Numbers of features, as many as there is room for; the last label may be a bias."""
    step = _step(max(map(len, labels)) * LETTER + 4, width)
    shown = [i for i, label in enumerate(labels) if i % step == 0 and label.isdigit()]
    if not labels[-1].isdigit():
        last = len(labels) - 1
        if shown and (last - shown[-1]) * width < 5 * LETTER:
            shown.pop()
        shown.append(last)
    return [float(i) for i in shown], [labels[i] for i in shown], 1


def _together(labels: Sequence[str]) -> list[tuple[float, str]]:
    """Place and text of each label; equal long neighbours, such as [PAD]s, have one together."""
    ticks = []
    for _, run in groupby(range(len(labels)), lambda i: labels[i] if len(labels[i]) > SHORT else i):
        places = list(run)
        text = labels[places[0]] + (f" ×{len(places)}" if len(places) > 1 else "")
        ticks.append((sum(places) / len(places), text))
    return ticks


def _meets(left: float, right: float, others: Sequence[tuple[float, float]]) -> bool:
    """Whether there is a label in the way."""
    return any(left < end and begin < right for begin, end in others)


def _step(needed: float, given: float) -> int:
    """Every how many-th label fits: 1, 2, 4, ..."""
    step = 1
    while step * given < needed:
        step *= 2
    return step

"""The tables of one stage side by side, and below them, strip by strip, what one cell was made of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from textwrap import wrap
from typing import Any, Protocol

import numpy as np

from transformer.figures import colors
from transformer.figures.arranging import HEADING, HEIGHT, WIDTH, Box, arranged, column_ticks, row_ticks
from transformer.figures.cells import (
    BLOCKED,
    LETTER,
    MOST_HOVERS,
    ROLES,
    SCALES,
    SHARES,
    Table,
    blocked_of,
    cell_traces,
)
from transformer.figures.maps import TITLE
from transformer.figures.picture import Picture, escaped
from transformer.insight.blocking import OPEN

SATURATED, MANY = 0.97, 300
"""Share of many numbers within the ends of their scale: a few large ones would leave the others pale."""
NARROW = 400.0
SCALE_NAMES = {
    "weights": "weight",
    "probabilities": "probability",
    "scores": "score",
    "distances": "distance",
    "plain": "number",
}


class Place(Protocol):
    """The one cell that is explained."""

    @property
    def row(self) -> int:
        """Position of the query."""

    @property
    def column(self) -> int | None:
        """Position of the key; None for none."""

    @property
    def feature(self) -> int:
        """Index within a vector."""


def matrix_picture(
    panels: Sequence[Table],
    *,
    focus: Place,
    title: str,
    step: int,
    sources: Sequence[Table] = (),
    width: float = WIDTH,
    same_scale: Sequence[Table] = (),
) -> Picture:
    """Draw the tables of a stage, the focused row and column framed, and what one cell was made of below.

    Tables of one row stand below each other. Weights go from 0 to 1; every other scale is even about zero
    and the same for all tables of its kind; the few numbers beyond its ends have the colours of the ends.

    Args:
        width: pixels that there are from left to right, about. A picture narrower than `NARROW` has neither
            headings, since its title says what it is, nor a legend of marks.
        same_scale: tables of other pictures whose numbers are to have the same colours.
    """
    narrow = width < NARROW
    tables = [*panels, *sources]
    legend = [] if narrow else _legend(tables)
    boxes = arranged(panels, sources, HEADING - 4 if legend else -HEADING if narrow else 0.0, width)
    hovers = sum(table.values.size for table in tables) <= MOST_HOVERS
    scales = {role: f"coloraxis{n + 1 if n else ''}" for n, role in enumerate(_scales(tables))}
    data: list[dict[str, Any]] = []
    owners: list[int] = []
    layout: dict[str, Any] = {
        "title": TITLE | {"text": title},
        # A narrow one is low too: without that margin, Plotly pushes the title up into the labels.
        "margin": {"l": 2, "r": 58 if scales else 2, "t": 40 if title else 4, "b": 22 if narrow else 6},
        "hoverlabel": {"align": "left", "font": {"size": 11 if narrow else 13}},
        "annotations": legend,
        "shapes": [],
        "showlegend": False,
    }
    for n, box in enumerate(boxes):
        suffix = str(n + 1) if n else ""
        inside = [tables[i] for i in box.tables]
        n_rows = len(inside) if box.strips else len(inside[0].rows)
        cell_width, cell_height = box.cell(len(inside[0].columns), n_rows)
        layout |= _axes(box, inside, suffix)
        for line, i in enumerate(box.tables):
            place: dict[str, Any] = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
            if box.strips:
                place["y"] = [line]
            if tables[i].role in scales:
                place["coloraxis"] = scales[tables[i].role]
            traces = cell_traces(
                tables[i],
                place=place,
                width=cell_width,
                height=cell_height,
                hovers=hovers,
                letters=24 if narrow else 60,
            )
            data += traces
            owners += [i] * len(traces)
            layout["shapes"] += _frames(tables[i], focus, suffix, line if box.strips else 0)
        if not box.strips and not narrow:
            layout["annotations"].append(_heading(inside[0], box))
    for n, (role, name) in enumerate(scales.items()):
        layout[name] = _scale(role, [*tables, *same_scale], n, len(scales))
    layout["meta"] = {"panels": owners}
    layout["uirevision"] = json.dumps([[table.rows, table.columns] for table in tables])
    return Picture(spec=json.dumps({"data": data, "layout": layout}), step=step)


def panel_of(picture: Picture, trace: int) -> int | None:
    """Which panel a clicked trace belongs to; sources count on behind the panels."""
    owners = json.loads(picture.spec)["layout"]["meta"]["panels"]
    return owners[trace] if 0 <= trace < len(owners) else None


def _axes(box: Box, inside: Sequence[Table], suffix: str) -> dict[str, Any]:
    """The two axes of a box: positions, with labels where there is room."""
    first = inside[0]
    n_rows, n_columns = len(inside) if box.strips else len(first.rows), len(first.columns)
    width, height = box.cell(n_columns, n_rows)
    bare = {"showgrid": False, "showline": False, "zeroline": False, "ticks": "", "tickangle": 0}
    x_places, x_texts, _ = column_ticks(first.columns, width)
    tall = box.bottom - box.top >= len(first.row_title) * LETTER
    wide = box.right - box.left >= len(first.column_title) * LETTER
    if box.strips:
        y_places, y_texts = [float(i) for i in range(n_rows)], [_named(table, 34) for table in inside]
    else:
        y_places, y_texts = row_ticks(first.rows, height)
    title = {"font": {"size": 11}, "standoff": 2}
    return {
        f"xaxis{suffix}": bare
        | {
            "domain": [box.left / box.sheet, min(1.0, box.right / box.sheet)],
            "anchor": f"y{suffix}",
            "tickvals": x_places,
            "ticktext": x_texts,
            "tickfont": {"size": 11},
            "range": [-0.5, n_columns - 0.5],
            "title": title | {"text": first.column_title if wide else ""},
        },
        f"yaxis{suffix}": bare
        | {
            "domain": [max(0.0, 1 - box.bottom / HEIGHT), 1 - box.top / HEIGHT],
            "anchor": f"x{suffix}",
            "tickvals": y_places,
            "ticktext": y_texts,
            "tickfont": {"size": 11},
            "range": [n_rows - 0.5, -0.5],
            "showticklabels": box.labelled,
            # With less standoff, Plotly lets this one touch the labels.
            "title": title
            | {"standoff": 8, "text": first.row_title if box.labelled and tall and not box.strips else ""},
        },
    }


def _named(table: Table, width: int) -> str:
    """The name of a table, in the colour of its role."""
    text = "<br>".join(map(escaped, wrap(table.name, width)))
    color = ROLES.get(table.role)
    return f'<span style="color:{color}"><b>{text}</b></span>' if color else text


def _heading(table: Table, box: Box) -> dict[str, Any]:
    return {
        "text": _named(table, 60) if table.role in ROLES else f"<b>{escaped(table.name)}</b>",
        "xref": "paper",
        "yref": "paper",
        "x": box.left / box.sheet,
        "y": 1 - box.top / HEIGHT,
        "xanchor": "left",
        "yanchor": "bottom",
        "yshift": 2,
        "showarrow": False,
        "font": {"size": 12},
    }


def _frames(table: Table, focus: Place, suffix: str, top: int) -> list[dict[str, Any]]:
    """The frame of a role, of the focused row and column, and of cells that stand out.

    Args:
        top: the line of the first row.
    """
    n_rows, n_columns = len(table.rows), len(table.columns)
    places = {"row": focus.row, "column": focus.column, "feature": focus.feature}
    row, column = (
        None if (place := places.get(axis)) is None else min(place, n - 1)
        for axis, n in zip(table.axes, (n_rows, n_columns), strict=True)
    )

    def frame(rows: tuple[int, int], columns: tuple[int, int], color: str, width: int) -> dict[str, Any]:
        """From the first to the last, both inside."""
        return {
            "type": "rect",
            "xref": f"x{suffix}",
            "yref": f"y{suffix}",
            "x0": columns[0] - 0.5,
            "x1": columns[1] + 0.5,
            "y0": top + rows[0] - 0.5,
            "y1": top + rows[1] + 0.5,
            "line": {"color": color, "width": width},
        }

    all_rows, all_columns = (0, n_rows - 1), (0, n_columns - 1)
    found = [frame(all_rows, all_columns, ROLES[table.role], 2)] if table.role in ROLES else []
    found += [frame((r, r), (c, c), colors.RIGHT, 2) for r, c in table.marked]
    if row is not None:
        found.append(frame((row, row), all_columns, colors.MIRROR, 2))
    if column is not None:
        found.append(frame(all_rows, (column, column), colors.MIRROR, 2))
    return found


def _scales(tables: Sequence[Table]) -> list[str]:
    """The scales that are needed, in the order in which they first occur."""
    return [role for role in dict.fromkeys(table.role for table in tables) if role in SCALES]


def _scale(role: str, tables: Sequence[Table], place: int, count: int) -> dict[str, Any]:
    """A scale with its legend; place tells which of how many it is, from above."""
    bar: dict[str, Any] = {
        "title": {"text": f"{SCALE_NAMES.get(role, role)}<br> ", "side": "top", "font": {"size": 11}},
        "thickness": 9,
        "len": 0.94 / count,
        "y": 1 - place / count,
        "yanchor": "top",
        "x": 1,
        "xpad": 6,
        "ypad": 0,
        "tickfont": {"size": 10},
        "outlinewidth": 0,
    }
    if role in SHARES:
        bar |= {"tickvals": [0, 0.5, 1], "tickformat": ".0%"}
        return {"cmin": 0, "cmax": 1, "colorscale": SCALES[role], "colorbar": bar}
    sizes = np.abs(np.concatenate([table.values.ravel() for table in tables if table.role == role]))
    sizes = sizes[np.isfinite(sizes)]
    end = float(np.quantile(sizes, SATURATED)) if sizes.size >= MANY else 0.0
    largest = float(sizes.max(initial=0.0))
    beyond = 0 < 1.01 * end < largest
    end = end if beyond else largest or 1.0
    low, high = ("≤ −", "≥ ") if beyond else ("−", "")
    bar |= {"tickvals": [-end, 0, end], "ticktext": [f"{low}{_short(end)}", "0", f"{high}{_short(end)}"]}
    return {"cmin": -end, "cmax": end, "colorscale": SCALES[role], "colorbar": bar}


def _short(size: float) -> str:
    return f"{size:.0f}" if size >= 99.5 else f"{size:.2g}"


def _legend(tables: Sequence[Table]) -> list[dict[str, Any]]:
    """Why cells are blocked, by colour, mark and name, and what stands out; nothing where nothing does."""
    codes = {int(code) for table in tables for code in np.unique(blocked_of(table))} - {OPEN}
    masks = any(table.role == "mask" for table in tables)
    parts = [f'<span style="color:{colors.MARKER}">□</span> may be looked at'] if masks else []
    for code, (color, mark, name) in BLOCKED.items():
        if code in codes:
            parts.append(f'<span style="color:{color}">■</span> {mark} {name}')
    if any(table.off for table in tables):
        parts.append(f'<span style="color:{colors.OFF}">▨</span> switched off')
    if any(table.marked for table in tables):
        parts.append(f'<span style="color:{colors.RIGHT}"><b>□</b></span> the right token')
    if not parts:
        return []
    return [
        {
            "text": "   ".join(parts),
            "xref": "paper",
            "yref": "paper",
            "x": 1,
            "y": 1,
            "xanchor": "right",
            "yanchor": "top",
            "showarrow": False,
            "font": {"size": 12},
        }
    ]

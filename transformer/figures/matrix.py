"""The tables of one stage side by side, and below them, strip by strip, what one cell was made of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from textwrap import wrap

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
    reasons,
    table_traces,
)
from transformer.figures.parts import BARE, PAPER, Part, axis_title, frame, note, titled, weight_bar
from transformer.figures.picture import Picture, escaped
from transformer.insight.tables import Focus, Panel

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


def matrix_picture(
    panels: Sequence[Panel],
    *,
    focus: Focus,
    title: str,
    step: int,
    sources: Sequence[Panel] = (),
    width: float = WIDTH,
    same_scale: Sequence[Panel] = (),
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
    annotations = [] if narrow else _legend(tables)
    boxes = arranged(panels, sources, HEADING - 4 if annotations else -HEADING if narrow else 0.0, width)
    hovers = sum(table.values.size for table in tables) <= MOST_HOVERS
    roles = [role for role in dict.fromkeys(table.role for table in tables) if role in SCALES]
    scales = {role: f"coloraxis{n + 1 if n else ''}" for n, role in enumerate(roles)}
    data: list[Part] = []
    owners: list[int] = []
    shapes: list[Part] = []
    layout: Part = {
        "title": titled(title),
        # A narrow one is low too: without that margin, Plotly pushes the title up into the labels.
        "margin": {"l": 2, "r": 58 if scales else 2, "t": 40 if title else 4, "b": 22 if narrow else 6},
        "hoverlabel": {"align": "left", "font": {"size": 11 if narrow else 13}},
        "annotations": annotations,
        "shapes": shapes,
        "showlegend": False,
        "meta": {"panels": owners},
        "uirevision": json.dumps([[table.rows, table.columns] for table in tables]),
    }
    for n, box in enumerate(boxes):
        suffix = str(n + 1) if n else ""
        inside = [tables[i] for i in box.tables]
        cell_width, cell_height = box.cell(inside)
        layout |= _axes(box, inside, suffix, width)
        for line, i in enumerate(box.tables):
            place: Part = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
            if box.strips:
                place["y"] = [line]
            if tables[i].role in scales:
                place["coloraxis"] = scales[tables[i].role]
            traces = table_traces(
                tables[i],
                place=place,
                width=cell_width,
                height=cell_height,
                hovers=hovers,
                letters=24 if narrow else 60,
            )
            data += traces
            owners += [i] * len(traces)
            shapes += _frames(tables[i], focus, suffix, line if box.strips else 0)
        if not box.strips and not narrow:
            annotations.append(_heading(inside[0], box, width))
    for n, (role, name) in enumerate(scales.items()):
        bar = _bar(role, n, len(scales))
        if role in SHARES:
            layout[name] = {"cmin": 0, "cmax": 1, "colorscale": SCALES[role], "showscale": False}
            data.append(weight_bar(**bar))
        else:
            layout[name] = _even_scale(role, [*tables, *same_scale], bar)
    return Picture(spec=json.dumps({"data": data, "layout": layout}), step=step)


def panel_of(picture: Picture, trace: int) -> int | None:
    """Which panel a clicked trace belongs to; sources count on behind the panels."""
    owners = json.loads(picture.spec)["layout"]["meta"]["panels"]
    return owners[trace] if 0 <= trace < len(owners) else None


def _axes(box: Box, inside: Sequence[Panel], suffix: str, sheet: float) -> Part:
    """The two axes of a box: positions, with labels and titles where there is room."""
    first, width, height = inside[0], box.right - box.left, box.bottom - box.top
    cell_width, cell_height = box.cell(inside)
    x_places, x_texts, _ = column_ticks(first.columns, cell_width)
    if box.strips:
        y_places, y_texts = [float(i) for i in range(len(inside))], [_named(table, 34) for table in inside]
    else:
        y_places, y_texts = row_ticks(first.rows, cell_height)
    wide = width >= len(first.column_title) * LETTER
    tall = height >= len(first.row_title) * LETTER and box.labelled and not box.strips
    common = BARE | {"tickangle": 0, "tickfont": {"size": 11}}
    return {
        f"xaxis{suffix}": common
        | {
            "domain": [box.left / sheet, min(1.0, box.right / sheet)],
            "anchor": f"y{suffix}",
            "tickvals": x_places,
            "ticktext": x_texts,
            "range": [-0.5, len(first.columns) - 0.5],
            "title": axis_title(first.column_title if wide else "", standoff=2, size=11),
        },
        f"yaxis{suffix}": common
        | {
            "domain": [max(0.0, 1 - box.bottom / HEIGHT), 1 - box.top / HEIGHT],
            "anchor": f"x{suffix}",
            "tickvals": y_places,
            "ticktext": y_texts,
            "range": [box.n_rows(inside) - 0.5, -0.5],
            "showticklabels": box.labelled,
            # With less standoff, Plotly lets this one touch the labels.
            "title": axis_title(first.row_title if tall else "", standoff=8, size=11),
        },
    }


def _named(table: Panel, width: int) -> str:
    """The name of a table, in the colour of its role."""
    text = "<br>".join(map(escaped, wrap(table.name, width)))
    color = ROLES.get(table.role)
    return f'<span style="color:{color}"><b>{text}</b></span>' if color else text


def _heading(table: Panel, box: Box, sheet: float) -> Part:
    text = _named(table, 60) if table.role in ROLES else f"<b>{escaped(table.name)}</b>"
    return note(text, box.left / sheet, 1 - box.top / HEIGHT, "left bottom", **PAPER, yshift=2)


def _frames(table: Panel, focus: Focus, suffix: str, top: int) -> list[Part]:
    """The frame of a role, of the focused row and column, and of cells that stand out.

    Args:
        top: the line of the first row.
    """
    n_rows, n_columns = table.values.shape
    axes = {"xref": f"x{suffix}", "yref": f"y{suffix}"}
    all_rows, all_columns = (top, top + n_rows - 1), (0, n_columns - 1)
    places = {"row": focus.row, "column": focus.column, "feature": focus.feature}
    row, column = (places.get(axis) for axis in table.axes)
    found = [frame(all_rows, all_columns, ROLES[table.role], 2, **axes)] if table.role in ROLES else []
    found += [frame((top + r, top + r), (c, c), colors.RIGHT, 2, **axes) for r, c in table.marked]
    if row is not None:
        line = top + min(row, n_rows - 1)
        found.append(frame((line, line), all_columns, colors.MIRROR, 2, **axes))
    if column is not None:
        column = min(column, n_columns - 1)
        found.append(frame(all_rows, (column, column), colors.MIRROR, 2, **axes))
    return found


def _bar(role: str, place: int, count: int) -> Part:
    """The legend of a scale; place tells which of how many it is, from above."""
    return {
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


def _even_scale(role: str, tables: Sequence[Panel], bar: Part) -> Part:
    """A scale even about zero, with its legend."""
    sizes = np.abs(np.concatenate([table.values.ravel() for table in tables if table.role == role]))
    sizes = sizes[np.isfinite(sizes)]
    end = float(np.quantile(sizes, SATURATED)) if sizes.size >= MANY else 0.0
    largest = float(sizes.max(initial=0.0))
    beyond = 0 < 1.01 * end < largest
    end = end if beyond else largest or 1.0
    low, high = ("≤ −", "≥ ") if beyond else ("−", "")
    ticks = {"tickvals": [-end, 0, end], "ticktext": [f"{low}{_short(end)}", "0", f"{high}{_short(end)}"]}
    return {"cmin": -end, "cmax": end, "colorscale": SCALES[role], "colorbar": bar | ticks}


def _short(size: float) -> str:
    return f"{size:.0f}" if size >= 99.5 else f"{size:.2g}"


def _legend(tables: Sequence[Panel]) -> list[Part]:
    """Why cells are blocked, by colour, mark and name, and what stands out; nothing where nothing does."""
    codes = {int(code) for table in tables for code in np.unique(reasons(table))}
    signs = [
        (colors.MARKER, "□", "may be looked at", any(table.role == "mask" for table in tables)),
        *(
            (color, "■", f"{mark} {name.removeprefix('blocked: ')}", code in codes)
            for code, (color, mark, name) in BLOCKED.items()
        ),
        (colors.OFF, "▨", "switched off", any(table.off for table in tables)),
        (colors.RIGHT, "<b>□</b>", "the right token", any(table.marked for table in tables)),
    ]
    parts = [
        f'<span style="color:{color}">{sign}</span> {text}' for color, sign, text, there in signs if there
    ]
    return [note("   ".join(parts), 1, 1, "right top", **PAPER)] if parts else []

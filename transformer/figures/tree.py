"""The tree of a beam search: a column for each token written, the likeliest beam of a step in the top row."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from transformer.figures import colors
from transformer.figures.parts import BARE, Part, axis_title, texts, titled
from transformer.figures.picture import Picture, escaped
from transformer.shared.hypothesis import CHOSEN, FINISHED, KEPT, PRUNED, Hypothesis

LOOKS: dict[str, Part] = {
    PRUNED: {"color": colors.GHOST, "width": 1.5, "dash": "dot"},
    KEPT: {"color": colors.ATTENTION_LINE, "width": 2.5, "dash": "solid"},
    FINISHED: {"color": colors.ATTENTION_LINE, "width": 2.5, "dash": "solid"},
    CHOSEN: {"color": colors.HIGHLIGHT, "width": 5, "dash": "solid"},
}
"""Line style of each outcome: styles differ in width and dashes, not only in colour."""
TYPE: dict[str, Part] = {
    "plain": {},
    "faint": {"color": colors.MARKER},
    "ended": {"color": colors.MARK},  # on a filled box, in both themes
}
MEANING = {PRUNED: "fell out of the beam", KEPT: "went on", FINISHED: "finished", CHOSEN: "the answer"}
ROWS_WITH_SHARES = 6
"""Maximum number of rows with room for probabilities under the tokens."""
START = "start"
WIDE, TALL = 840, 240
"""Width and height of all boxes of a small picture together, in pixels."""
LARGEST, SMALLEST = 22, 8
"""Limits of the type size in a small picture, in pixels; type grows with the picture."""


def beam_tree(nodes: Sequence[Hypothesis], tokens: Sequence[str], *, title: str, step: int) -> Picture:
    """Every beam of a search as a box with its newest token, joined to the beam that it continues.

    Args:
        nodes: parents before their children.
        tokens: the newest token of each node, as text.
        step: the step of the model that writes.

    Raises:
        ValueError: there are not as many tokens as nodes.
    """
    if len(tokens) != len(nodes):
        raise ValueError(f"There are {len(tokens)} tokens, but {len(nodes)} nodes.")
    n_columns = max((node.step for node in nodes), default=0)
    n_rows = max((node.rank for node in nodes), default=1)
    longest = max(map(len, tokens), default=1)
    half = min(0.44, 0.24 + 0.02 * longest)
    shares = n_rows <= ROWS_WITH_SHARES
    across, down = 2 * half * WIDE / (n_columns + 1), TALL / n_rows
    size = max(SMALLEST, min(LARGEST, int(across / (0.62 * longest)), int(down / (3.2 if shares else 1.35))))
    data = [_edges(nodes, fates, half) for fates in ((PRUNED,), (KEPT, FINISHED), (CHOSEN,))]
    data += [
        _labels(nodes, tokens, [i for i, node in enumerate(nodes) if _look(node) == look], look, size, shares)
        for look in TYPE
    ]
    start = texts([0], [1], [START], min(size, 14), mode="text", hoverinfo="skip", showlegend=False)
    data += [start, _legend_entry()]
    boxes = [_box(node.step, node.rank, half, node.fate, node.ended) for node in nodes]
    layout = {
        "title": titled(title, pad=44),
        "margin": {"l": 4, "r": 4, "t": 94, "b": 4},
        "shapes": [_box(0, 1, half, CHOSEN, False), *boxes],
        "hovermode": "closest",
        "hoverdistance": 30,
        "legend": {
            "orientation": "h",
            "x": 1,
            "xanchor": "right",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "font": {"size": 13},
            "itemclick": False,
            "itemdoubleclick": False,
        },
        "xaxis": _axis("token written", n_columns, [-0.55, n_columns + 0.55], standoff=6),
        "yaxis": _axis("place in the beam", n_rows, [n_rows + 0.5, 0.5], standoff=8),
        "uirevision": f"{n_columns} {n_rows}",
    }
    return Picture(spec=json.dumps({"data": data, "layout": layout}), step=step)


def _axis(counts: str, n: int, ends: list[float], *, standoff: int) -> Part:
    return BARE | {
        "range": ends,
        "tickvals": list(range(1, n + 1)),
        "tickfont": {"size": 12},
        "title": axis_title(counts, standoff=standoff),
        "fixedrange": True,
        "automargin": True,
    }


def _look(node: Hypothesis) -> str:
    return "ended" if node.ended else "faint" if node.fate == PRUNED else "plain"


def _edges(nodes: Sequence[Hypothesis], fates: tuple[str, ...], half: float) -> Part:
    """The lines to all nodes of these fates, from the right side of one box to the left side of the next."""
    x: list[float | None] = []
    y: list[float | None] = []
    for node in nodes:
        if node.fate in fates:
            above = 1 if node.parent is None else nodes[node.parent].rank
            x += [node.step - 1 + half, node.step - half, None]
            y += [above, node.rank, None]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": y,
        "line": LOOKS[fates[0]],
        "hoverinfo": "skip",
        "name": MEANING[fates[0]],
    }


def _labels(
    nodes: Sequence[Hypothesis], tokens: Sequence[str], of: list[int], look: str, size: int, shares: bool
) -> Part:
    """The tokens of the nodes `of`, in one text style, `look`."""
    shown, hovers = [], []
    for i in of:
        node, token = nodes[i], escaped(tokens[i])
        share = math.exp(node.log_probability)
        text = f"<b>{token}</b>" if node.fate == CHOSEN else token
        shown.append(f"{text}<br><span style='font-size:0.6em'>{share:.0%}</span>" if shares else text)
        hovers.append(
            f"<b>{escaped(' '.join(_so_far(nodes, tokens, i)))}</b>"
            f"<br>{100 * share:.3g}% for {token} after what stands before it"
            f"<br>{100 * math.exp(node.total):.3g}% for all of it, score {node.score:.3f}"
            f"<br>place {node.rank} · {MEANING[node.fate]}"
        )
    places = [nodes[i].step for i in of], [nodes[i].rank for i in of]
    trace = texts(*places, shown, size, textposition="middle center", hoverinfo="text", hovertext=hovers)
    trace["textfont"] |= TYPE[look]
    return trace | {"marker": {"size": 28, "opacity": 0}, "showlegend": False}  # invisible, for hover


def _so_far(nodes: Sequence[Hypothesis], tokens: Sequence[str], i: int | None) -> list[str]:
    """The tokens of a beam, from the first to this one."""
    names: list[str] = []
    while i is not None:
        names.insert(0, tokens[i])
        i = nodes[i].parent
    return names


def _box(x: int, y: int, half: float, fate: str, ended: bool) -> Part:
    """The frame of a token, filled where its beam is finished."""
    look = LOOKS[fate]
    return {
        "type": "rect",
        "layer": "below",
        "x0": x - half,
        "x1": x + half,
        "y0": y - 0.42,
        "y1": y + 0.42,
        "line": look | {"width": min(look["width"], 3)},
        "fillcolor": look["color"] if ended else "rgba(0,0,0,0)",
    }


def _legend_entry() -> Part:
    """The legend entry of a filled box."""
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [None],
        "y": [None],
        "marker": {"symbol": "square", "size": 13, "color": LOOKS[FINISHED]["color"]},
        "name": MEANING[FINISHED],
        "hoverinfo": "skip",
    }

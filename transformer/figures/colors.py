"""The colours of pictures and maps, the scales of tables, and the look of blocked cells."""

from __future__ import annotations

import math
from collections.abc import Sequence

from transformer.shared.attention_info import BOTH, BY_HAND, FUTURE, REASONS
from transformer.shared.attention_info import PADDING as PADDING_CODE

VIRIDIS = (
    *("#440154", "#482878", "#3e4989", "#31688e", "#26828e"),
    *("#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"),
)
"""Perceptually uniform and distinct for colour-blind viewers; the same in both themes (van der Walt and
Smith, 2015)."""


def rgb(color: str) -> tuple[int, ...]:
    """Red, green and blue of a colour such as #440154."""
    return tuple(int(color[at : at + 2], 16) for at in (1, 3, 5))


def mixed(low: str, high: str, share: float) -> str:
    """The colour at a share, 0 to 1, of the way from `low` to `high`, such as rgb(68,1,84)."""
    ends = zip(rgb(low), rgb(high), strict=True)
    return "rgb({},{},{})".format(*(round(a + share * (b - a)) for a, b in ends))


Stops = list[tuple[float, str]]
"""A colour scale: places from 0 to 1, each with its colour."""


def by_root(scale: Sequence[str], parts: int) -> Stops:
    """`parts` + 1 stops of a colour scale over 0 to 1 whose colour at w is that of the given scale at √w."""
    stops: Stops = []
    for i in range(parts + 1):
        place, share = divmod(i / parts * (len(scale) - 1), 1)
        pair = (scale[int(place)], scale[min(int(place) + 1, len(scale) - 1)])
        stops.append(((i / parts) ** 2, mixed(*pair, share)))
    return stops


WEIGHTS = by_root(VIRIDIS, 18)
"""The scale of attention weights from 0 to 1, by their square root: on a linear scale, the 8% that each of 12
letters gets in an untrained model would look almost black."""
WEIGHT_TICKS = {0.0: "0", 0.01: "1", 0.05: "5", 0.25: "25", 0.5: "50", 1.0: "100%"}
"""Tick labels of the legend of weights, in percent, by weight."""
CAUSAL = "#8f959e"
"""A cell blocked because it lies in the future; marked with a slash as well, where there is room."""
PADDING = "#d9825b"
"""A cell blocked because its column is padding; marked with a dot as well, where there is room."""
BLOCKED_BY_HAND = "#c9a6e8"
"""A cell that is blocked by hand; crossed as well, where there is room."""
OFF = "#838b96"
"""The stripes over a head that is switched off."""
MARK = "#1c1830"
"""The marks upon blocked cells, and other dark marks and texts."""
ALLOWED = "#e9eef5"
"""A cell that the mask leaves open, and a cell with a token id."""
MIRROR = "#ff4fa3"
"""The outline of the mirrored letters and of lit tiles; far from every colour of the weights."""
NEEDED = "#ff7a1a"
"""The corner of a head that matters most."""
TRAIN = "#3d8fd1"
HELD_OUT = "#e0812f"
FREE = "#b0579b"
"""The loss of held-out words where the model reads what it has written itself; dashed as well."""
LEFT, RIGHT_RUN = "#3d8fd1", "#e0812f"
"""The left and the right run of a race, and in their difference the one with the higher
weight; distinct for colour-blind viewers."""
GHOST = "#9aa0a6"
"""Grey for what stays in the background, such as the run before this one."""
RIGHT = "#1a9e6f"
WRONG = "#d1495b"
MARKER = "#838b96"
"""The dotted line at the step that is looked at, the dashed one at a threshold, and faint text."""
ATTENTION_LINE = "#3d8fd1"
"""Lines of attention, gold links, and kept branches of a beam search."""
HIGHLIGHT = "#ee7d1e"
"""What is highlighted: the lines of a token, a row of a map, the answer of a beam search; wider as well."""
NAMED = ("#e0701a", "#0f9bd1", "#c65fa8", "#6f8f1f")
"""The heads that are named beside their curves; distinct for colour-blind viewers, and from the grey of all
others."""
SHARES = "Cividis"
"""The scale of shares that are right, from 0 to 1: as uniform and as safe for colour-blind viewers as the
scale of weights, but not to be confused with it."""
QUERY = "#2a7fd0"
"""Queries, and questions in a histogram; like keys and values, they are labelled too."""
KEY = "#d9730d"
"""Keys, and answers in a histogram."""
VALUE = "#9a52d4"
"""Values, and what is made of them alone."""
NEGATIVE = "#565b64"
"""Numbers below zero of a query, key or value: darker, the further below."""
NEUTRAL = "#f4f4f2"
"""Zero, in the middle of every scale that has two sides."""
BELOW_ZERO, ABOVE_ZERO = "#8c510a", "#01665e"
"""Scores and all other numbers that may be negative; ends of a scale that is safe for the colour-blind."""


def two_sided(below: str, above: str) -> Stops:
    """A scale over 0 to 1 with `NEUTRAL`, for zero, in its middle."""
    return [(0, below), (0.5, NEUTRAL), (1, above)]


def flat(color: str) -> Stops:
    """A scale of one colour."""
    return [(0, color), (1, color)]


BLOCKED = {
    FUTURE: (CAUSAL, "╱", REASONS[FUTURE]),
    PADDING_CODE: (PADDING, "•", REASONS[PADDING_CODE]),
    BOTH: (PADDING, "╱•", REASONS[BOTH]),
    BY_HAND: (BLOCKED_BY_HAND, "✕", REASONS[BY_HAND]),
}
"""Code of a blocked cell to its colour, its mark and its name."""
SCALES = {
    "weights": WEIGHTS,
    "probabilities": WEIGHTS,
    "query": two_sided(NEGATIVE, QUERY),
    "key": two_sided(NEGATIVE, KEY),
    "value": two_sided(NEGATIVE, VALUE),
    "scores": two_sided(BELOW_ZERO, ABOVE_ZERO),
    "plain": two_sided(BELOW_ZERO, ABOVE_ZERO),
    "mask": flat(ALLOWED),
    "ids": flat(ALLOWED),
}
"""Role of a table to its colours."""
LOOK = {"scales": SCALES, "blocked": BLOCKED}
"""How the picture of the model draws its tables."""
OF_MAPS = {
    "weights": WEIGHTS,
    "blocked": BLOCKED,
    "outline": MIRROR,
    "needed": (NEEDED, MARK),
    "callout": ("#ffffff", MARK),
    "legend": {
        "stops": [(i / (len(VIRIDIS) - 1), color) for i, color in enumerate(VIRIDIS)],
        "ticks": [(math.sqrt(weight), name) for weight, name in WEIGHT_TICKS.items()],
    },
}
"""How a player draws maps: the scale of weights, blocked cells, outlines, the corner of a head that
matters most and its edge, the two rings around the strongest cell, and the legend, whose places are square
roots of weights."""
OF_OWN_MAPS = OF_MAPS | {
    "blocked": BLOCKED | {PADDING_CODE: (PADDING, "•", "blocked: a mask of the model, such as padding")}
}
"""The same for a model of the user's own, whose masks are read from its weights."""

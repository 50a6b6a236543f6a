"""One attention map drawn with Matplotlib: its cells, its tokens, and the legend of its colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PatchCollection
from matplotlib.colors import LinearSegmentedColormap, PowerNorm, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from transformer.exports.fonts import families
from transformer.exports.frames import Map, Over
from transformer.figures import colors
from transformer.shared.attention_info import BY_HAND, FUTURE, PADDING

DPI = 72
"""At 72 dots per inch, a point is a pixel."""
INK = "#1f2430"
DARK, DARKEST, SHARP = "#0d081e", 0.9, 64
"""Colour and opacity over patches without weight; width in pixels up to which a picture is not smoothed."""
SCALE = LinearSegmentedColormap.from_list("weights", colors.VIRIDIS, N=180)
"""The colours of the app's maps, few enough for the palette of a GIF."""
BY_ROOT = PowerNorm(0.5, vmin=0.0, vmax=1.0)
"""A weight's place on the scale: its square root, as in the app's maps."""
LOOKS = {
    FUTURE: (colors.CAUSAL, "//", "future"),
    PADDING: (colors.PADDING, "..", "padding"),
    BY_HAND: (colors.BLOCKED_BY_HAND, "xx", "blocked"),
}
"""Why a cell is blocked, to its colour, its marks and its name."""
_GAP = 0.15
"""Gap between a cell and its token, as a share of the cell."""


def sheet(width: float, height: float) -> tuple[Figure, FigureCanvasAgg]:
    """An empty white figure of this size in pixels, with its canvas."""
    figure = Figure(figsize=(width / DPI, height / DPI), dpi=DPI)
    return figure, FigureCanvasAgg(figure)


def type_of(size: float, color: str = INK) -> dict[str, Any]:
    """Matplotlib's properties of a text; a dollar sign in a token begins no formula."""
    return {"fontsize": size, "color": color, "family": families(), "parse_math": False}


def fitting_size(text: str, largest: float, width: float) -> float:
    """A font size, at most `largest`, at which the text is at most `width` pixels wide."""
    figure, canvas = sheet(1, 1)
    size = largest
    for _ in range(2):  # small type is relatively wider, so the text is measured again
        written = figure.text(0, 0, text, **type_of(size)).get_window_extent(canvas.get_renderer())
        size *= min(1.0, 0.97 * width / max(written.width, 1.0))
    return size


def draw_cells(axes: Axes, shown: Map) -> list[Artist]:
    """Draw the weights, and each blocked cell in the style of its reason; or the picture, if there is one.

    Returns all that was drawn.
    """
    if shown.over is not None:
        return draw_over(axes, shown.over)
    n_rows, n_columns = shown.weights.shape
    axes.set(xlim=(0, n_columns), ylim=(n_rows, 0), aspect="equal")
    axes.set_axis_off()
    drawn: list[Artist] = []
    for reason, (color, marks, _) in LOOKS.items():
        cells = [Rectangle((x, y), 1, 1) for y, x in np.argwhere(shown.reasons == reason)]
        if cells:
            blocked = PatchCollection(cells, facecolor=color, edgecolor=colors.MARK, hatch=marks, linewidth=0)
            drawn.append(axes.add_collection(blocked))
    weights = np.ma.masked_invalid(shown.weights)  # masked cells are transparent
    drawn.append(axes.pcolormesh(weights, cmap=SCALE, norm=BY_ROOT, edgecolors="white", linewidth=1))
    if shown.off:
        stripes = Rectangle((0, 0), n_columns, n_rows, fill=False, edgecolor=colors.OFF, linewidth=0)
        stripes.set(hatch="//", hatch_linewidth=6)
        drawn.append(axes.add_patch(stripes))
    return drawn


def draw_over(axes: Axes, over: Over) -> list[Artist]:
    """Draw a picture as bright as its patches have weight; returns all that was drawn."""
    rows, columns = over.shares.shape
    height, width, _ = over.pixels.shape
    axes.set_axis_off()
    shade = np.zeros((rows, columns, 4))
    shade[..., :3] = to_rgb(DARK)
    shade[..., 3] = DARKEST * (1 - over.shares / max(float(over.shares.max()), 1e-9))
    extent = (0, columns, rows, 0)
    smooth = "nearest" if width <= SHARP else "bilinear"
    drawn: list[Artist] = [
        axes.imshow(over.pixels, extent=extent, interpolation=smooth, aspect="auto"),
        axes.imshow(shade, extent=extent, interpolation="nearest", aspect="auto"),
    ]
    axes.set(xlim=(0, columns), ylim=(rows, 0), aspect=height / rows / (width / columns))
    if over.patch is not None:
        row, column = over.patch
        frame = Rectangle((column, row), 1, 1, fill=False, edgecolor=colors.MIRROR, linewidth=3)
        drawn.append(axes.add_patch(frame))
    return drawn


def draw_tokens(axes: Axes, shown: Map, size: float, *, rows: bool = True) -> list[Artist]:
    """Write the tokens before each row and under each column, but none beside a picture.

    Returns all that was drawn.

    Args:
        size: the font size.
        rows: whether to write the tokens of the rows.
    """
    drawn: list[Artist] = []
    if shown.over is not None:
        return drawn
    for i, token in enumerate(shown.axes.columns):
        turned = 90 if len(token) > 1 else 0
        text = axes.text(i + 0.5, len(shown.axes.rows) + _GAP, token, **type_of(size))
        text.set(ha="center", va="top", rotation=turned)
        drawn.append(text)
    for i, label in enumerate(shown.labels if rows else ()):
        text = axes.text(-_GAP, i + 0.5, label, **type_of(size, colors.WRONG if i in shown.wrong else INK))
        text.set(ha="right", va="center")
        drawn.append(text)
    return drawn


def draw_legend(figure: Figure, beside: Axes | Sequence[Axes], maps: Sequence[Map]) -> None:
    """Draw the colours of the weights beside maps, and what their blocked cells look like.

    Draws nothing if the maps are drawn over a picture.
    """
    if maps[0].over is not None:
        return
    bar = figure.colorbar(ScalarMappable(BY_ROOT, SCALE), ax=beside, shrink=0.5, label="weight")
    bar.outline.set_visible(False)
    bar.set_ticks(list(colors.WEIGHT_TICKS), labels=list(colors.WEIGHT_TICKS.values()), **type_of(16))
    bar.set_label("weight", **type_of(16))
    handles = [
        Patch(facecolor=color, edgecolor=colors.MARK, hatch=marks, linewidth=0, label=name)
        for reason, (color, marks, name) in LOOKS.items()
        if any((shown.reasons == reason).any() for shown in maps)
    ]
    if handles:
        figure.legend(handles=handles, loc="outside right lower", fontsize=16, labelcolor=INK, frameon=False)

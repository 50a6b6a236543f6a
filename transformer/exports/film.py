"""One head while it learns, for slides: an animated GIF, or a strip of a few steps side by side."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

from transformer.config import TASK_INFO
from transformer.errors import InputError
from transformer.exports.fonts import film_problem
from transformer.exports.frames import Map, check_head, film_frames, map_of, over_picture, share_of, widest
from transformer.exports.still import (
    INK,
    LOOKS,
    SCALE,
    draw_cells,
    draw_legend,
    draw_tokens,
    fitting_size,
    sheet,
    type_of,
)
from transformer.figures import colors
from transformer.insight.names import head_name
from transformer.recording.frame import Frame, fed_with
from transformer.recording.view import RunView

WIDTH, HEIGHT = 960, 720
EDGE, HEADING, FOOT = 36, 130, 44
"""Pixels beside, above and below the map of a film."""
INSIDE = WIDTH - 2 * EDGE
MOST_FRAMES = 60
FIRST_MS, EACH_MS, LAST_MS = 1500, 150, 3000
"""Milliseconds for the first frame, each further one, and the last one."""
STRIP_STEPS = 7
"""Maximum number of maps in a strip."""
EACH_MAP, LABELS, LEGEND = 300, 250, 250
"""Pixels for each map, for the labels of its rows, and for the legend beside all maps."""
LARGEST_TYPE = 22.0


def film_gif(view: RunView, *, word: str, site: str, head: int) -> bytes:
    """One head for one word while it learns, as a GIF that repeats forever.

    Args:
        word: a tracked word of the run.
        head: counted from 0.

    Raises:
        InputError: nothing has been recorded of this word, or no font on this machine has one of the letters.
        ValueError: the model has no such head.
    """
    frames, maps = _chosen(view, MOST_FRAMES, word, site, head)
    facts = [_facts(view, frame, word, site, head, shown) for frame, shown in zip(frames, maps, strict=True)]
    facts_size = fitting_size(max(facts, key=len), 17, INSIDE)  # one size for all frames
    figure, canvas = sheet(WIDTH, HEIGHT)
    axes = figure.add_subplot()
    size = _lay_out(figure, axes, maps)
    title = f"{head_name(site, head)} · {_heading(frames[-1], word)}"
    _write(figure, 40, title, fitting_size(title, 28, INSIDE - 220))
    about = " · ".join(filter(None, (_axes_of(maps[0]), view.seeded, share_of(view, frames))))
    _write(figure, HEIGHT - 24, about, fitting_size(about, 16, INSIDE - LEGEND / 2))
    canvas.draw()
    empty = with_tokens = canvas.copy_from_bbox(figure.bbox)
    images: list[Image.Image] = []
    written = None
    for frame, shown, fact in zip(frames, maps, facts, strict=True):
        if written != (shown.labels, shown.axes.columns):  # labels rarely change, and text is slow to draw
            written = shown.labels, shown.axes.columns
            with_tokens = _over(empty, canvas, draw_tokens(axes, shown, size))
        share = frame.step / max(frames[-1].step, 1)
        moving = [
            *draw_cells(axes, shown),
            _write(figure, 40, f"step {frame.step:,}", 36, right=True),
            _write(figure, 78, fact, facts_size),
            figure.add_artist(Rectangle((0, 0), share, 8 / HEIGHT, color=colors.TRAIN)),
        ]
        if frame.interventions:  # marks the map as that of a changed model
            taken = frame.interventions.text()
            moving.append(_write(figure, 110, taken, fitting_size(taken, 16, INSIDE), color=colors.WRONG))
        _over(with_tokens, canvas, moving)
        images.append(Image.fromarray(np.asarray(canvas.buffer_rgba())[:, :, :3].copy()))
    return _gif(images, pictures=maps[0].over is not None)


def _over(background: Any, canvas: FigureCanvasAgg, artists: Sequence[Artist]) -> Any:
    """Draw artists once over a background; returns the result, as a background for more."""
    canvas.restore_region(background)
    for artist in artists:
        canvas.figure.draw_artist(artist)
        artist.remove()
    return canvas.copy_from_bbox(canvas.figure.bbox)


def _chosen(
    view: RunView, most: int, word: str, site: str, head: int, *, moments: bool = True
) -> tuple[Sequence[Frame], list[Map]]:
    """Frames of a word, and its map in each, all of one size."""
    frames = film_frames(view, most, word, moments=moments)
    check_head(frames[-1], site, head)
    problem = film_problem(view, word)
    if problem is not None:
        raise InputError(problem, "word")
    like = widest(frames, word)
    maps = [map_of(frame, word, site, head, like) for frame in frames]
    return frames, [over_picture(view, shown, word, site) for shown in maps]


def _lay_out(figure: Figure, axes: Axes, maps: Sequence[Map]) -> float:
    """Place the map and its legend so that all maps fit; returns the font size of the tokens."""
    rows = [max(labels, key=len) for labels in zip(*(shown.labels for shown in maps), strict=True)]
    columns = [max(tokens, key=len) for tokens in zip(*(shown.axes.columns for shown in maps), strict=True)]
    longest = replace(maps[0], axes=replace(maps[0].axes, rows=tuple(rows), columns=tuple(columns)), wrong={})
    room = EDGE / WIDTH, FOOT / HEIGHT, INSIDE / WIDTH, 1 - (HEADING + FOOT) / HEIGHT
    figure.set_layout_engine("constrained", rect=room)
    size = min(LARGEST_TYPE, 0.6 * (HEIGHT - HEADING - FOOT) / len(rows), 0.6 * INSIDE / len(columns))
    draw_legend(figure, axes, maps)
    drawn = [*draw_cells(axes, longest), *draw_tokens(axes, longest, size)]
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for artist in drawn:
        artist.remove()
    return min(size, 0.8 * axes.get_position().height * HEIGHT / len(rows))  # no higher than a cell


def _write(
    figure: Figure, y: float, text: str, size: float, *, right: bool = False, color: str = INK
) -> Artist:
    """Write a line of text on the left or the right, y pixels from the top."""
    x, align = (1 - EDGE / WIDTH, "right") if right else (EDGE / WIDTH, "left")
    return figure.text(x, 1 - y / HEIGHT, text, ha=align, va="center", **type_of(size, color))


def _heading(frame: Frame, word: str) -> str:
    return frame.words[frame.row_of(word)].heading


def _axes_of(shown: Map) -> str:
    """The titles of the two axes, or the query whose row is drawn over a picture."""
    if shown.over is not None:
        return f"where {shown.over.query} looks; brighter: more attention"
    return f"rows: {shown.axes.row_title} · columns: {shown.axes.column_title}"


def _facts(view: RunView, frame: Frame, word: str, site: str, head: int, shown: Map) -> str:
    """The role of the head, and the progress of the run."""
    measured = frame.measurement.step
    facts = (
        frame.role(site, head) + ("" if measured == frame.step else f" at step {measured:,}"),
        "" if shown.over is None else f"brightest patch: {shown.over.shares.max():.1%}",
        fed_with(frame.axes, frame.words[frame.row_of(word)]),
        _right(view, frame),
        "" if frame.loss is None else f"loss {frame.loss:.3f}",
    )
    return " · ".join(filter(None, facts))


def _right(view: RunView, frame: Frame) -> str:
    """How many of the held-out examples were right at the newest evaluation; empty for own models."""
    evaluation = frame.evaluation
    if view.own is not None:
        return ""
    caption = (
        f"{TASK_INFO[view.config.train.task].plural} right: {evaluation.right:,} of {evaluation.total:,}"
    )
    return caption if evaluation.step == frame.step else f"{caption} at step {evaluation.step:,}"


def _gif(images: Sequence[Image.Image], *, pictures: bool) -> bytes:
    """The images as a GIF, all with one palette, so that no colour flickers.

    Args:
        pictures: whether they show pictures of any colours.
    """
    palette = _frequent_colors(images) if pictures else _map_colors()
    first, *others = (image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images)
    times = [FIRST_MS, *[EACH_MS] * (len(images) - 2), LAST_MS][-len(images) :]
    file = io.BytesIO()
    first.save(file, "GIF", save_all=True, append_images=others, duration=times, loop=0)
    return file.getvalue()


def _map_colors() -> Image.Image:
    """The palette of maps: the scale of weights, text, blocked cells and their marks, the stripes of heads
    that are off, and the bar of progress."""
    scale = SCALE(np.arange(SCALE.N))[:, :3]
    soft = np.linspace(0.0, 1.0, 24)[:, None]  # the edges of letters
    inks = [1 - soft * (1 - np.array(to_rgb(color))) for color in (INK, colors.WRONG)]
    flat = [
        to_rgb(color)
        for color in (colors.TRAIN, colors.OFF, colors.MARK, *(look[0] for look in LOOKS.values()))
    ]
    palette = Image.new("P", (1, 1))
    palette.putpalette((np.concatenate([scale, *inks, flat]) * 255).round().astype(np.uint8).tobytes())
    return palette


def _frequent_colors(images: Sequence[Image.Image]) -> Image.Image:
    """The palette of the colours that are most frequent in a few images."""
    some = images[:: max(1, len(images) // 6)]
    sheet = Image.new("RGB", (WIDTH, HEIGHT * len(some)))
    for i, image in enumerate(some):
        sheet.paste(image, (0, HEIGHT * i))
    return sheet.quantize(256)


def filmstrip_png(view: RunView, *, word: str, site: str, head: int) -> bytes:
    """One head for one word at a few steps side by side, as one wide picture.

    Args:
        word: a tracked word of the run.
        head: counted from 0.

    Raises:
        InputError: nothing has been recorded of this word, or no font on this machine has one of the letters.
        ValueError: the model has no such head.
    """
    frames, maps = _chosen(view, STRIP_STEPS, word, site, head, moments=False)
    over = maps[0].over
    n_rows, n_columns = maps[0].weights.shape if over is None else over.pixels.shape[:2]
    rows_differ = len({shown.axes.rows for shown in maps}) > 1  # then each map has its own labels
    labelled = len(maps) if rows_differ else 1
    width = EACH_MAP * len(maps) + LABELS * labelled + LEGEND
    figure, _ = sheet(width, EACH_MAP * n_rows / n_columns + 200)
    figure.set_layout_engine("constrained", wspace=0.15)
    all_axes = figure.subplots(1, len(maps), squeeze=False)[0]
    for i, (axes, frame, shown) in enumerate(zip(all_axes, frames, maps, strict=True)):
        size = min(LARGEST_TYPE, 0.5 * EACH_MAP / n_columns)
        draw_cells(axes, shown)
        draw_tokens(axes, replace(shown, wrong={}), size, rows=i == 0 or rows_differ)
        axes.set_anchor("N")
        axes.set_title(f"step {frame.step:,}\n{_right(view, frame)}", **type_of(16))
    draw_legend(figure, list(all_axes), maps)
    titled = head_name(site, head), _heading(frames[-1], word), view.seeded
    heading = " · ".join(filter(None, titled))
    under = f"{share_of(view, frames)} · {_axes_of(maps[0])}"
    figure.suptitle(f"{heading}\n{under}", x=0.01, ha="left", **type_of(20))
    file = io.BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight", pad_inches=0.3)
    return file.getvalue()

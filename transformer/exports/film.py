"""A head learning, for a slide: an animated GIF, and a strip of a few steps side by side."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

from PIL import Image

from transformer.exports.canvas import DONE, LINE, WRONG, Canvas, fitting_size, text_width
from transformer.exports.frames import film_frames, head_title, is_forced, map_of, probe_of, widest
from transformer.exports.still import Still, draw_legend
from transformer.figures.labels import map_axes, wrong_predictions
from transformer.recording.frame import Frame
from transformer.runs.view import RunView

__all__ = ["film_frames", "film_gif", "filmstrip_png"]

WIDTH, HEIGHT = 960, 720
MOST_FRAMES = 60
FIRST_MS, EACH_MS, LAST_MS = 1500, 150, 3000
"""How long the first frame, each one and the last one are shown."""
STRIP_STEPS = 7
"""Maps side by side."""
EACH_MAP = 300
"""Pixels that each of them may take."""
_EDGE = 36


def film_gif(view: RunView, *, word: str, site: str, head: int) -> bytes:
    """One head for one word while it learns, as a GIF for ever repeated.

    Args:
        word: one of the run's probes.

    Raises:
        InputError: nothing has been recorded of this word.
    """
    frames = film_frames(view, MOST_FRAMES, word=word)
    title = head_title(frames[-1], site, head)
    whole = widest(frames, word)
    _, probe = probe_of(whole, word)
    axes = map_axes(whole.axes[site], probe, probe.expected)
    labels = {f"{axes.rows[i]} ✗ {t}" for f in frames for i, t in _wrong(f, word, site).items()}
    box = (_EDGE, 150, WIDTH - 130, HEIGHT - 40)
    still = Still.fitted(axes, box, labels=labels | set(axes.rows))
    maps = [[of_heads[head] for of_heads in map_of(frame, word, site, whole)] for frame in frames]
    images = []
    for frame, (weights, reasons) in zip(frames, maps, strict=True):
        canvas = Canvas(WIDTH, HEIGHT)
        _heading(canvas, view, frame, word, site, head, title)
        still.draw_cells(canvas, weights, reasons)
        still.draw_rows(canvas, _wrong(frame, word, site))
        still.draw_columns(canvas)
        canvas.text(still.left, still.top - 18, axes.row_title, 17, align="r")
        draw_legend(canvas, WIDTH - 110, still.top + 20, 260, [blocked for _, blocked in maps])
        canvas.fill((0, HEIGHT - 8, WIDTH, HEIGHT), LINE)
        canvas.fill((0, HEIGHT - 8, WIDTH * frame.step / max(frames[-1].step, 1), HEIGHT), DONE)
        images.append(canvas.image())
    return _gif(images)


def _heading(
    canvas: Canvas, view: RunView, frame: Frame, word: str, site: str, head: int, title: str
) -> None:
    """What is seen on the left, how far the run has come on the right."""
    loss = "" if frame.loss is None else f" · loss {frame.loss:.3f}"
    forced = " · teacher-forced" if is_forced(frame) else ""
    lines = (
        (42, title, 30, f"step {frame.step:,}", 40),
        (
            84,
            f"“{word}” · seed {view.config.seed} · {frame.role(site, head)}{forced}",
            20,
            f"words right {words_right(frame)}{loss}",
            20,
        ),
    )
    for y, left, left_size, right, right_size in lines:
        canvas.text(WIDTH - _EDGE, y, right, right_size, align="r")
        room = WIDTH - 2 * _EDGE - text_width(right, right_size) - 24
        canvas.text(_EDGE, y, left, fitting_size(left, left_size, room))
    if frame.interventions:  # a map is not to be taken for that of the whole model
        taken = frame.interventions.text()
        canvas.text(_EDGE, 114, taken, fitting_size(taken, 16, WIDTH - 2 * _EDGE), tone=WRONG)


def words_right(frame: Frame) -> str:
    """Held-out words right of those asked, at the newest evaluation."""
    return "not counted yet" if frame.exact is None else f"{frame.exact[0]:,} / {frame.exact[1]:,}"


def _gif(images: Sequence[Image.Image]) -> bytes:
    times = [EACH_MS] * len(images)
    times[0], times[-1] = FIRST_MS, LAST_MS
    file = io.BytesIO()
    images[0].save(
        file, "GIF", save_all=True, append_images=images[1:], duration=times, loop=0, optimize=False
    )
    return file.getvalue()


def filmstrip_png(view: RunView, *, word: str, site: str, head: int) -> bytes:
    """One head for one word at a few steps side by side, as one wide picture.

    Args:
        word: one of the run's probes.

    Raises:
        InputError: nothing has been recorded of this word.
    """
    frames = film_frames(view, STRIP_STEPS, word=word, moments=False)
    title = head_title(frames[-1], site, head)
    whole = widest(frames, word)
    _, probe = probe_of(whole, word)
    axes = map_axes(whole.axes[site], probe, probe.expected)
    one = Still.fitted(axes, (0, 112, EACH_MAP, 112 + EACH_MAP))
    size = one.type_size
    labels = 1.5 * size + max(text_width(label, size) for label in axes.rows)
    first = round(_EDGE + max(labels, text_width(axes.row_title, 17) / 2))
    stills = [replace(one, left=first + i * (EACH_MAP + 24)) for i in range(len(frames))]
    under = one.bottom + (4 if "[PAD]" in axes.columns else 3) * size
    canvas = Canvas(max(stills[-1].right + 150, round(text_width(title, 28)) + 400), under + 90)
    canvas.text(_EDGE, 36, f"{title} · “{word}” · seed {view.config.seed}", 28)
    canvas.text(first, one.top - 18, axes.row_title, 17, align="m")
    stills[0].draw_rows(canvas, {})
    maps = [[of_heads[head] for of_heads in map_of(frame, word, site, whole)] for frame in frames]
    for still, frame, (weights, reasons) in zip(stills, frames, maps, strict=True):
        still.draw_cells(canvas, weights, reasons)
        still.draw_columns(canvas, title=False)
        middle = (still.left + still.right) / 2
        canvas.text(middle, under + 24, f"step {frame.step:,}", 28, align="m")
        canvas.text(middle, under + 58, f"words right {words_right(frame)}", 18, align="m")
    draw_legend(canvas, stills[-1].right + 40, one.top + 20, 160, [blocked for _, blocked in maps])
    file = io.BytesIO()
    canvas.image().save(file, "PNG")
    return file.getvalue()


def _wrong(frame: Frame, word: str, site: str) -> dict[int, str]:
    _, probe = probe_of(frame, word)
    return wrong_predictions(frame.axes[site], probe.expected, probe.predicted)

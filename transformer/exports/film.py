"""A head learning, for a slide: an animated GIF, and a strip of a few steps side by side."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import replace

from PIL import Image

from transformer.errors import InputError
from transformer.exports.canvas import DONE, LINE, WRONG, Canvas, check_letters, fitting_size, text_width
from transformer.exports.frames import (
    axes_of,
    film_frames,
    head_title,
    map_of,
    probe_of,
    share_of,
    widest,
    wrong_rows,
)
from transformer.exports.still import Still, draw_legend
from transformer.insight.names import examples_of, shortened
from transformer.recording.frame import Frame, fed_with
from transformer.recording.view import RunView

__all__ = ["film_frames", "film_gif", "film_problem", "filmstrip_png"]

WIDTH, HEIGHT = 960, 720
MOST_FRAMES = 60
FIRST_MS, EACH_MS, LAST_MS = 1500, 150, 3000
"""How long the first frame, each one and the last one are shown."""
STRIP_STEPS = 7
"""Maps side by side."""
EACH_MAP = 300
"""Pixels that each of them may take."""
LONGEST = 28
"""Letters of the example in a heading."""
_EDGE = 36


def film_problem(view: RunView, word: str) -> str | None:
    """Why no film of a word can be made here; None where it can."""
    texts = {word}
    for chunk in view.frames.chunks_of(word):
        texts.update(chunk.word.src_tokens, chunk.word.tgt_tokens, chunk.word.expected, chunk.vocabulary)
    try:
        check_letters(texts)
    except InputError as error:
        return str(error)
    return None


def _check(word: str, frames: Iterable[Frame]) -> None:
    """Make sure that everything in a film can be written."""
    texts = {word}
    for frame in frames:
        _, probe = probe_of(frame, word)
        texts.update(probe.src_tokens, probe.tgt_tokens, probe.expected, probe.predicted)
    check_letters(texts)


def film_gif(view: RunView, *, word: str, site: str, head: int) -> bytes:
    """One head for one word while it learns, as a GIF for ever repeated.

    Args:
        word: one of the run's probes.

    Raises:
        InputError: nothing has been recorded of this word.
    """
    frames = film_frames(view, MOST_FRAMES, word=word)
    title = head_title(frames[-1], site, head)
    _check(word, frames)
    whole = widest(frames, word)
    all_axes = [axes_of(frame, word, site, whole) for frame in frames]
    labels = {row for axes in all_axes for row in axes.rows}
    for frame, axes in zip(frames, all_axes, strict=True):
        labels |= {f"{axes.rows[i]} ✗ {token}" for i, token in wrong_rows(frame, word, site).items()}
    box = (_EDGE, 150, WIDTH - 130, HEIGHT - 40)
    fitted = Still.fitted(axes_of(whole, word, site, whole), box, labels=labels)
    maps = [[of_heads[head] for of_heads in map_of(frame, word, site, whole)] for frame in frames]
    abouts = [_about(view, frame, word, site, head) for frame in frames]
    size = min(fitting_size(left, 20, _beside(right, 20)) for left, right in abouts)  # type stands still too
    images = []
    for frame, axes, (weights, reasons), about in zip(frames, all_axes, maps, abouts, strict=True):
        canvas = Canvas(WIDTH, HEIGHT)
        still = replace(fitted, axes=axes)
        _heading(canvas, frame, title, about, size)
        still.draw_cells(canvas, weights, reasons, off=head in frame.interventions.heads_off_at(site))
        still.draw_rows(canvas, wrong_rows(frame, word, site))
        still.draw_columns(canvas)
        canvas.text(still.left, still.top - 18, axes.row_title, 17, align="r")
        draw_legend(canvas, WIDTH - 110, still.top + 20, 260, [blocked for _, blocked in maps])
        canvas.text(WIDTH - _EDGE, HEIGHT - 24, share_of(view, frames), 16, align="r")
        canvas.fill((0, HEIGHT - 8, WIDTH, HEIGHT), LINE)
        canvas.fill((0, HEIGHT - 8, WIDTH * frame.step / max(frames[-1].step, 1), HEIGHT), DONE)
        images.append(canvas.image())
    return _gif(images)


def _about(view: RunView, frame: Frame, word: str, site: str, head: int) -> tuple[str, str]:
    """What is seen, and how far the run has come."""
    loss = "" if frame.loss is None else f" · loss {frame.loss:.3f}"
    about = (
        f"“{shortened(word, LONGEST)}”",
        f"seed {view.config.seed}",
        frame.role(site, head),
        fed_with(frame.axes, probe_of(frame, word)[1]),
    )
    return " · ".join(filter(None, about)), f"{_right(view, frame)}{loss}"


def _beside(right: str, size: int) -> float:
    """The room on the left of what stands on the right."""
    return WIDTH - 2 * _EDGE - text_width(right, size) - 24


def _heading(canvas: Canvas, frame: Frame, title: str, about: tuple[str, str], size: int) -> None:
    step = f"step {frame.step:,}"
    for y, left, left_size, right, right_size in (
        (42, title, fitting_size(title, 30, _beside(step, 40)), step, 40),
        (84, about[0], size, about[1], 20),
    ):
        canvas.text(WIDTH - _EDGE, y, right, right_size, align="r")
        canvas.text(_EDGE, y, left, left_size)
    if frame.interventions:  # a map is not to be taken for that of the whole model
        taken = frame.interventions.text()
        canvas.text(_EDGE, 114, taken, fitting_size(taken, 16, WIDTH - 2 * _EDGE), tone=WRONG)


def _right(view: RunView, frame: Frame) -> str:
    """Held-out examples right of those asked, at the newest evaluation."""
    known = frame.evaluation
    said = f"{examples_of(view.config.train.task)} right {known.counted[0]:,} / {known.counted[1]:,}"
    return said if known.step == frame.step else f"{said} at step {known.step:,}"


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
    _check(word, frames)
    heading = f"{title} · “{shortened(word, LONGEST)}” · seed {view.config.seed}"
    whole = widest(frames, word)
    all_axes = [axes_of(frame, word, site, whole) for frame in frames]
    one = Still.fitted(axes_of(whole, word, site, whole), (0, 112, EACH_MAP, 112 + EACH_MAP))
    size, all_stills = one.type_size, [replace(one, axes=axes) for axes in all_axes]
    rows_differ = len({axes.rows for axes in all_axes}) > 1  # then each map has its own labels
    labels = 1.5 * size + max(text_width(label, size) for axes in all_axes for label in axes.rows)
    first = round(_EDGE + max(labels, text_width(one.axes.row_title, 17) / 2))
    apart = one.right - one.left + 2 * max(still.overhang for still in all_stills) + 12
    apart += labels if rows_differ else 0
    apart = max(EACH_MAP + 24, round(apart))
    stills = [replace(still, left=first + i * apart) for i, still in enumerate(all_stills)]
    under = one.bottom + (1 + max(still.n_lines for still in stills)) * size
    width = max(round(text_width(title, 28)) + 400, round(text_width(heading, 28)) + 2 * _EDGE)
    canvas = Canvas(max(stills[-1].right + 150, width), under + 90)
    canvas.text(_EDGE, 36, heading, 28)
    canvas.text(_EDGE, 66, share_of(view, frames), 18)
    canvas.text(first, one.top - 18, one.axes.row_title, 17, align="m")
    for still in stills if rows_differ else stills[:1]:
        still.draw_rows(canvas, {})
    maps = [[of_heads[head] for of_heads in map_of(frame, word, site, whole)] for frame in frames]
    for still, frame, (weights, reasons) in zip(stills, frames, maps, strict=True):
        still.draw_cells(canvas, weights, reasons, off=head in frame.interventions.heads_off_at(site))
        still.draw_columns(canvas, title=False)
        middle = (still.left + still.right) / 2
        canvas.text(middle, under + 24, f"step {frame.step:,}", 28, align="m")
        canvas.text(middle, under + 58, _right(view, frame), 18, align="m")
    draw_legend(canvas, stills[-1].right + 40, one.top + 20, 160, [blocked for _, blocked in maps])
    file = io.BytesIO()
    canvas.image().save(file, "PNG")
    return file.getvalue()

"""A sheet with a fixed palette: grey type on white, exact colours for weights; a film needs no dithering."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Any

import numpy as np
from PIL import Image, ImageColor, ImageDraw, ImageFont
from plotly.colors import sample_colorscale, unlabel_rgb

from transformer.errors import InputError
from transformer.figures import colors

Array = np.ndarray[Any, np.dtype[Any]]
Box = tuple[float, float, float, float]
"""Left, top, right, bottom in pixels."""

INK, WRONG = "ink", "wrong"
"""The two tones of type."""
_SHADES = 24  # from paper to full colour, for the soft edges of letters
_RAMPS = {INK: (0, "#1f2430"), WRONG: (_SHADES, colors.WRONG)}  # first index, full colour
BLOCKED, PADDED, TAKEN, OFF, MARK, LINE, DONE = range(2 * _SHADES, 2 * _SHADES + 7)
_FLAT = (
    colors.CAUSAL,
    colors.PADDING,
    colors.TAKEN,
    colors.OFF,
    colors.MARK,
    "#d5d9df",
    colors.TRAIN,
)
_FIRST_WEIGHT = DONE + 1
_LEVELS = 255 - _FIRST_WEIGHT  # one index stays free: GIF writers mark with it what does not change
_DRAWN = re.compile("([→✗␣])")  # the built-in font has no such letters
FONTS = (
    "LiberationSans-Regular.ttf",
    "Arial.ttf",
    "Helvetica.ttc",
    "DejaVuSans.ttf",
    "NotoSans-Regular.ttf",
    "NotoSansCJK-Regular.ttc",
    "NotoSansSC-Regular.otf",
    "wqy-zenhei.ttc",
    "wqy-microhei.ttc",
    "msyh.ttc",
    "PingFang.ttc",
    "Hiragino Sans GB.ttc",
    "STHeiti Light.ttc",
    "Arial Unicode.ttf",
)
"""Files looked for on the machine, in this order, where the built-in font lacks a letter."""


def weight_index(weights: Array) -> Array:
    """The palette's index of each weight in [0, 1]."""
    levels: Array = np.rint(np.nan_to_num(weights).clip(0.0, 1.0) * (_LEVELS - 1)).astype(np.uint8)
    return levels + np.uint8(_FIRST_WEIGHT)


@cache
def _palette() -> bytes:
    entries: list[tuple[int, ...]] = []
    for _, full in _RAMPS.values():
        shares = np.linspace(0.0, 1.0, _SHADES)[:, None]
        color = np.array(ImageColor.getrgb(full))
        entries += [tuple(c) for c in (255 + shares * (color - 255)).round().astype(int).tolist()]
    entries += [ImageColor.getrgb(c) for c in _FLAT]
    scale = sample_colorscale(colors.WEIGHTS, np.linspace(0.0, 1.0, _LEVELS).tolist())
    entries += [tuple(round(part) for part in unlabel_rgb(c)) for c in scale]
    return bytes(part for entry in entries for part in entry)


@lru_cache(maxsize=128)
def _font(size: int, path: str | None = None) -> Any:
    """The font of a file; without one the built-in font."""
    return ImageFont.load_default(size) if path is None else ImageFont.truetype(path, size)


@cache
def _path(name: str) -> str | None:
    """Where a font lies on this machine, if it does."""
    try:
        return str(ImageFont.truetype(name, 24).path)
    except OSError:
        return None


@lru_cache(maxsize=4096)
def _has(path: str | None, letter: str) -> bool:
    """Whether a font has a letter: one that cannot exist looks otherwise."""
    mask, missing = (_font(24, path).getmask(one) for one in (letter, "\U0010ffff"))
    return letter == " " or (mask.size, bytes(mask)) != (missing.size, bytes(missing))


def _paths(names: tuple[str, ...]) -> Iterator[str | None]:
    """The fonts of this machine, the built-in one first."""
    yield None
    yield from (path for name in names if (path := _path(name)) is not None)


@lru_cache(maxsize=4096)
def _parts(text: str, names: tuple[str, ...]) -> tuple[tuple[str, str | None], ...]:
    """A text in parts with the font of each: the first that has all its letters, else letter by letter."""
    parts: list[tuple[str, str | None]] = []
    for part in filter(None, _DRAWN.split(text)):
        for path in _paths(names):
            if _DRAWN.match(part) or all(_has(path, letter) for letter in part):
                parts.append((part, path))
                break
        else:
            parts += [
                (letter, next((path for path in _paths(names) if _has(path, letter)), None))
                for letter in part
            ]
    return tuple(parts)


def check_letters(texts: Iterable[str]) -> None:
    """Make sure that these can be written.

    Raises:
        InputError: no font of this machine has some of the letters.
    """
    letters = sorted({letter for text in texts for letter in text if not _DRAWN.match(letter)})
    lacking = [one for one in letters if not any(_has(path, one) for path in _paths(FONTS))]
    if lacking:
        shown = " ".join(lacking[:10]) + (" …" if len(lacking) > 10 else "")
        raise InputError(
            f"No font on this machine has {shown}; install a font with them, such as fonts-noto-cjk, "
            "or take the page (HTML).",
            "word",
        )


def text_width(text: str, size: int) -> float:
    """How wide this text will be."""
    return sum(_width(part, path, size) for part, path in _parts(text, FONTS))


def _width(part: str, path: str | None, size: int) -> float:
    return 0.95 * size if _DRAWN.match(part) else float(_font(size, path).getlength(part))


def fitting_size(text: str, largest: int, width: float) -> int:
    """The largest size of type, up to this one, in which the text is no wider than this; at least 9."""
    return next((size for size in range(largest, 9, -1) if text_width(text, size) <= width), 9)


class Canvas:
    """A white sheet. Type is soft at its edges; filled boxes and lines are exact."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._filled = np.zeros((height, width), dtype=np.uint8)  # 0 is paper
        self._type = {tone: Image.new("L", (width, height)) for tone in _RAMPS}
        self._pens = {tone: ImageDraw.Draw(image) for tone, image in self._type.items()}

    def text(self, x: float, y: float, text: str, size: int, *, align: str = "l", tone: str = INK) -> None:
        """Write one line.

        Args:
            y: the middle of the line.
            align: what x is of the text: l(eft), m(iddle) or r(ight).
        """
        pen = self._pens[tone]
        x -= {"l": 0.0, "m": 0.5, "r": 1.0}[align] * text_width(text, size)
        above, below = _font(size).getmetrics()
        for part, path in _parts(text, FONTS):
            if _DRAWN.match(part):
                self._sign(pen, part, x, y, size)
            elif path is None:
                pen.text((x, y), part, fill=255, font=_font(size), anchor="lm")
            else:  # on the line of the built-in font
                pen.text((x, y + (above - below) / 2), part, fill=255, font=_font(size, path), anchor="ls")
            x += _width(part, path, size)

    @staticmethod
    def _sign(pen: ImageDraw.ImageDraw, sign: str, x: float, y: float, size: int) -> None:
        y += 0.08 * size  # the middle of small letters
        thick = max(1, round(size / 12))
        if sign == "→":
            tip, reach = x + 0.8 * size, 0.2 * size
            pen.line([(x + 0.15 * size, y), (tip, y)], fill=255, width=thick)
            pen.line([(tip - reach, y - reach), (tip, y), (tip - reach, y + reach)], fill=255, width=thick)
        elif sign == "␣":
            left, right, low = x + 0.15 * size, x + 0.8 * size, y + 0.3 * size
            corners = [(left, low - 0.2 * size), (left, low), (right, low), (right, low - 0.2 * size)]
            pen.line(corners, fill=255, width=thick)
        else:
            middle, reach = x + 0.48 * size, 0.26 * size
            for slope in (-1, 1):
                ends = [(middle - reach, y - slope * reach), (middle + reach, y + slope * reach)]
                pen.line(ends, fill=255, width=thick + 1)

    def fill(self, box: Box, index: int | Array) -> None:
        """Fill a box with one colour of the palette, or with a picture of its size."""
        left, top, right, bottom = (round(side) for side in box)
        self._filled[top:bottom, left:right] = index

    def image(self) -> Image.Image:
        """What has been drawn, in the palette's colours."""
        indices = self._filled.copy()
        for tone, (first, _) in _RAMPS.items():
            ink = np.asarray(self._type[tone]).astype(np.uint16)
            shades = ((ink * (_SHADES - 1) + 127) // 255).astype(np.uint8)
            indices = np.where(shades > 0, shades + np.uint8(first), indices)
        image = Image.fromarray(indices)
        image.putpalette(_palette())
        return image

"""The fonts of films: Matplotlib's own and, for letters that it lacks, those of this machine."""

from __future__ import annotations

from functools import cache

from transformer.recording.view import RunView

FONTS = (
    "DejaVu Sans",  # comes with Matplotlib
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans SC",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Microsoft YaHei",
    "PingFang SC",
    "Hiragino Sans GB",
    "Heiti SC",
    "Arial Unicode MS",
)
"""Looked for in this order, letter by letter."""


def film_problem(view: RunView, word: str) -> str | None:
    """Why no film of a word can be made here; None where it can."""
    texts = {word}
    for chunk in view.frames.chunks_of(word):
        texts.update(chunk.word.src_tokens, chunk.word.tgt_tokens, chunk.word.expected, chunk.vocabulary)
    letters = {letter for text in texts for letter in text if not letter.isascii()}
    lacking = sorted(letters.difference(*map(_letters_of, FONTS))) if letters else []
    if not lacking:
        return None
    shown = " ".join(lacking[:10]) + (" …" if len(lacking) > 10 else "")
    return (
        f"No font on this machine has {shown}; install a font with them, such as fonts-noto-cjk, "
        "or take the page (HTML)."
    )


def families() -> list[str]:
    """Those of `FONTS` that are on this machine."""
    return [family for family in FONTS if _letters_of(family)]


@cache
def _letters_of(family: str) -> frozenset[str]:
    """Every letter of a font; none where it is not on this machine."""
    from matplotlib import font_manager  # slow to import; `film_problem` needs none for ASCII

    if family not in font_manager.get_font_names():
        return frozenset()
    font = font_manager.get_font(font_manager.findfont(family))
    return frozenset(map(chr, font.get_charmap()))

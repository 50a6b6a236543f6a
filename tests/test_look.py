"""Style sheets: their sizes and colours are listed in docs, and no selector makes every change expensive."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
LISTED = (ROOT / "docs/look.md").read_text(encoding="utf-8")
SHEETS = [*(ROOT / "transformer/player/browser").rglob("*.css"), *(ROOT / "pages").rglob("*.css")]


def test_every_colour_of_the_style_sheets_is_listed():
    used = {
        colour.lower() for sheet in SHEETS for colour in re.findall(r"#[0-9a-fA-F]{6}\b", sheet.read_text())
    }
    assert len(used) > 10
    assert used - set(re.findall(r"#[0-9a-f]{6}", LISTED)) == set()


def test_every_size_of_type_in_the_style_sheets_is_listed():
    sizes = {
        size
        for sheet in SHEETS
        for size in re.findall(
            r"(?:font-size|--(?:hl-)?(?:small|text|large|number)): *([^;}]+)", sheet.read_text()
        )
    }
    own = {size for size in sizes if not size.startswith("var(") and size != "inherit"}
    assert len(own) > 5
    assert [size for size in own if size not in LISTED] == []


def test_no_change_of_a_picture_restyles_the_whole_page():
    """A selector `:root:has(…)` is evaluated again at every change, for all elements that it styles."""
    selectors = [
        found for sheet in SHEETS for found in re.findall(r"(?::root|html|body):has\(", sheet.read_text())
    ]
    assert selectors == []

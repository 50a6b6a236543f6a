"""The Your data page, and pairs to upload there."""

from __future__ import annotations

import re

import pytest

COLORS = {"red": "rouge", "blue": "bleu", "green": "vert", "black": "noir", "white": "blanc"}
THINGS = {"cat": "chat", "dog": "chien", "book": "livre", "tree": "arbre", "boat": "bateau", "key": "clef"}
PAIRS = [
    (
        f"The {color} {thing} sees {n} {other}s.",
        f"Le {THINGS[thing]} {COLORS[color]} voit {n} {THINGS[other]}s.",
    )
    for n, color in enumerate(COLORS)
    for thing in THINGS
    for other in THINGS
]
TSV = "\n".join("\t".join(pair) for pair in PAIRS)


@pytest.fixture
def data(visit):
    """Open Your data from a link with these settings."""

    def opened(**link):
        return visit(**link).go("data")

    return opened


@pytest.fixture
def bring(data):
    """Open Your data with these files uploaded or this text pasted."""

    def uploaded(*files, text=None, **link):
        visitor = data(**link, task="pairs")
        return upload(visitor, *files) if files else paste(visitor, TSV if text is None else text)

    return uploaded


def upload(visitor, *files):
    visitor.at.file_uploader(key="pairs_upload").set_value([(*file, "text/plain") for file in files])
    return visitor.look()


def paste(visitor, text):
    visitor.at.text_area(key="pairs_paste").set_value(text)
    return visitor.look()


def examples(visitor, key):
    """Return the pairs of a list, without Markdown and without the names of their patterns."""
    rows = []
    for option in visitor.at.radio(key=key).options:
        source, target = re.match(r"(.*?) → \*\*(.*?)\*\*", option).groups()
        rows.append((re.sub(r"\\(.)", r"\1", source), re.sub(r"\\(.)", r"\1", target)))
    return rows

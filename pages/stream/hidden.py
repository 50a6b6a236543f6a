"""The parts that a ticket hides until they are guessed: rows of maps, or all that follows a step."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from dataclasses import replace
from typing import NamedTuple

from transformer.recording.chunk import Chunk
from transformer.recording.view import RunView
from transformer.shared.attention_info import sites_of

MAX_REMEMBERED = 1_000
"""Most lists of hidden parts that a server remembers. A player whose list was dropped asks its page for a new
ticket."""


class Hidden(NamedTuple):
    """A row of a word's maps of one kind, in all heads; or all that follows a step."""

    word: str = ""
    kind: str = ""
    row: int = -1
    """Counted from 0; -1: no row."""
    after: int = -1
    """The last step that is shown; -1: all are."""


HiddenParts = tuple[Hidden, ...]
_KNOWN: OrderedDict[str, HiddenParts] = OrderedDict()


def name_of(hides: HiddenParts) -> str:
    """Remember these hidden parts; return their name in a ticket, empty if nothing is hidden."""
    if not hides:
        return ""
    name = hashlib.sha256(json.dumps(hides).encode()).hexdigest()[:16]
    _KNOWN[name] = hides
    _KNOWN.move_to_end(name)
    while len(_KNOWN) > MAX_REMEMBERED:
        _KNOWN.popitem(last=False)
    return name


def parts_of(name: str) -> HiddenParts | None:
    """The hidden parts of this name, none for an empty name; None if the server does not know the name."""
    return _KNOWN.get(name) if name else ()


def without_rows(chunk: Chunk, hides: HiddenParts) -> Chunk:
    """A chunk in which the hidden rows are zero; the same chunk if none is hidden."""
    rows = [hidden for hidden in hides if hidden.row >= 0 and hidden.word == chunk.word.text]
    maps = {**chunk.maps}
    for hidden in rows:
        for site in sites_of(chunk.axes, hidden.kind):
            maps[site] = maps[site].copy()
            maps[site][:, :, hidden.row : hidden.row + 1] = 0
    return replace(chunk, maps=maps) if rows else chunk


def hides_word(hides: HiddenParts, word: str) -> bool:
    """Whether a row of a word's maps is hidden; then its forward passes are not sent either."""
    return any(hidden.word == word and hidden.row >= 0 for hidden in hides)


def visible(view: RunView, hides: HiddenParts) -> RunView:
    """The view of a run up to the last step that is shown; the whole view if no step is hidden."""
    last = min((hidden.after for hidden in hides if hidden.after >= 0), default=None)
    return view if last is None else view.until(last)

"""What a ticket withholds until it has been guessed: rows of maps, or all that follows a step."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from transformer.recording.chunk import Chunk
from transformer.recording.frame import sites_of
from transformer.recording.frames import Frames
from transformer.recording.view import RunView

MOST = 1_000
"""Lists of what is hidden that a server remembers; a page that needs a forgotten one is drawn anew."""


class Hidden(NamedTuple):
    """A row of a word's maps of one kind, in all heads; or all that follows a step."""

    word: str = ""
    kind: str = ""
    row: int = -1
    """Counted from 0; -1: no row."""
    after: int = -1
    """The last step that is shown; -1: all are."""


Hides = tuple[Hidden, ...]
_KNOWN: OrderedDict[str, Hides] = OrderedDict()


def name_of(hides: Hides) -> str:
    """What a ticket calls it; empty where nothing is hidden."""
    if not hides:
        return ""
    name = hashlib.sha256(json.dumps(hides).encode()).hexdigest()[:16]
    _KNOWN[name] = hides
    _KNOWN.move_to_end(name)
    while len(_KNOWN) > MOST:
        _KNOWN.popitem(last=False)
    return name


def named(name: str) -> Hides | None:
    """What a ticket withholds; None where that is not known any more."""
    return _KNOWN.get(name) if name else ()


def without_rows(chunk: Chunk, hides: Hides) -> Chunk:
    """A chunk in which the hidden rows are zero."""
    maps = {**chunk.maps}
    for hidden in hides:
        if hidden.row >= 0 and hidden.word == chunk.word.text:
            for site in sites_of(chunk.axes, hidden.kind):
                codes = maps[site].copy()
                codes[:, :, hidden.row : hidden.row + 1] = 0
                maps[site] = codes
    return replace(chunk, maps=maps)


def hides_word(hides: Hides, word: str) -> bool:
    """Whether something of a word's maps is hidden: then nothing is said of them either."""
    return any(hidden.word == word and hidden.row >= 0 for hidden in hides)


def visible(view: RunView, hides: Hides) -> RunView:
    """A run up to the last step that is shown."""
    last = min((hidden.after for hidden in hides if hidden.after >= 0), default=None)
    return view if last is None else _until(_Same(view), last)


class _Same:
    """A view as the key of a cache: the same object."""

    def __init__(self, view: RunView) -> None:
        self.view = view

    def __hash__(self) -> int:
        return hash(id(self.view))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.view is self.view


@lru_cache(maxsize=16)
def _until(same: _Same, last: int) -> RunView:
    view, kept = same.view, []
    for record in view.frames.records:
        if not isinstance(record, Chunk):
            kept += [record] if record.step <= last else []
        elif places := [i for i, step in enumerate(record.steps) if step <= last]:
            kept.append(record.at(places))
    metrics = view.metrics.until(last)
    frames = Frames(kept, numbers=metrics.at, aim=view.frames[-1].aim, generation=-1 - last)
    turned = view.turned_at
    return replace(
        view,
        step=min(view.step, last),
        frames=frames,
        metrics=metrics,
        seconds=metrics.at(last)[0],
        snapshots=tuple(one for one in view.snapshots if one.step <= last),
        moments=tuple(one for one in view.moments if one.step <= last),
        turned_at=turned if turned and turned[0] <= last else None,
        first_step_at={mark: step for mark, step in view.first_step_at.items() if step <= last},
        right=None,
        everyday=None,
        goal_reached=False,
    )

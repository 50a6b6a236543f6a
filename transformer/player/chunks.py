"""Encoding of a chunk for the browser: a line of JSON, then its maps in numbers that compress well."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
import numpy as np

from transformer.figures.labels import MapAxes, map_axes, wrong_predictions
from transformer.figures.picture import escaped, isolated
from transformer.insight.names import layer_number
from transformer.insight.scores import gold_cells
from transformer.recording.chunk import Chunk
from transformer.recording.frame import Word, fed_with
from transformer.shared.attention_info import BY_HAND, PADDING, AttentionInfo, reading_sites, sites_of
from transformer.shared.interventions import Interventions

ENCODING = 2
"""Version of the format of `encoded`. The name of a chunk depends on it, since browsers cache by name."""


def encoded(chunk: Chunk, places: Sequence[int] | None = None) -> bytes:
    """Encode the maps of a chunk at some of its steps.

    Args:
        places: indices of these steps in `chunk.steps`; by default all.

    Returns:
        A line of JSON, then (H, Q, K, N) numbers of 16 bits for each site in turn: all low bytes, then all
        high bytes. The numbers are codes modulo 65,536, changed in three ways: the first cell of each row
        holds the sum of its row; each step after the first holds its difference from the step before; and
        each number n, read as signed, is written as 2n if n >= 0, else as -2n - 1.
    """
    chosen = list(range(len(chunk.steps)) if places is None else places)
    writing = next((site for site, axes in chunk.axes.items() if axes.writes), "")
    wrong = []
    for i in chosen if chunk.word.answer is not None else ():
        wrong_tokens = wrong_predictions(chunk.axes[writing], chunk.word.expected, chunk.predictions(i))
        wrong.append({row: escaped(token) for row, token in wrong_tokens.items()})
    facts = {
        "word": chunk.word.text,
        "look": look_name(chunk),
        "steps": [chunk.steps[i] for i in chosen],
        "sites": {site: codes.shape[1:] for site, codes in chunk.maps.items()},
        "wrong": wrong,
    }
    parts = []
    for codes in chunk.maps.values():
        cells = np.moveaxis(codes[chosen], 0, -1).astype("<u2", order="C")
        cells[:, :, 0] = cells.sum(axis=2, dtype="<u2")  # nearly the same at every step
        parts.append(cells.reshape(-1, len(chosen)))
    numbers = np.concatenate(parts)
    numbers[:, 1:] -= numbers[:, :-1].copy()
    signed = numbers.view("<i2")
    planes = ((signed << 1) ^ (signed >> 15)).view(np.uint8).reshape(-1, 2).T
    return json.dumps(facts, separators=(",", ":")).encode() + b"\n" + planes.tobytes()


def name_of(chunk: Chunk) -> str:
    """A name made from the content of a chunk: what a browser has cached under it never changes."""
    return _names(chunk)[0]


def look_name(chunk: Chunk) -> str:
    """The name of a chunk's look; see `look_of`."""
    return _names(chunk)[1]


def _names(chunk: Chunk) -> tuple[str, str]:
    if (names := _NAMES.get(chunk)) is None:
        content, look = hashlib.sha256(), look_of(chunk)[0]
        facts = ENCODING, look, chunk.word.text, chunk.steps, chunk.vocabulary
        content.update(json.dumps(facts).encode())
        for codes in (chunk.predicted, *chunk.maps.values()):
            content.update(np.ascontiguousarray(codes).data)
        names = _NAMES[chunk] = content.hexdigest()[:24], look
    return names


_NAMES: WeakKeyDictionary[Chunk, tuple[str, str]] = WeakKeyDictionary()


def look_of(chunk: Chunk) -> tuple[str, bytes]:
    """The look of a chunk: what a player draws alike at each of its steps, with a name made from its content.

    Returns:
        The name, and the look as JSON. For each kind of attention, the look has the labels and titles of both
        axes, the names of the layers, the cells of the gold alignment, and more; for all kinds together the
        heading, what the maps run over, and the heads that are switched off.
    """
    return _look(chunk.word, tuple(chunk.axes.items()), chunk.interventions)


@lru_cache(maxsize=256)
def _look(
    word: Word, sites: tuple[tuple[str, AttentionInfo], ...], interventions: Interventions
) -> tuple[str, bytes]:
    axes = dict(sites)
    reading = reading_sites(axes)
    kinds: dict[str, dict[str, Any]] = {}
    for kind in dict.fromkeys(one.kind for one in axes.values()):
        here = sites_of(axes, kind)
        one, group = axes_of(axes[here[0]], word), axes[here[0]].group
        links = word.links if here[0] in reading else None
        kinds[kind] = {
            "rows": _labels(one.rows),
            "columns": _labels(one.columns),
            "to": _labels(list(map(isolated, word.expected))) if axes[here[0]].writes and not group else [],
            "rowTitle": one.row_title,
            "columnTitle": one.column_title if group else f"looks at: {one.column_title}",
            "layers": [layer_number(site) if group else str(i + 1) for i, site in enumerate(here)],
            "causal": one.causal,
            "blocked": PADDING if group else BY_HAND,
            "writes": axes[here[0]].writes,
            "spans": {
                "rows": _labels(word.spans.get(axes[here[0]].query, ())),
                "columns": _labels(word.spans.get(axes[here[0]].key, ())),
            },
            "gold": gold_cells(kind, word.n_read, links) if links else [],
        }
    look = {
        "kinds": kinds,
        "heading": escaped(word.heading),
        "mean": word.n_words > 0,
        "fed": fed_with(axes, word),
        "over": word.written_at,
        "off": sorted([site, head] for site, head in interventions.ablated),
    }
    content = msgspec.json.encode(look)
    return hashlib.sha256(content).hexdigest()[:12], content


def axes_of(axes: AttentionInfo, word: Word) -> MapAxes:
    """The labels and titles of both axes of one attention's maps of a word."""
    if axes.group:
        rows, columns = (tuple(map(isolated, word.tokens(side))) for side in (axes.query, axes.key))
        row_title, column_title = (
            f"{name}, {word.pooled[side]:,} tokens a cell" if side in word.pooled else name
            for name, side in (("queries", axes.query), ("keys", axes.key))
        )
        return MapAxes(
            rows=rows, columns=columns, row_title=row_title, column_title=column_title, causal=axes.causal
        )
    return map_axes(axes, word.src_tokens, word.tgt_tokens, word.expected)


def _labels(tokens: Sequence[str]) -> list[str]:
    return [escaped(token) for token in tokens]

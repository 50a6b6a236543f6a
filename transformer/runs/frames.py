"""A frame as a file: maps and scores as arrays, the rest as facts in words and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import numpy as np

from transformer.errors import InputError
from transformer.recording.frame import Array, Frame
from transformer.recording.stored import Stored, store, stored_facts

MAPS, SCORES = "maps/", "scores/"
_ARRAYS = ("maps", "head_scores")


def write_frame(path: Path, frame: Frame) -> None:
    """Keep a frame.

    Raises:
        OSError: the disk is full, or the folder cannot be written.
    """
    arrays: dict[str, Array] = {MAPS + site: maps for site, maps in frame.maps.items()}
    for site, scores in frame.head_scores.items():
        arrays.update({f"{SCORES}{site}/{name}": values for name, values in scores.items()})
    facts = {one.name: getattr(frame, one.name) for one in fields(frame) if one.name not in _ARRAYS}
    store(path, arrays, msgspec.json.encode(facts).decode())


def read_frame(path: Path) -> Frame:
    """Read it again, all of it.

    Raises:
        InputError: it is damaged, or its parts do not fit each other.
    """
    facts = read_fields(path, _types())
    maps, scores = Stored(path, MAPS).whole(), _scores(path)
    try:
        frame = Frame(**facts, maps=maps, head_scores=scores)
        _check(frame)
    except (TypeError, ValueError, KeyError) as error:
        raise InputError(f"{path.parent.name}/{path.name} is no frame ({error}).") from error
    return frame


def read_fields(path: Path, types: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a file, each as its type.

    Raises:
        InputError: they are damaged, or of other types.
    """
    facts = stored_facts(path)
    try:
        raw = msgspec.json.decode(facts, type=dict[str, msgspec.Raw])
        if missing := types.keys() - raw.keys():
            raise ValueError(f"nothing is said of {', '.join(sorted(missing))}")
        return {name: msgspec.json.decode(raw[name], type=kind) for name, kind in types.items()}
    except (ValueError, RecursionError) as error:  # a msgspec.ValidationError is a ValueError
        raise InputError(f"{path.parent.name}/{path.name} cannot be read ({error}).") from error


@lru_cache(maxsize=1)
def _types() -> dict[str, Any]:
    return {name: kind for name, kind in get_type_hints(Frame).items() if name not in _ARRAYS}


def _scores(path: Path) -> dict[str, dict[str, Array]]:
    scores: dict[str, dict[str, Array]] = {}
    for name, values in Stored(path, SCORES).whole().items():
        site, _, score = name.partition("/")
        scores.setdefault(site, {})[score] = values
    return scores


def _check(frame: Frame) -> None:
    """Whether every number is where the pages look for it. Raises ValueError or KeyError."""
    if not frame.probes:
        raise ValueError("it is of no word")
    counted = [*frame.by_length.values(), *([] if frame.exact is None else [frame.exact])]
    if not all(0 <= right <= asked and asked > 0 for right, asked in counted):
        raise ValueError("it counts more right than asked")
    heads = set()
    for site, axes in frame.axes.items():
        maps = frame.maps[site]
        if maps.dtype != np.float16 or maps.ndim != 4 or len(maps) != len(frame.probes):
            raise ValueError(f"the maps of {site} are {maps.dtype} {maps.shape}")
        for probe in frame.probes:
            size = len(probe.tokens(axes.query)), len(probe.tokens(axes.key))
            if size[0] > maps.shape[2] or size[1] > maps.shape[3]:
                raise ValueError(f"the maps of {site} are too small for {probe.text!r}")
        scores = frame.head_scores[site]
        heads |= {maps.shape[1], *(values.size for values in scores.values())}
        if "entropy" not in scores or any(values.ndim != 1 for values in scores.values()):
            raise ValueError(f"the scores of {site} are not those of its heads")
    site, head = frame.clearest
    if len(heads) != 1 or not frame.scores or site not in frame.axes or not 0 <= head < min(heads):
        raise ValueError("its sites and heads do not fit each other")

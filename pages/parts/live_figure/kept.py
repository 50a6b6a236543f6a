"""What a browser has of the figures of a page, so that a refresh brings only what is new."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transformer.figures.picture import Array, Picture

BLOCKED = 65535
"""The one 16-bit number that is no weight."""
MOST_AFRESH = 60
"""Points of curves that a message brings without being kept: later ones would bring them again."""

Message = dict[str, Any]


@dataclass(frozen=True)
class _Had:
    """What a browser has of one figure, by a name."""

    name: str
    still: Message
    """What does not change with the step: the spec, the height and the like."""
    layout: Mapping[str, Any]
    arrays: Mapping[str, Array]

    def allows(self, still: Message, picture: Picture) -> bool:
        """Whether this picture can be built upon it."""
        return (
            all(still[part] == self.still[part] for part in still if part != "fileName")
            and picture.layout.keys() == self.layout.keys()
            and picture.arrays.keys() == self.arrays.keys()
        )


class Kept:
    """Made by a full run of a page, which sends every figure whole; the refreshes after it send differences.

    A message that may be built upon has a name. A browser that has missed it asks, and is sent all again.
    """

    def __init__(self) -> None:
        self._had: dict[str, _Had] = {}

    def forget(self, key: str) -> None:
        """Send this figure whole next time."""
        self._had.pop(key, None)

    def message(self, key: str, still: Message, pictures: Sequence[Picture]) -> Message | bytes:
        """What a browser needs to draw these pictures, which share a spec; the newest stands last.

        Returns:
            All of it; or, as a line of JSON and the numbers behind it, what is new since a named message.
        """
        newest, had = pictures[-1], self._had.get(key)
        if had is None or not had.allows(still, newest):
            return {**self._keep(key, still, newest), **whole(still, pictures)}
        numbers: list[bytes] = []
        said: Message = {"key": key, "since": had.name}
        said["frames"] = [_since(had, picture, numbers) for picture in pictures]
        if still["fileName"] != had.still["fileName"]:
            said["fileName"] = still["fileName"]
        if sum(part.get("n", 0) for part in said["frames"][-1]["arrays"].values()) > MOST_AFRESH:
            said |= self._keep(key, still, newest)
        return json.dumps(said, separators=(",", ":")).encode() + b"\n" + b"".join(numbers)

    def _keep(self, key: str, still: Message, picture: Picture) -> Message:
        name = secrets.token_urlsafe(4)
        self._had[key] = _Had(name, still, picture.layout, picture.arrays)
        return {"key": key, "name": name}


def whole(still: Message, pictures: Sequence[Picture]) -> Message:
    """All that there is to be drawn."""
    return {
        **still,
        "frames": tuple(  # a list would make Streamlit look for data frames in it, with pandas
            {
                "step": picture.step,
                "layout": picture.layout,
                "arrays": {name: packed(values) for name, values in picture.arrays.items()},
            }
            for picture in pictures
        ),
    }


def packed(values: Array) -> Message:
    """Numbers as text: weights, a table in [0, 1], as 16 bits with a code for blocked; curves as float32."""
    text = base64.b64encode(_coded(values)).decode()
    return {"shape": values.shape, "b": text} if values.ndim == 2 else {"b": text}


def _coded(values: Array) -> bytes:
    if values.ndim == 1:
        return values.astype("<f4").tobytes()
    shares = np.nan_to_num(values.astype(np.float32), nan=0.0).clip(0.0, 1.0)  # float16 ends at 65504
    codes = np.rint(shares * (BLOCKED - 1)).astype("<u2")
    codes[np.isnan(values)] = BLOCKED
    return codes.tobytes()


def _since(had: _Had, picture: Picture, numbers: list[bytes]) -> Message:
    """What is new in a frame; the numbers themselves are added to a list.

    A curve that has grown brings its further points; of arrays that are one and the same, only one comes.
    """
    arrays: Message = {}
    first: dict[int, str] = {}
    for name, values in picture.arrays.items():
        before = had.arrays[name]
        if (same := first.setdefault(id(values), name)) != name:
            if same in arrays or before is not had.arrays[same]:
                arrays[name] = {"as": same}
        elif before is values:
            continue
        elif values.ndim == 2:
            if not np.array_equal(before, values, equal_nan=True):
                arrays[name] = {"shape": values.shape}
                numbers.append(_coded(values))
        elif (n := _n_alike(before, values)) < max(len(before), len(values)):
            arrays[name] = {"from": n, "n": len(values) - n}
            numbers.append(_coded(values[n:]))
    layout = {path: value for path, value in picture.layout.items() if value != had.layout[path]}
    return {"step": picture.step, "layout": layout, "arrays": arrays}


def _n_alike(before: Array, now: Array) -> int:
    """Numbers that two curves have in common from the first on."""
    n = min(len(before), len(now))
    differing = (before[:n] != now[:n]) & ~(np.isnan(before[:n]) & np.isnan(now[:n]))
    return int(differing.argmax()) if differing.any() else n

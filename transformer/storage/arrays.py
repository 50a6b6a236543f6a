"""Arrays as safetensors, which hold no code: the weights of a step, and arrays with facts."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from math import prod
from typing import TypeVar

import msgspec
import numpy as np

from transformer.recording.frame import Array
from transformer.recording.weights import Tensors

T = TypeVar("T")
_FACTS, _SUM = "facts", "crc32"
_UNREADABLE = (LookupError, ValueError, TypeError, AttributeError, MemoryError, RecursionError)
"""Errors that reading unknown bytes can raise; for example, NumPy lacks some safetensors dtypes."""


def as_bytes(arrays: Mapping[str, Array], facts: object) -> bytes:
    """Encode arrays, and their facts as JSON."""
    from safetensors.numpy import save  # not imported before the first page is shown

    header = msgspec.json.encode(facts).decode()
    return save({name: np.asarray(a, order="C") for name, a in arrays.items()}, {_FACTS: header})


def read_arrays(data: bytes, kind: type[T]) -> tuple[dict[str, Array], T]:
    """Decode arrays, unchecked, and their facts as an object of type `kind`. Raises ValueError."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        facts = json.loads(_header(data))["__metadata__"][_FACTS]
        return dict(load(data)), msgspec.json.decode(facts, type=kind)  # raises for truncated data
    except (*_UNREADABLE, SafetensorError) as error:
        raise ValueError(str(error)) from error


def _header(data: bytes) -> bytes:
    return data[8 : 8 + int.from_bytes(data[:8], "little")]


def weights_as_bytes(tensors: Tensors, numbers: bytes) -> bytes:
    """Encode the weights of a step, with a checksum of the numbers."""
    at, entries = 0, {}
    for name, shape in tensors:
        end = at + 4 * prod(shape)
        entries[name] = {"dtype": "F32", "shape": shape, "data_offsets": (at, end)}
        at = end
    checksum = {"__metadata__": {_SUM: f"{zlib.crc32(numbers):08x}"}}
    header = json.dumps(checksum | entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return b"".join((len(header).to_bytes(8, "little"), header, numbers))


def read_weights(data: bytes) -> tuple[Tensors, bytes]:
    """Decode the weights of a step: names and shapes, and the numbers. Raises ValueError."""
    try:
        header = json.loads(text := _header(data))
        numbers, checksum = data[8 + len(text) :], header.pop("__metadata__")[_SUM]
        tensors = tuple((name, tuple(entry["shape"])) for name, entry in header.items())
        if not all(type(size) is int and size > 0 for _, shape in tensors for size in shape):
            raise ValueError("a size is no size")
        if checksum != f"{zlib.crc32(numbers):08x}" or weights_as_bytes(tensors, numbers) != data:
            raise ValueError("the numbers are not those that were written")
    except _UNREADABLE as error:
        raise ValueError(str(error)) from error
    return tensors, numbers

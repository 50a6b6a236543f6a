"""Arrays with facts in one safetensors file, which holds no code and is written atomically."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from transformer.errors import InputError
from transformer.recording.frame import Array
from transformer.recording.records import replacement

T = TypeVar("T")
_FACTS = "facts"
_UNREADABLE = (OSError, LookupError, ValueError, TypeError, AttributeError, MemoryError, RecursionError)
"""Errors that reading an unknown file can raise; for example, NumPy lacks some safetensors dtypes."""


def write_whole(path: Path, data: bytes) -> None:
    """Write and sync a temporary file, then rename it, so that a crash never leaves half a file.

    Raises:
        OSError: the disk is full, or the folder cannot be written.
    """
    with replacement(path) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def as_bytes(arrays: Mapping[str, Array], facts: str) -> bytes:
    """Encode arrays, and their facts as text, as the content of a file."""
    from safetensors.numpy import save  # not imported before the first page is shown

    return save({name: np.asarray(a, order="C") for name, a in arrays.items()}, {_FACTS: facts})


def read_arrays(path: Path) -> dict[str, Array]:
    """Read the arrays of a file, which can hold anything. Raises InputError."""
    return _read(path, lambda file: {name: file.get_tensor(name) for name in file.keys()})


def read_facts(path: Path) -> str:
    """Read the facts of a file, without its arrays. Raises InputError."""
    return _read(path, lambda file: str(file.metadata()[_FACTS]))


def _read(path: Path, take: Callable[[Any], T]) -> T:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:  # raises for a truncated file
            return take(file)
    except (*_UNREADABLE, SafetensorError) as error:
        raise InputError(f"{path.parent.name}/{path.name} cannot be read ({error}).") from error

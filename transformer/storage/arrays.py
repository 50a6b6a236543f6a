"""Arrays with facts in one file that holds no code: safetensors, whole or absent."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from transformer.errors import InputError
from transformer.recording.frame import Array
from transformer.recording.records import replacement

_FACTS = "facts"
_UNREADABLE = (OSError, LookupError, ValueError, TypeError, AttributeError, MemoryError, RecursionError)
"""What is raised by a file that is none of ours: some of its kinds of numbers are unknown to NumPy."""


def write_whole(path: Path, data: bytes) -> None:
    """Write to a neighbouring file first and bring it to the disk, so that a crash never leaves half a file.

    Raises:
        OSError: the disk is full, or the folder cannot be written.
    """
    with replacement(path) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def as_bytes(arrays: Mapping[str, Array], facts: str) -> bytes:
    """Arrays and, as text, what is to be known of them, as the content of a file."""
    from safetensors.numpy import save  # not before the first page is painted

    return save({name: np.asarray(a, order="C") for name, a in arrays.items()}, {_FACTS: facts})


def read_arrays(path: Path) -> dict[str, Array]:
    """The arrays of a file, which may be anybody's.

    Raises:
        InputError: it cannot be read.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return load(path.read_bytes())
    except (*_UNREADABLE, SafetensorError) as error:
        raise InputError(f"{path.parent.name}/{path.name} cannot be read ({error}).") from error


def read_facts(path: Path) -> str:
    """What a file says of its arrays, which are not read.

    Raises:
        InputError: it cannot be read.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:  # refuses a file that is cut off
            said = file.metadata()[_FACTS]
    except (*_UNREADABLE, SafetensorError) as error:
        raise InputError(f"{path.parent.name}/{path.name} cannot be read ({error}).") from error
    assert isinstance(said, str)
    return said

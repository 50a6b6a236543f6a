"""Arrays with facts in one file that holds no code: safetensors, whole or absent."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from transformer.errors import InputError
from transformer.recording.frame import Array

_FACTS = "facts"
_UNREADABLE = (OSError, LookupError, ValueError, TypeError, AttributeError, MemoryError, RecursionError)
"""What is raised by a file that is none of ours: some of its kinds of numbers are unknown to NumPy."""


def write_whole(path: Path, data: bytes) -> None:
    """Write to a neighbouring file first and bring it to the disk, so that a crash never leaves half a file.

    Raises:
        OSError: the disk is full, or the folder cannot be written.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


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
    try:
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            if size > path.stat().st_size:
                raise ValueError("it is cut off")
            header = json.loads(file.read(size))
            ends = (one["data_offsets"][1] for name, one in header.items() if name != "__metadata__")
            if path.stat().st_size != 8 + size + max(ends, default=0):
                raise ValueError("it is cut off")
            said = header["__metadata__"][_FACTS]
            if not isinstance(said, str):
                raise TypeError("it says nothing of itself")
            return said
    except _UNREADABLE as error:
        raise InputError(f"{path.parent.name}/{path.name} cannot be read ({error}).") from error

"""Arrays with facts in one file that holds no code: safetensors, whole or absent."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from transformer.errors import InputError

Array = np.ndarray[Any, np.dtype[Any]]

SUFFIX = ".safetensors"
_FACTS, _ORDER = "facts", "order"
_UNREADABLE = (OSError, KeyError, ValueError, TypeError, AttributeError, MemoryError, RecursionError)
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


def store(path: Path, arrays: Mapping[str, Array], facts: str) -> None:
    """Write arrays and, as text, what is to be known of them.

    Raises:
        OSError: the disk is full, or the folder cannot be written.
    """
    write_whole(path, as_bytes(arrays, facts))


def as_bytes(arrays: Mapping[str, Array], facts: str) -> bytes:
    """The content of the file that `store` writes."""
    from safetensors.numpy import save  # not before the first page is painted

    metadata = {_FACTS: facts, _ORDER: json.dumps(list(arrays))}
    return save({n: np.asarray(a, order="C") for n, a in arrays.items()}, metadata)


class Stored(Mapping[str, Array]):
    """The arrays of one file, by name, each read when it is asked for. The file may be anybody's.

    Args:
        path: written by `store`.
        prefix: only what begins with this is to be seen, without it.
        keeps: stays alive as long as this does.

    Raises:
        InputError: the file cannot be read.
    """

    def __init__(self, path: Path, prefix: str = "", keeps: object = None) -> None:
        self.path, self._prefix, self._keeps = path, prefix, keeps
        with _opened(path) as file:
            names = json.loads((file.metadata() or {}).get(_ORDER, "[]"))
            if sorted(names) != sorted(file.keys()):
                raise ValueError("it names other arrays than it holds")
        self._names = tuple(name.removeprefix(prefix) for name in names if name.startswith(prefix))

    def __getitem__(self, name: str) -> Array:
        if name not in self._names:
            raise KeyError(name)
        with _opened(self.path) as file:
            return np.asarray(file.get_tensor(self._prefix + name))

    def whole(self) -> dict[str, Array]:
        """All arrays, with the file opened once."""
        with _opened(self.path) as file:
            return {name: np.asarray(file.get_tensor(self._prefix + name)) for name in self._names}

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def stored_facts(path: Path) -> str:
    """What a file says of its arrays.

    Raises:
        InputError: the file cannot be read.
    """
    with _opened(path) as file:
        facts: str = (file.metadata() or {}).get(_FACTS, "")
        return facts


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A safetensors file; whatever is wrong with it is told with its name."""
    from safetensors import SafetensorError, safe_open

    try:
        # Read and not mapped: a file that is cut off meanwhile would end the whole process.
        with safe_open(path, framework="np", backend="pread") as file:
            yield file
    except _UNREADABLE + (SafetensorError,) as error:
        raise InputError(f"{path.parent.name}/{path.name} cannot be read ({error}).") from error

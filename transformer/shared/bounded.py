"""A cache with a limit in bytes instead of entries; the least recently used entry is dropped first."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Generic, TypeVar

import numpy as np

T = TypeVar("T")


@dataclass
class _Entry(Generic[T]):
    making: threading.Lock = field(default_factory=threading.Lock)
    value: T | None = None
    nbytes: int = 0


class BoundedCache:
    """Values by key, up to a total size in bytes. Safe to use from any thread.

    A value larger than the limit is not kept: each call of `get` makes it again.

    Args:
        most_bytes: limit on the size of all values together.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._lock = threading.Lock()
        self._entries: dict[Hashable, _Entry[Any]] = {}  # the least recently used first

    @property
    def nbytes(self) -> int:
        """Bytes of all values that are held."""
        with self._lock:
            return sum(entry.nbytes for entry in self._entries.values())

    def peek(self, key: Hashable) -> Any:
        """The value of a key; None if it is not held, or is still being made. Does not count as a use."""
        with self._lock:
            entry = self._entries.get(key)
        return None if entry is None else entry.value

    def get(self, key: Hashable, make: Callable[[], T], nbytes: Callable[[T], int]) -> T:
        """Return the value of a key, made if it is missing; concurrent calls get the same object.

        An exception of `make` or `nbytes` is passed on; nothing is kept then.

        Args:
            make: called without arguments; returns the value.
            nbytes: returns the size of a value in bytes.
        """
        with self._lock:
            entry = self._entries.pop(key, None) or _Entry()
            self._entries[key] = entry
        try:
            with entry.making:
                if entry.value is None:
                    entry.value = make()
                    entry.nbytes = nbytes(entry.value)
                value: T = entry.value
        except BaseException:
            with self._lock:
                self._entries.pop(key, None)
            raise
        with self._lock:
            if entry.nbytes > self.most_bytes and self._entries.get(key) is entry:
                del self._entries[key]
            total = sum(entry.nbytes for entry in self._entries.values())
            for other, one in list(self._entries.items()):
                if total <= self.most_bytes:
                    break
                if one.value is not None:  # a value still being made is counted when it is ready
                    total -= one.nbytes
                    del self._entries[other]
        return value


def nbytes_of(value: object) -> int:
    """Bytes of all NumPy arrays in nested dataclasses, mappings and sequences; anything else counts 0."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if is_dataclass(value):
        return sum(nbytes_of(getattr(value, one.name)) for one in fields(value))
    if isinstance(value, Mapping):
        return sum(nbytes_of(inner) for inner in value.values())
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return sum(nbytes_of(inner) for inner in value)
    return 0

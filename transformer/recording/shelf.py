"""Arrays that have been put on disk to save memory, and are read again one by one when they are asked for."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


class Shelf:
    """A temporary folder. A file is gone when nobody refers to it any more, and the folder with the last."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="headlight-"))
        self._n = 0
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def put(self, arrays: Mapping[str, Array]) -> Shelved:
        """Write these arrays away.

        Raises:
            OSError: the disk is full.
        """
        path = self._folder / f"{self._n}.npz"
        self._n += 1
        try:
            np.savez(path, allow_pickle=False, **dict(arrays))
        except OSError:
            path.unlink(missing_ok=True)
            raise
        shelved = Shelved(path, tuple(arrays), keeps=self)
        weakref.finalize(shelved, _remove, path)
        return shelved


class Shelved(Mapping[str, Array]):
    """The arrays of one file, by name. Nothing in the file is executed.

    Args:
        path: written by `numpy.savez`.
        names: what of it is to be seen.
        keeps: stays alive as long as this does.
    """

    def __init__(self, path: Path, names: tuple[str, ...], keeps: object = None) -> None:
        self._path, self._names, self._keeps = path, names, keeps

    def __getitem__(self, name: str) -> Array:
        if name not in self._names:
            raise KeyError(name)
        with self._path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            return np.asarray(file[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def bytes_in_memory(arrays: Mapping[str, Array]) -> int:
    """What these arrays take; nothing while they are on the shelf."""
    return 0 if isinstance(arrays, Shelved) else sum(array.nbytes for array in arrays.values())

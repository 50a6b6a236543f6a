"""Arrays that have been put on disk to save memory, and are read again one by one when they are asked for."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from transformer.recording.stored import SUFFIX, Array, Stored, store


class Shelf:
    """A temporary folder. A file is gone when nobody refers to it any more, and the folder with the last."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="headlight-"))
        self._n = 0
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def put(self, arrays: Mapping[str, Array]) -> Stored:
        """Write these arrays away.

        Raises:
            OSError: the disk is full.
        """
        path = self._folder / f"{self._n}{SUFFIX}"
        self._n += 1
        store(path, arrays, "")
        shelved = Stored(path, keeps=self)
        weakref.finalize(shelved, _remove, path)
        return shelved


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def bytes_in_memory(arrays: Mapping[str, Array]) -> int:
    """What these arrays take; nothing while they are on the shelf."""
    return 0 if isinstance(arrays, Stored) else sum(array.nbytes for array in arrays.values())

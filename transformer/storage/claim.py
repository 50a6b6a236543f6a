"""The claim of one process to write in a run's folder: a lock, and a note that names the process."""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil
from filelock import FileLock

from transformer.storage.arrays import write_whole

LOCK, WRITER = "run.lock", "writer.json"
SILENT_SECONDS = 15.0
"""Seconds without a write after which a process of another machine counts as gone."""


@dataclass(frozen=True, kw_only=True)
class Writer:
    """The process that writes in a folder."""

    host: str
    pid: int
    started: float
    """When that process began, in seconds since 1970: its pid may be reused later."""
    lock: int
    """The inode of the lock file; in a copy of the folder, the lock file has another."""


class Claim:
    """Holds a folder for this process; others read the note and never touch the lock.

    Raises:
        filelock.Timeout: another process holds it.
        OSError: the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._note = folder / WRITER
        self._lock = FileLock(folder / LOCK, blocking=False, thread_local=False)
        self._lock.acquire()
        with suppress(OSError):  # on a full disk the lock alone keeps others from writing
            writer = Writer(
                host=socket.gethostname(),
                pid=os.getpid(),
                started=psutil.Process().create_time(),
                lock=(folder / LOCK).stat().st_ino,
            )
            write_whole(self._note, msgspec.json.encode(writer))

    def release(self) -> None:
        """Let other processes write in the folder."""
        with suppress(OSError):
            self._note.unlink()
        self._lock.release()


def is_held(folder: Path) -> bool:
    """Whether a process writes there now, according to its note."""
    note = folder / WRITER
    try:
        writer = msgspec.json.decode(note.read_bytes(), type=Writer)
        if writer.lock != (folder / LOCK).stat().st_ino:
            return False
        if writer.host != socket.gethostname():
            newest = max(path.stat().st_mtime for path in folder.iterdir() if path.is_file())
            return time.time() - newest < SILENT_SECONDS
        return abs(psutil.Process(writer.pid).create_time() - writer.started) < 1.0
    except psutil.AccessDenied:
        return True
    except (OSError, ValueError, psutil.NoSuchProcess):
        return False

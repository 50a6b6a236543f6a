"""Who writes in a run's folder: one process at a time, as long as it holds the lock."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock, Timeout

LOCK = "run.lock"


def lock_of(folder: Path) -> FileLock:
    """To be acquired by who wants to write there; it never waits."""
    return FileLock(folder / LOCK, blocking=False, thread_local=False)


def is_held(folder: Path) -> bool:
    """Whether a process writes there now, as far as this machine can tell."""
    try:
        with lock_of(folder):
            return False
    except Timeout:
        return True
    except OSError:
        return False


def is_free(folder: Path) -> bool:
    """Whether no process writes there now, and this one may."""
    try:
        with lock_of(folder):
            return True
    except (Timeout, OSError):
        return False

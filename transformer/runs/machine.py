"""Whether this machine can train a configuration, for modules that may not import torch."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path

import psutil

from transformer.config import RunConfig
from transformer.size import check_memory
from transformer.tasks import completed

CONTAINER = Path("/sys/fs/cgroup")
"""Files in which Linux states the memory limit of a container and its use."""


def free_memory() -> int:
    """Bytes that can still be taken: of the machine, and of the container where there is one."""
    free = int(psutil.virtual_memory().available)
    try:
        most, taken = (int((CONTAINER / f"memory.{name}").read_text()) for name in ("max", "current"))
    except (OSError, ValueError):  # no container, or one without a limit ("max")
        return free
    return min(free, most - taken)


def processors() -> int:
    """Number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_machine(config: RunConfig) -> None:
    """Refuse a configuration that does not fit the memory, or whose device is not there.

    torch is loaded only where it must be: to know about another device than the CPU.

    Raises:
        InputError: what is wanted, what there is, and what to choose.
    """
    check_memory(completed(config), free_memory())
    if config.device not in ("auto", "cpu"):
        from transformer.training.device import resolve_device

        resolve_device(config.device)


def give_back_memory() -> None:
    """Return free heap memory of ended threads to the system, if the C library can.

    GNU's keeps a heap for each thread, and some 20 MB of a default run stay in it otherwise.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)

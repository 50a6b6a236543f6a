"""What this machine has, and whether it can train a configuration; for modules that must not import torch."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

import psutil

from transformer.config import RunConfig
from transformer.config.size import check_memory
from transformer.tasks import resolved

CONTAINER = Path("/sys/fs/cgroup")
"""Folder of the files in which Linux states the memory limit and the memory use of a container."""


def free_memory() -> int:
    """Bytes of free memory: the smaller of the machine's and, in a container, the container's."""
    free = int(psutil.virtual_memory().available)
    try:
        most, taken = (int((CONTAINER / f"memory.{name}").read_text()) for name in ("max", "current"))
        facts = dict(line.split() for line in (CONTAINER / "memory.stat").read_text().splitlines())
        # Cached files count as used, but the system drops them when memory is needed.
        cached = int(facts["active_file"]) + int(facts["inactive_file"])
    except (OSError, ValueError, KeyError):  # no container, or one without a limit ("max")
        return free
    return min(free, most - taken + cached)


def processors() -> int:
    """Number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def has_gpu() -> bool:
    """Whether this machine seems to have a GPU that torch can use; torch itself need not be imported."""
    apple = sys.platform == "darwin" and platform.machine() == "arm64"
    return apple or any(shutil.which(tool) for tool in ("nvidia-smi", "rocm-smi"))


def check_machine(config: RunConfig) -> None:
    """Refuse a configuration that does not fit into memory, or whose device is not available.

    Imports torch only to check a device other than auto and the CPU.

    Raises:
        InputError: the message says what is needed, what is available, and what to choose.
    """
    check_memory(resolved(config), free_memory())
    if config.device not in ("auto", "cpu"):
        from transformer.training.device import resolve_device

        resolve_device(config.device)


def give_back_memory() -> None:
    """Return free heap memory to the system, if the C library can.

    The GNU C library keeps a heap for each thread; some 20 MB of a default run would stay in it.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)

"""The place of this process among those that PyTorch's launcher, `torchrun`, has started."""

from __future__ import annotations

import os
from typing import NamedTuple


class Place(NamedTuple):
    """The place of a process among those that were started together, on one machine or on several."""

    rank: int
    """From 0 up, over all machines."""
    n_processes: int
    local_rank: int
    """From 0 up, on this machine."""
    n_here: int
    """Processes on this machine."""


NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
"""In the environment of each process, in the order of `Place`."""


def place() -> Place | None:
    """The place of this process; None: it was started alone."""
    if not all(name in os.environ for name in NAMES):
        return None
    found = Place(*(int(os.environ[name]) for name in NAMES))
    return found if found.n_processes > 1 else None

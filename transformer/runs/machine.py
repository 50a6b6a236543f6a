"""Whether this machine can train a configuration, for those who may not import torch."""

from __future__ import annotations

import psutil

from transformer.config import RunConfig
from transformer.size import check_memory
from transformer.tasks import completed


def check_machine(config: RunConfig) -> None:
    """Refuse a configuration that does not fit the memory, or whose device is not there.

    torch is loaded only where it must be: to know about another device than the CPU.

    Raises:
        InputError: what is wanted, what there is, and what to choose.
    """
    check_memory(completed(config), psutil.virtual_memory().available)
    if config.device not in ("auto", "cpu"):
        from transformer.training.device import resolve_device

        resolve_device(config.device)

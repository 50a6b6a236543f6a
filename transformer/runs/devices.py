"""Whether a device can be had, for those who may not import torch."""

from __future__ import annotations

from transformer.config import RunConfig


def check_device(config: RunConfig) -> None:
    """Refuse a configuration whose device is not on this machine; torch is loaded only where it must be.

    Raises:
        InputError: the device, those that there are, and what to choose.
    """
    if config.device not in ("auto", "cpu"):
        from transformer.training.device import resolve_device

        resolve_device(config.device)

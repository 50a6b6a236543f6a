"""The device of a run, and a clear refusal if it is not available."""

from __future__ import annotations

import torch

from transformer.errors import InputError


def available_devices() -> tuple[str, ...]:
    """Names of the devices this machine has, the preferred one first."""
    devices = []
    if torch.cuda.is_available():
        devices.append("cuda")
    if torch.backends.mps.is_available():
        devices.append("mps")
    return (*devices, "cpu")


def resolve_device(name: str) -> torch.device:
    """The device of this name; auto is the first available device.

    Raises:
        InputError: the device is not on this machine.
    """
    available = available_devices()
    if name == "auto":
        return torch.device(available[0])
    if name not in available:
        raise InputError(
            f"This machine has no {name} device; it has {', '.join(available)}. Choose auto or one of these.",
            "device",
        )
    return torch.device(name)

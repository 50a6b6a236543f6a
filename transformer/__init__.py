"""Headlight's package: a Transformer that can be watched while it learns. Works without the app.

Names are loaded when they are first used, so that importing the package does not import torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformer.config import ModelConfig, RunConfig, TrainConfig
    from transformer.config.recipes import RECIPES
    from transformer.errors import InputError
    from transformer.model.transformer import Transformer
    from transformer.recording.activations import record
    from transformer.runs.run import Run
    from transformer.training.loop import train
    from transformer.training.state import TrainState
    from transformer.watching.attention import attention_of
    from transformer.watching.patches import Patches
    from transformer.watching.watch import Watch

_HOMES = {
    "RECIPES": "transformer.config.recipes",
    "InputError": "transformer.errors",
    "ModelConfig": "transformer.config",
    "Patches": "transformer.watching.patches",
    "Run": "transformer.runs.run",
    "RunConfig": "transformer.config",
    "TrainConfig": "transformer.config",
    "TrainState": "transformer.training.state",
    "Transformer": "transformer.model.transformer",
    "Watch": "transformer.watching.watch",
    "attention_of": "transformer.watching.attention",
    "record": "transformer.recording.activations",
    "train": "transformer.training.loop",
}

__all__ = [
    "RECIPES",
    "InputError",
    "ModelConfig",
    "Patches",
    "Run",
    "RunConfig",
    "TrainConfig",
    "TrainState",
    "Transformer",
    "Watch",
    "attention_of",
    "record",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)

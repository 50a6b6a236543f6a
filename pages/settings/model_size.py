"""The size of the model of the settings, before it is built."""

from __future__ import annotations

from transformer.config import RunConfig
from transformer.size import parameter_count, training_bytes
from transformer.tasks import completed

BUILT_AT_ONCE = 3_000_000
"""Most parameters of a model that is shown as soon as it is chosen; a larger one is built at Start."""


def at_once(config: RunConfig | None) -> RunConfig | None:
    """The configuration, where its untrained model is small enough to be shown before Start is pressed."""
    if config is None or parameter_count(completed(config).model) > BUILT_AT_ONCE:
        return None
    return config


def model_size(config: RunConfig) -> str:
    """In words: parameters, memory, and how often a finite training set is seen."""
    full = completed(config)
    said = f"{parameter_count(full.model):,} parameters, about {_bytes(training_bytes(full))} to train"
    if at_once(config) is None:
        said += "; built when you press Start"
    if config.train.epochs is not None:
        said += f". {config.train.epochs:g} epochs of {config.train.examples:,} words"
    return f"{said}."


def _bytes(n: int) -> str:
    return f"{n / 1e9:.1f} GB" if n >= 1e9 else f"{n / 1e6:.0f} MB"

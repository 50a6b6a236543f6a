"""The model and training that each task needs to be learned live on two CPU cores."""

from __future__ import annotations

from typing import Any

from transformer.config import RunConfig

_SENTENCES: dict[str, Any] = {
    "d_model": 64,
    "d_ff": 256,
    "learning_rate": 3e-3,
    "steps": 400,
}
FITTING: dict[str, dict[str, Any]] = {
    "reverse": {},
    "copy": {},
    "sort": {"steps": 500},
    "caesar": {},
    # Small embeddings let positions dominate: 12 and 21 differ only in position.
    "dates": {"steps": 550, "embedding_std": 0.01},
    "en-fr": _SENTENCES,
    "en-it": _SENTENCES | {"steps": 500},
    "zh-en": _SENTENCES,
    # A few hundred or thousand pairs are seen again and again: these keep them from being learned by heart.
    "pairs": _SENTENCES | {"steps": 800, "dropout": 0.1, "label_smoothing": 0.1, "weight_decay": 0.3},
}
"""What differs from the settings of the reversal, by task."""
_IN_CHARACTERS: dict[str, Any] = {"weight_decay": 1.0}
"""What differs besides for own pairs of characters: it keeps whole words from being learned by heart."""


def for_pairs(config: RunConfig, *, in_characters: bool) -> RunConfig:
    """The settings that own pairs need, read in characters or in words; published settings stay.

    Args:
        config: for the task "pairs".
        in_characters: whether both sides are read in characters.
    """
    return config.with_changes(**_IN_CHARACTERS) if in_characters and not config.published else config


def with_task(config: RunConfig, task: str) -> RunConfig:
    """The same settings for another task, with the sizes and the training that it needs.

    The sizes and training of a published recipe stay as they are.

    Raises:
        InputError: there is no such task, or it needs something that is not here yet.
    """
    if task == config.train.task:
        return config
    return config.with_changes(task=task, **({} if config.published else FITTING.get(task, {})))

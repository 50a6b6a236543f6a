"""The model and training settings with which each task is learned live on two CPU cores."""

from __future__ import annotations

from typing import Any

from transformer.config import RunConfig

_SENTENCES: dict[str, Any] = {
    "d_model": 64,
    "d_ff": 256,
    "learning_rate": 3e-3,
    "steps": 400,
}
TASK_SETTINGS: dict[str, dict[str, Any]] = {
    "reverse": {},
    "copy": {},
    "sort": {"steps": 500},
    "caesar": {},
    # With the sinusoid, or smaller embeddings, induction forms hundreds of steps later, or not at all.
    "repeat": {
        "max_letters": 16,
        "n_heads": 2,
        "d_model": 64,
        "d_ff": 64,
        "positions": "learned",
        "embedding_std": 0.1,
        "schedule": "cosine",
        "warmup_steps": 20,
        "steps": 500,
    },
    # Small embeddings let    # Small embeddings let positions dominate: 12 and 21 differ only in position.
    "dates": {"steps": 550, "embedding_std": 0.01},
    "en-fr": _SENTENCES,
    "en-it": _SENTENCES | {"steps": 500},
    "zh-en": _SENTENCES,
    # A few hundred or thousand pairs are seen again and again: the last three settings reduce overfitting.
    "pairs": _SENTENCES | {"steps": 800, "dropout": 0.1, "label_smoothing": 0.1, "weight_decay": 0.3},
}
"""Settings of each task that differ from those of word reversal."""
_IN_CHARACTERS: dict[str, Any] = {"weight_decay": 1.0}
"""Further change for own pairs read in characters: it keeps the model from memorising whole words."""


def for_pairs(config: RunConfig, *, in_characters: bool) -> RunConfig:
    """The settings for own pairs, read in characters or in words; published settings do not change.

    Args:
        config: settings of the task "pairs".
        in_characters: whether both sides are read in characters.
    """
    return config.with_changes(**_IN_CHARACTERS) if in_characters and not config.published else config


def with_task(config: RunConfig, task: str) -> RunConfig:
    """The same settings for another task, with the sizes and the training that it needs.

    The sizes and training of a published recipe stay as they are.

    Raises:
        InputError: there is no such task, or the new settings cannot be used.
    """
    if task == config.train.task:
        return config
    return config.with_changes(task=task, **({} if config.published else TASK_SETTINGS.get(task, {})))

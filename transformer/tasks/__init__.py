"""The tasks, by name."""

from __future__ import annotations

from transformer.config import TrainConfig
from transformer.errors import InputError
from transformer.tasks.reverse import Reverse
from transformer.tasks.task import Batch, Question, Task

__all__ = ["Batch", "Question", "Task", "make_task"]

TASKS = {"reverse": Reverse}


def make_task(config: TrainConfig, topology: str) -> Task:
    """The task that a configuration names, laid out for a topology; TrainConfig has refused any other name.

    Raises:
        InputError: an encoder alone cannot give answers of another length than their questions.
    """
    kind = TASKS[config.task]
    if topology == "encoder-only" and not kind.same_length:
        raise InputError(
            f"The task {config.task} has answers of other lengths than their questions, and encoder-only "
            "writes one token in the place of each; choose encoder-decoder or decoder-only.",
            "topology",
        )
    return kind(config, topology)

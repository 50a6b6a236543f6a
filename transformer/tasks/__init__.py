"""The tasks, by name."""

from __future__ import annotations

from transformer.config import TrainConfig
from transformer.tasks.reverse import Reverse
from transformer.tasks.task import Batch, Question, Task

__all__ = ["Batch", "Question", "Task", "make_task"]


def make_task(config: TrainConfig) -> Task:
    """The task that a configuration names; TrainConfig has already refused any other."""
    return {"reverse": Reverse}[config.task](config)

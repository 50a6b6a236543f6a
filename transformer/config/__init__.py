"""The settings of a run, its model and its training: frozen dataclasses, checked, to and from JSON."""

from transformer.config.model import DROPOUT_PLACES, KINDS_OF, ModelConfig
from transformer.config.run import DEVICES, RunConfig
from transformer.config.tasks import GRAMMARS, LETTER_TASKS, TASK_INFO, TASKS
from transformer.config.training import PRECISIONS, TOKENIZERS, TrainConfig

__all__ = [
    "DEVICES",
    "DROPOUT_PLACES",
    "GRAMMARS",
    "KINDS_OF",
    "LETTER_TASKS",
    "PRECISIONS",
    "TASKS",
    "TASK_INFO",
    "TOKENIZERS",
    "ModelConfig",
    "RunConfig",
    "TrainConfig",
]

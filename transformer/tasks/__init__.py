"""The tasks, by name."""

from __future__ import annotations

from dataclasses import replace

from transformer.config import RunConfig, TrainConfig
from transformer.errors import InputError
from transformer.tasks.reverse import Reverse
from transformer.tasks.task import Batch, Question, Task

__all__ = ["Batch", "Question", "Task", "completed", "make_task"]

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


def completed(config: RunConfig) -> RunConfig:
    """A configuration with what its task needs filled in: the sizes of the vocabularies, and max_len.

    Raises:
        InputError: the task does not go with the topology.
    """
    task = make_task(config.train, config.model.topology)
    model = replace(
        config.model,
        src_vocab_size=task.src_tokenizer.size,
        tgt_vocab_size=task.tgt_tokenizer.size,
        max_len=task.max_tokens,
    )
    return replace(config, model=model)

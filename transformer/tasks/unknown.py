"""The share of held-out examples with unknown tokens, and tokenizer settings that reduce it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from transformer.config import RunConfig
from transformer.tasks import Task, task_of
from transformer.tasks.pairs.units import MOST_UNKNOWN

_ALL_TOKENS: dict[str, Any] = {"vocabulary": None, "min_frequency": 1}
_REMEDIES = ("auto", "bpe")


def unknown_tokens(task: Task) -> tuple[float, float]:
    """The share of [UNK] among the tokens of the held-out questions and among those of their answers."""
    questions = task.held_out()
    sides = (
        (task.src_tokenizer, questions),
        (task.tgt_tokenizer, [task.answer(question) or "" for question in questions]),
    )
    read, written = (_share(tokenizer.encode(texts), tokenizer.unk_id) for tokenizer, texts in sides)
    return read, written


def mostly_known(task: Task, questions: Iterable[str], most: int) -> list[str]:
    """The first of these questions with at most a tenth of [UNK], in the question and in its answer.

    Args:
        questions: questions whose answers are known.
        most: maximum number of questions to return.
    """

    def is_known(question: str) -> bool:
        sides = (task.src_tokenizer, question), (task.tgt_tokenizer, task.answer(question) or "")
        return all(_share(one.encode([text]), one.unk_id) <= MOST_UNKNOWN for one, text in sides)

    return list(islice(filter(is_known, questions), most))


def remedy(config: RunConfig) -> dict[str, Any] | None:
    """Changes of the tokenizer settings with which at most a tenth of each side's held-out tokens is unknown.

    Returns:
        Settings by their plain names; None where neither *auto* nor byte pairs are enough.

    Raises:
        InputError: see `task_of`.
    """
    for kind in _REMEDIES:
        changes = {"tokenizer": kind, **_ALL_TOKENS}
        if max(unknown_tokens(task_of(config.with_changes(**changes)))) <= MOST_UNKNOWN:
            return changes
    return None


def _share(rows: Iterable[list[int]], unk_id: int) -> float:
    """The share of [UNK] in rows of tokens, [SOS] and [EOS] left out."""
    unknown = total = 0
    for ids in rows:
        unknown += ids.count(unk_id)
        total += len(ids) - 2
    return unknown / max(1, total)

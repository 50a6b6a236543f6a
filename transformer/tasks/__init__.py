"""The tasks, by name."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any
from weakref import WeakValueDictionary

from transformer.config import RunConfig, TrainConfig
from transformer.errors import InputError
from transformer.tasks.arrange import Batch
from transformer.tasks.caesar import Caesar
from transformer.tasks.copying import Copy
from transformer.tasks.corpus import Corpus
from transformer.tasks.dates import Dates
from transformer.tasks.grammars import chinese_words
from transformer.tasks.grammars.chinese import chinese
from transformer.tasks.grammars.romance import FRENCH, ITALIAN
from transformer.tasks.pairs.store import pairs_of
from transformer.tasks.repeating import Repeat
from transformer.tasks.reverse import Reverse
from transformer.tasks.sorting import Sort
from transformer.tasks.task import Question, Task

__all__ = ["PATTERNS", "Batch", "Question", "Task", "resolved", "corpus_of", "task_of"]

_LETTERS = ("min_letters", "max_letters")
_SENTENCES = ("patterns", "adjectives")
CORPORA: dict[str, tuple[Callable[..., Corpus], tuple[str, ...]]] = {
    "reverse": (Reverse, _LETTERS),
    "copy": (Copy, _LETTERS),
    "sort": (Sort, _LETTERS),
    "caesar": (Caesar, (*_LETTERS, "shift")),
    "repeat": (Repeat, _LETTERS),
    "dates": (Dates, ()),
    "en-fr": (FRENCH.grammar, _SENTENCES),
    "en-it": (ITALIAN.grammar, _SENTENCES),
    "zh-en": (chinese, _SENTENCES),
}
"""By task, without "pairs": the function that makes its corpus, and the names of the settings it takes."""
PATTERNS = {
    "en-fr": FRENCH.lexicon.patterns,
    "en-it": ITALIAN.lexicon.patterns,
    "zh-en": chinese_words.PATTERNS,
}
"""The sentence patterns of each grammar, each with what to look for in the attention."""
_IN_TOKENS = ("tokenizer", "tokenizer_file", "vocabulary", "min_frequency", "batch_size", "examples")
"""The training settings on which a task depends, besides those of its corpus."""
_TASKS: WeakValueDictionary[tuple[object, ...], Task] = WeakValueDictionary()
_NEWEST: deque[Task] = deque(maxlen=8)
"""Strong references to the tasks of the last requests, without own pairs, so that they stay in `_TASKS`."""


def corpus_of(config: TrainConfig) -> Corpus:
    """The corpus of a configuration.

    Raises:
        InputError: there are no pairs yet, or they are no longer on this server; the grammar has no such
            pattern, or the pattern needs an adjective and `adjectives` is 0.
    """
    if config.task == "pairs":
        if config.pairs is None:
            raise InputError("There are no pairs yet; upload or paste some on the page Your data.", "task")
        return pairs_of(config.pairs)
    _, settings = CORPORA[config.task]
    return _made(config.task, *(getattr(config, name) for name in settings))


@lru_cache(maxsize=16)
def _made(task: str, *settings: Any) -> Corpus:
    make, _ = CORPORA[task]
    return make(*settings)


def task_of(config: RunConfig) -> Task:
    """The task of a run, laid out for its topology.

    Tasks are cached, so equal settings usually return the same object; a task is never changed.

    Raises:
        InputError: the topology is encoder-only, but answers may differ in length from their questions; or
            the task's pairs, patterns or tokenizer settings cannot be used.
    """
    train, topology = config.train, config.model.topology
    corpus = corpus_of(train)
    if topology == "encoder-only" and not corpus.same_length:
        raise InputError(
            f"In the task {train.task}, answers and questions differ in length, but encoder-only writes "
            "one token for each token that it reads; choose encoder-decoder or decoder-only.",
            "topology",
        )
    one_vocabulary = config.model.embedding_tables == "one"
    key = (corpus, *(getattr(train, name) for name in _IN_TOKENS), topology, one_vocabulary)
    task = _TASKS.get(key)
    if task is None:
        task = Task(corpus, train, topology, one_vocabulary=one_vocabulary)
        _TASKS[key] = task
    if train.task != "pairs":  # own data is not kept here: its runs and pages hold it
        _NEWEST.append(task)
    return task


def resolved(config: RunConfig) -> RunConfig:
    """A configuration with the values that its task determines: vocabulary sizes and max_len.

    Raises:
        InputError: see `task_of`.
    """
    task = task_of(config)
    model = replace(
        config.model,
        src_vocab_size=task.src_tokenizer.size,
        tgt_vocab_size=task.tgt_tokenizer.size,
        max_len=task.max_tokens,
    )
    return replace(config, model=model)

"""The untrained model of a configuration, as it is shown before Start: cached for all visitors."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from transformer.config import RunConfig
from transformer.recording.view import Publisher, RunView, untrained
from transformer.recording.weights import Weights
from transformer.shared.bounded import BoundedCache
from transformer.storage.own_data import OwnData
from transformer.tasks import Question, resolved

if TYPE_CHECKING:  # it imports torch
    from transformer.runs.training_session import RecordingState

MOST_BYTES = 64 * 2**20
"""Maximum bytes of the untrained models that are kept: of their frames and weights together."""
BUILDING = threading.Lock()
"""Held while a model is built. If a class starts at once, models are built one after the other: many threads
that build would keep every page waiting."""

_CACHE = BoundedCache(MOST_BYTES)
_WORKER = ThreadPoolExecutor(1, "untrained")


@dataclass(frozen=True, kw_only=True)
class Untrained:
    """What a run of this configuration has recorded when it begins."""

    view: RunView
    weights: Weights
    memory: RecordingState


def untrained_model(config: RunConfig, questions: Sequence[Question], held: OwnData) -> Future[Untrained]:
    """Build an untrained model and record it, or take it from the cache.

    Args:
        questions: the tracked words.
        held: uploads of the user that the configuration names; they must exist until the model is built.

    Returns:
        A future; its exception is an InputError if this machine cannot build the model.

    Raises:
        InputError: the task refuses the configuration.
    """
    key = resolved(config), tuple(question.text for question in questions)
    if (cached := _CACHE.peek(key)) is not None:
        answer: Future[Untrained] = Future()
        answer.set_result(cached)
        return answer
    return _WORKER.submit(_CACHE.get, key, partial(_recorded, config, [*questions], held), _nbytes)


def _recorded(config: RunConfig, questions: list[Question], held: OwnData) -> Untrained:
    from transformer.runs.training_session import TrainingSession

    published, weights = Publisher(untrained(config, "")), Weights()
    with BUILDING:
        training = TrainingSession(published, questions, weights)
    return Untrained(view=published.view, weights=weights, memory=training.memory())


def _nbytes(model: Untrained) -> int:
    return model.view.frames.nbytes + model.weights.nbytes

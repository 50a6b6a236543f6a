"""Fixtures of the recording tests: evaluations, a recorder for given words, and the frame of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from transformer.recording.frame import Frame
from transformer.recording.map_recorder import MapRecorder
from transformer.recording.recording import Recording
from transformer.shared.evaluation import Evaluation
from transformer.training.state import TrainState


def evaluation(step: int, right: int = 0) -> Evaluation:
    return Evaluation(step=step, right=right, total=7, loss=1.0, free_loss=1.0, token_accuracy=0.5)


@pytest.fixture(name="evaluation", scope="session")
def evaluation_fixture() -> Callable[..., Evaluation]:
    return evaluation


@pytest.fixture(scope="session")
def recorder_of() -> Callable[[TrainState, Sequence[str]], MapRecorder]:
    """Return a recorder of a model that tracks these words."""

    def make(state: TrainState, words: Sequence[str]) -> MapRecorder:
        recorder = MapRecorder(state.model, state.task, state.decoding)
        for word in words:
            recorder.add(state.task.question(word))
        return recorder

    return make


@pytest.fixture(scope="session")
def frame_of(recorder_of: Callable[..., MapRecorder]) -> Callable[..., Frame]:
    """Return the frame of a model in its present state."""

    def make(state: TrainState, words: Sequence[str], *, recorder: MapRecorder | None = None) -> Frame:
        recorder, step = recorder or recorder_of(state, words), state.step
        seen = [evaluation(step), recorder.measure(step), recorder.write(step)]
        recorder.buffer.copy(step)
        return Recording([*seen, *recorder.compute()], target_score=state.task.target_score)[-1]

    return make

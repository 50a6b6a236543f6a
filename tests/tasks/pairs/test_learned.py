"""Lessons are learned with the settings that the app suggests."""

from __future__ import annotations

import pytest

from tests.tasks.pairs.lessons import LESSONS, lesson
from transformer.config.recipes import recipe_config
from transformer.config.tasks import for_pairs, with_task
from transformer.tasks.pairs.caps import select_pairs, suggested
from transformer.tasks.pairs.own import OwnPairs
from transformer.tasks.pairs.store import intern_pairs
from transformer.training.evaluation import evaluate
from transformer.training.loop import train
from transformer.training.state import TrainState


@pytest.mark.slow
@pytest.mark.parametrize("name", LESSONS)
def test_each_lesson_reaches_an_accuracy_of_90_percent_on_its_held_out_pairs(name):
    own = intern_pairs(OwnPairs(select_pairs(lesson(name), suggested(lesson(name)))))
    config = for_pairs(with_task(recipe_config("default"), "pairs"), in_characters=own.in_characters)
    config = config.with_changes(pairs=own.digest, goal=None, device="cpu")
    state = TrainState.begin(config)
    for _ in train(state):
        pass
    assert evaluate(state, state.task.held_out()).exact >= 0.9

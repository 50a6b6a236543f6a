"""The settings that come with each task."""

from __future__ import annotations

import pytest

from transformer.config import TASK_INFO, TASKS, RunConfig
from transformer.config.recipes import RECIPES, recipe_config
from transformer.config.tasks import for_pairs, with_task
from transformer.errors import InputError


@pytest.mark.parametrize("task", TASKS)
def test_choosing_a_task_changes_only_the_settings_that_come_with_it(task):
    config = RECIPES["default"].small
    changed = with_task(config, task)
    assert changed.train.task == task
    settings = TASK_INFO[task].settings
    expected = {name: getattr(config.model, name, getattr(config.train, name, None)) for name in settings}
    differing = {name: there for name, (_, there) in config.differences(changed).items() if name != "task"}
    assert differing == {name: value for name, value in settings.items() if value != expected[name]}


def test_choosing_the_same_task_again_changes_nothing():
    config = with_task(RECIPES["default"].small, "en-fr").with_changes(d_model=16)
    assert with_task(config, "en-fr") is config


def test_a_published_recipe_keeps_its_sizes_and_training_settings():
    config = recipe_config("etienne", None, published=True)
    changed = with_task(config, "copy")
    assert changed == config.with_changes(task="copy")


def test_an_unknown_task_is_refused_by_name():
    with pytest.raises(InputError, match="task='en-de' does not exist; choose reverse"):
        with_task(RunConfig(), "en-de")


@pytest.mark.parametrize(("in_characters", "decay"), [(False, 0.3), (True, 1.0)])
def test_pairs_of_characters_get_more_weight_decay_and_a_published_recipe_keeps_its_own(in_characters, decay):
    config = with_task(RECIPES["default"].small, "pairs")
    assert for_pairs(config, in_characters=in_characters).train.weight_decay == decay
    published = with_task(recipe_config("etienne", None, published=True), "pairs")
    assert for_pairs(published, in_characters=in_characters) is published

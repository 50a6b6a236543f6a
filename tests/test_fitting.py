"""The settings that each task brings with it."""

from __future__ import annotations

import pytest

from transformer.config import TASKS, RunConfig
from transformer.errors import InputError
from transformer.fitting import FITTING, for_pairs, with_task
from transformer.recipes import RECIPES, beginning


def test_every_task_has_its_settings_and_no_other_has():
    assert tuple(FITTING) == TASKS


@pytest.mark.parametrize("task", TASKS)
def test_a_task_brings_what_it_needs_and_nothing_else(task):
    config = RECIPES["default"].small
    changed = with_task(config, task)
    assert changed.train.task == task
    expected = {
        name: getattr(config.model, name, getattr(config.train, name, None)) for name in FITTING[task]
    }
    differing = {name: there for name, (_, there) in config.differences(changed).items() if name != "task"}
    assert differing == {name: value for name, value in FITTING[task].items() if value != expected[name]}


def test_the_same_task_again_changes_nothing():
    config = with_task(RECIPES["default"].small, "en-fr").with_changes(d_model=16)
    assert with_task(config, "en-fr") is config


def test_a_published_beginning_keeps_its_sizes_and_its_training():
    config = beginning("etienne", None, published=True)
    changed = with_task(config, "copy")
    assert changed == config.with_changes(task="copy")


def test_a_task_that_does_not_exist_is_refused_by_its_name():
    with pytest.raises(InputError, match="task='en-de' does not exist; choose reverse"):
        with_task(RunConfig(), "en-de")


@pytest.mark.parametrize(("in_characters", "decay"), [(False, 0.3), (True, 1.0)])
def test_pairs_of_characters_need_more_weight_decay_and_a_published_beginning_keeps_its_own(
    in_characters, decay
):
    config = with_task(RECIPES["default"].small, "pairs")
    assert for_pairs(config, in_characters=in_characters).train.weight_decay == decay
    published = with_task(beginning("etienne", None, published=True), "pairs")
    assert for_pairs(published, in_characters=in_characters) is published

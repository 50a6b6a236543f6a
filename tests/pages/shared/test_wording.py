"""Settings that differ from those of a run are named in plain words."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from pages.shared.wording import changed, differences, differing_settings, distinguishing_labels, in_words
from transformer.config import RunConfig
from transformer.tasks import resolved


@pytest.fixture
def view(visit):
    """The view of an untrained run, for tests to change."""
    return visit().run.view


def test_settings_that_differ_are_named_in_plain_words_with_both_values(view):
    before = RunConfig().with_changes(goal=0.99)
    now = before.with_changes(d_model=64, d_ff=256, learning_rate=0.01, goal=None, recipe="other", seed=3)

    def run(config):
        rate = config.train.learning_rate
        return SimpleNamespace(config=config, view=replace(view, learning_rate=rate))

    assert differences(changed(run(before), now)) == (
        "width 32 → 64, learning rate 0.005 → 0.01, stop at goal 99% → none, seed 0 → 3"
    )
    assert changed(run(before), before) == changed(run(before), None) == {}
    assert changed(run(now), now.with_changes(d_ff=8)) == {"d_ff": (256, 8)}  # d_ff alone counts as a change


def test_values_are_written_as_in_the_widgets():
    changes = {
        "causal_mask": (True, False),
        "padding_mask": (False, True),
        "pairs": (None, "427a77c1"),
        "task": ("reverse", "zh-en"),
        "dropout": (0.1, 0.25),
    }
    assert differences(changes) == (
        "causal mask on → off, padding mask off → on, pairs none → your own, "
        "task Reverse words → Chinese to English, 1 more"
    )


def test_a_goal_is_written_as_a_percentage():
    assert differences({"goal": (None, 0.99)}) == "stop at goal none → 99%"
    assert differences({"goal": (1.0, None)}) == "stop at goal 100% → none"


def test_runs_are_labelled_by_the_settings_in_which_they_differ():
    first = RunConfig()
    second = first.with_changes(seed=3, causal_mask=False, d_model=64, d_ff=256)
    assert distinguishing_labels([first]) == [""]
    assert distinguishing_labels([first, first]) == ["seed 0", "seed 0"]
    assert [set(label.split(", ")) for label in distinguishing_labels([first, second, first])] == [
        {"width 32", "causal mask on", "seed 0"},
        {"width 64", "causal mask off", "seed 3"},
        {"width 32", "causal mask on", "seed 0"},
    ]
    other = first.with_changes(task="zh-en", dropout=0.2)  # the task is left out: the name of a run gives it
    assert distinguishing_labels([first, other]) == ["dropout 0", "dropout 0.2"]


@pytest.mark.parametrize(
    ("topology", "explicit", "words"),
    [("encoder-decoder", True, ""), ("encoder-only", False, ""), ("encoder-only", True, "off → on")],
)
def test_a_causal_mask_that_follows_from_the_topology_equals_the_same_mask_chosen(topology, explicit, words):
    follows = RunConfig().with_changes(topology=topology)
    chosen = follows.with_changes(causal_mask=explicit)
    assert differences(differing_settings(follows, chosen)) == (words and f"causal mask {words}")


def test_a_message_names_an_invalid_setting_as_its_widget_does_and_keeps_other_text():
    assert in_words("n_heads=0 is outside 1 to 64.") == "Heads: 0 is outside 1 to 64."
    assert in_words("Choose d_model=8, not a=b.") == "Choose width 8, not a=b."


@pytest.mark.parametrize("task", ["reverse", "zh-en", "dates"])
def test_settings_completed_for_a_task_do_not_count_as_changes_to_a_saved_run(view, task):
    asked = RunConfig().with_changes(task=task, seed=3)
    saved = SimpleNamespace(config=resolved(asked), view=replace(view, learning_rate=0.005))
    assert saved.config.model.max_len != asked.model.max_len or task == "reverse"
    assert changed(saved, asked) == {}
    assert changed(saved, asked.with_changes(batch_size=16)) == {"batch_size": (64, 16)}

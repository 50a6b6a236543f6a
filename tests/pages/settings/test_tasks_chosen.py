"""Tasks on the Watch page: fitting settings, tracked examples, refusals, and training."""

from __future__ import annotations

import re

import numpy as np
import pytest

from pages.settings.beginnings import OWN
from pages.settings.presets import PRESETS, look_for
from transformer.config import TASK_INFO, TASKS
from transformer.config.recipes import recipe_config
from transformer.config.tasks import with_task
from transformer.tasks import PATTERNS, corpus_of

FEW = {"layers_encoder": 1, "layers_decoder": 1, "heads": 2, "width": 8, "steps": 3, "goal": "none"}


@pytest.fixture
def watch(visit):
    """Open the Watch page on a task, with a model that trains quickly."""

    def on(task, **more):
        return visit({"task": task, "preset": TASK_INFO[task].title, "device": "cpu", **FEW} | more)

    return on


@pytest.mark.parametrize("task", ["sort", "dates", "repeat", "zh-en"])
def test_choosing_a_task_fills_in_fitting_settings_and_shows_what_to_look_for(visit, task):
    visitor = visit({}).set("task", task)
    config = PRESETS[TASK_INFO[task].title].config
    assert visitor.run.config == config
    assert visitor.value("preset") == TASK_INFO[task].title
    for name, value in TASK_INFO[task].settings.items():
        assert value in (getattr(config.model, name, None), getattr(config.train, name, None))
    visitor.wait_until(lambda: visitor.run.view.frame is not None)
    assert PRESETS[TASK_INFO[task].title].look_for in visitor.headline
    assert [tracked.text for tracked in visitor.run.view.frame.words] == list(
        corpus_of(config.train).tracked_words()
    )


@pytest.mark.parametrize("task", ["dates", "repeat"])
def test_a_link_with_a_task_alone_opens_the_preset_of_that_task(visit, task):
    visitor = visit({"task": task})
    assert visitor.value("preset") == visitor.value("preset_short") == TASK_INFO[task].title
    assert visitor.run.config == PRESETS[TASK_INFO[task].title].config


def test_repeating_can_be_given_other_stacks_than_its_own(visit):
    visitor = visit({"task": "repeat"}).set("topology", "encoder-decoder")
    config = visitor.run.config
    assert (config.train.task, config.model.topology, config.recipe) == (
        "repeat",
        "encoder-decoder",
        "default",
    )
    assert visitor.value("preset") == TASK_INFO["repeat"].title
    assert visitor.set("topology", "decoder-only").run.config == PRESETS[TASK_INFO["repeat"].title].config
    assert visitor.set("task", "en-fr").run.config.model.topology == "encoder-decoder"


def test_a_topology_that_was_chosen_stays_with_another_task_and_the_preset_is_that_of_the_task(visit):
    visitor = visit({"task": "en-fr"}).set("topology", "decoder-only")
    assert (visitor.value("preset"), visitor.value("task")) == ("English to French", "en-fr")
    visitor.set("task", "sort")
    assert (visitor.value("preset"), visitor.run.config.model.topology) == ("Sort letters", "decoder-only")


@pytest.mark.parametrize("topology", ["encoder-only", "decoder-only"])
@pytest.mark.parametrize("recipe", [OWN, "bloem"])
def test_only_a_run_that_reverses_words_is_said_to_read_backwards(topology, recipe):
    for task in ("copy", "sort", "caesar", "reverse"):
        said = look_for(with_task(recipe_config(recipe, topology), task))
        assert ("backwards" in said) == (task == "reverse" and (recipe == OWN or topology == "encoder-only"))


def test_a_task_has_its_full_name_in_the_list_and_its_short_name_in_the_link(visit):
    visitor = visit({"task": "zh-en"})
    assert visitor.at.selectbox(key="task").options == [task.title for task in TASK_INFO.values()]
    assert visitor.at.selectbox(key="task").options[TASKS.index("zh-en")] == "Chinese to English"
    assert visitor.link["task"] == "zh-en"
    visitor.set("task", "sort")
    assert visitor.link["task"] == "sort"
    visitor.set("task", "reverse")
    assert "task" not in visitor.link


@pytest.mark.parametrize("task", ["en-fr", "dates"])
def test_a_task_trains_and_its_tokens_label_the_axes(watch, task):
    visitor = watch(task).press("run_start").until("finished")
    run, drawn = visitor.run, visitor.go("ask").drawn("explore_map_figure")
    tracked = run.view.frame.words[0]
    assert run.view.step == 3
    assert tuple(run.task.src_tokenizer.encode([tracked.text])[0]) == tuple(
        run.task.src_tokenizer.id_of(token) for token in tracked.src_tokens
    )
    assert drawn.columns == list(tracked.src_tokens)
    np.testing.assert_allclose(drawn.arrays["0.z"].sum(axis=1), 1, atol=1e-3)
    assert drawn.arrays["0.z"].shape == (len(tracked.tgt_tokens), len(tracked.src_tokens))


def test_a_typed_sentence_is_tracked_and_an_unknown_word_is_named(watch):
    visitor = watch("en-fr").set("own_word", "The old CAT sees the star").press("add_word")
    visitor.wait_until(lambda: len(visitor.run.view.frame.words) == 6)
    tracked = visitor.run.view.frame.words[-1]
    assert (tracked.text, tracked.answer) == ("the old cat sees the star", "le vieux chat voit l'étoile")
    visitor.set("own_word", "the zebra sleeps").press("add_word")
    assert any("zebra" in error for error in visitor.errors)


def test_a_sentence_outside_the_grammar_is_free_running_and_ask_shows_no_right_answer(watch):
    visitor = watch("en-fr").set("own_word", "cat the sees").press("add_word")
    visitor.wait_until(lambda: len(visitor.run.view.frame.words) == 6)
    tracked = visitor.run.view.frame.words[-1]
    assert tracked.answer is None
    assert not tracked.right
    visitor.go("ask").fill({"explore_text": "cat the sees", "explore_input": "forced"})
    assert "on its own" in visitor.drawn("explore_map_figure").changing["title.text"]
    (spelled,) = [text for text in visitor.texts if "<div class='hl-spelled " in text]
    assert "right answer not known" in spelled
    assert not re.search("right answer</th>|class='[^']*(ok|no)'|✓|✗", spelled)


def refused(visitor, key, value, message):
    """Check that a value is refused in place and the model on the screen stays."""
    before = visitor.run.id
    visitor.set(key, value)
    assert any(message in error for error in visitor.errors)
    assert visitor.run.id == before
    assert not visitor.enabled("run_start")


def test_a_grammar_has_settings_for_patterns_and_adjectives(watch):
    visitor = watch("en-it")
    pattern = list(PATTERNS["en-it"])[0]
    visitor.fill({"patterns_en-it": [pattern], "adjectives": 2})
    assert visitor.run.config.train.patterns == (pattern,)
    assert visitor.run.config.train.adjectives == 2
    assert {pair.pattern for pair in visitor.run.task.pairs(0, 0)} == {pattern}
    assert "letters" not in visitor.keys
    refused(visitor, "adjectives", 7, "Adjectives: 7 is outside 0 to 4")


def test_a_shift_beyond_its_limits_is_refused_in_place_and_the_model_stays(watch):
    refused(watch("caesar"), "shift", 26, "Shift: 26 is outside 1 to 25")


def test_a_task_whose_answers_have_another_length_is_refused_by_an_encoder_only_model(watch):
    visitor = watch("en-fr").set("topology", "encoder-only")
    assert any("choose encoder-decoder or decoder-only" in error for error in visitor.errors)
    visitor.set("topology", "decoder-only")
    assert not visitor.errors
    assert visitor.run.task.src_tokenizer.sep_id > 0


def test_another_tokenizer_splits_the_same_sentence_differently(watch):
    visitor = watch("en-fr")
    words = visitor.run.view.frame.words[0].src_tokens
    visitor.set("tokenizer_kind", "characters")
    visitor.wait_until(lambda: visitor.run.view.frame is not None)
    letters = visitor.run.view.frame.words[0].src_tokens
    assert "".join(letters[1:-1]).replace("␣", " ") == " ".join(words[1:-1])


def test_a_tracked_word_of_one_task_is_not_kept_for_another(watch):
    visitor = watch("reverse").set("own_word", "zebra").press("add_word")
    visitor.set("task", "en-fr").wait_until(lambda: visitor.run.view.frame is not None)
    assert "zebra" not in [question.text for question in visitor.run.questions]

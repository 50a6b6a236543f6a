"""The tokens that auto chooses are shown, and too many unknown tokens give a warning with a remedy."""

from __future__ import annotations

import pytest

from tests.tasks.pairs.lessons import LESSONS

REVERSED = "\n".join("\t".join(pair) for pair in LESSONS["reversed"])
NUMBERS = "\n".join("\t".join(pair) for pair in LESSONS["numbers"])


def warnings(page):
    return [element.value for element in page.at.warning]


def test_the_tokens_chosen_by_auto_are_shown_with_the_share_of_unknown_words(bring):
    page = bring(text=NUMBERS)
    assert page.says("**characters** (with words, 100% of the test words would be unknown) for sources")
    assert page.says("**words** (0% of the test words unknown) for targets")
    assert warnings(page) == []


@pytest.mark.parametrize("path", ["data", "watch"])
def test_word_tokens_that_are_all_unknown_give_a_warning_and_a_button_that_switches_to_auto(bring, path):
    page = bring(text=REVERSED).go(path).set("tokenizer_kind", "words")
    assert page.errors == []
    (warning,) = warnings(page)
    assert "**100%** of the source tokens and **100%** of the target tokens are unknown" in warning
    page.press("unknown_remedy")
    assert page.value("tokenizer_kind") == "auto"
    assert warnings(page) == []


@pytest.mark.parametrize(("text", "decay"), [(REVERSED, 1.0), (NUMBERS, 0.3)])
def test_training_uses_the_settings_that_fit_the_tokens_of_the_pairs(bring, text, decay):
    page = bring(text=text).press("data_train").go("watch")
    assert page.run.config.train.weight_decay == decay
    page.until("finished")


def test_the_button_removes_a_vocabulary_limit_that_is_too_small(bring):
    page = bring().set("vocabulary", 10)
    assert len(warnings(page)) == 1
    page.press("unknown_remedy")
    assert (page.value("vocabulary"), page.value("tokenizer_kind")) == (None, "auto")
    assert warnings(page) == []


def test_a_run_on_unknown_tokens_scores_every_head_zero_and_has_no_moment_of_a_head(bring):
    page = bring(text=REVERSED, steps=30).go("watch").set("tokenizer_kind", "words").press("run_start")
    view = page.until("finished").run.view
    assert view.config.train.tokenizer == "words"
    assert all(moment.head is None for moment in view.moments)
    of_heads = (row for scores in view.frame.head_scores.values() for row in scores.values())
    assert all(score == 0 for row in of_heads for score in row)

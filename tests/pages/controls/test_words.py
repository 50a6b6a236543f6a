"""Words: chosen from the tracked words or typed; invalid words are refused in place."""

from __future__ import annotations

import pytest


def shown(visitor):
    """Return the word that the player shows."""
    return visitor.player["first"]["word"]


def ask(visitor, text):
    visitor.set("own_word", text)
    return visitor


def appears(visitor, word):
    return visitor.wait_until(lambda: word in [tracked.text for tracked in visitor.run.view.frame.words])


def test_the_chosen_word_is_shown(visit):
    visitor = visit()
    assert visitor.value("word") == shown(visitor) == "banana"
    visitor.choose(word="cat")
    assert visitor.value("word") == shown(visitor) == "cat"


def test_a_typed_word_is_lower_cased_and_shown(visit):
    word = "zebra"
    visitor = appears(ask(visit(), "  Zebra"), word)
    assert visitor.errors == []
    assert visitor.value("word") == word
    assert visitor.value("own_word") == ""  # the box is ready for the next word
    assert shown(visitor) == word
    assert visitor.run.view.frame.step == 0  # without a step of training


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("Café", "Only the letters a to z are in the alphabet, not “é”. Try cafe."),
        ("<b>", "Only the letters a to z are in the alphabet, not “<”, “>”. Try b."),
        ("   ", "The word is empty; type one, such as banana."),
    ],
)
def test_an_invalid_word_is_refused_in_place_and_stays_in_the_box(visit, typed, message):
    visitor = ask(visit(), typed)
    assert visitor.errors == [message]
    assert visitor.value("own_word") == typed
    assert visitor.value("word") == "banana"
    assert [question.text for question in visitor.run.questions] == ["banana", "kayak", "cat"]
    visitor.look()
    assert visitor.errors == [message]  # until another word is typed
    assert ask(visitor, "owl").errors == []


def test_the_error_about_a_word_disappears_with_the_word(visit):
    visitor = ask(visit(), "caf3")
    assert visitor.errors == ["Only the letters a to z are in the alphabet, not “3”. Try caf."]
    assert visitor.set("own_word", "").errors == []
    assert ask(visitor, "caf3").errors
    assert visitor.go("masks").errors == []


def test_the_chosen_word_can_be_removed_unless_it_is_the_last(visit):
    visitor = visit()
    visitor.choose(word="kayak").press("drop_word")
    assert [question.text for question in visitor.run.questions] == ["banana", "cat"]
    assert visitor.value("word") == shown(visitor) == "banana"
    visitor.press("drop_word")
    assert shown(visitor) == "cat"
    assert visitor.at.button(key="drop_word").disabled


def test_a_viewer_cannot_add_or_remove_words(visit):
    owner = visit().press("run_start").until("finished")
    guest = visit({"run": owner.run.id})
    assert not guest.keys & {"own_word", "add_word", "drop_word"}


def test_a_word_can_be_added_in_any_state_without_changing_the_training(visit, slow, trained_alone):
    visitor = visit(slow).set("step_size", 2).step()
    assert visitor.run.view.step == 2
    appears(ask(visitor, "owl"), "owl")
    assert visitor.run.view.step == 2
    visitor.press("run_stop").until("stopped")
    appears(ask(visitor, "fox"), "fox")
    assert shown(visitor) == "fox"
    assert "stopped" in visitor.status
    assert visitor.run.view.metrics.column("loss").tolist() == trained_alone(visitor.run.config, 2)


def test_a_word_that_is_tracked_already_is_chosen_and_not_added_twice(visit):
    visitor = ask(visit(), "CAT")
    assert visitor.value("word") == "cat"
    assert [question.text for question in visitor.run.questions] == ["banana", "kayak", "cat"]


def test_the_mean_map_of_all_words_of_one_length_is_tracked_until_it_is_given_up(visit):
    visitor = visit()
    assert list(visitor.at.selectbox(key="mean_length").options) == [f"of {n} letters" for n in (3, 4, 5, 6)]
    assert visitor.value("mean_length") is None
    words = ["banana", "kayak", "cat"]
    for length in (5, 4):  # another length replaces the first
        name = f"mean of 64 words of {length} letters"
        appears(visitor.set("mean_length", length), name)
        assert list(visitor.run.words) == [*words, name]
        assert (visitor.value("mean_length"), shown(visitor)) == (length, name)
    assert visitor.press("drop_word").value("mean_length") is None  # the map on the screen
    assert list(visitor.run.words) == words
    appears(visitor.set("mean_length", 5), "mean of 64 words of 5 letters").set("mean_length", None)
    assert list(visitor.run.words) == words
    assert visitor.errors == []


def test_pages_that_ask_for_a_word_never_ask_for_a_mean_map(visit):
    name = "mean of 64 words of 5 letters"
    visitor = appears(visit().set("mean_length", 5), name)
    assert visitor.value("word") == name
    assert visitor.go("masks").value("word") in ("banana", "kayak", "cat")
    assert "mean_length" not in visitor.keys
    assert not visitor.says(name)
    assert visitor.go("watch").choose(word=name).value("word") == name
    assert visitor.go("ask").value("explore_text") == "banana"
    assert visitor.errors == []


def test_a_task_whose_answers_differ_in_length_has_no_mean_map(visit):
    assert "mean_length" not in visit(task="repeat").keys
    assert "mean_length" not in visit(task="en-fr").keys

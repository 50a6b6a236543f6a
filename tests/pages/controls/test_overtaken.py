"""A click that leads to another page before this one could do what was asked: it is done there, and once."""

from __future__ import annotations

import pytest

ELSEWHERE = ("explore", "anatomy", "data")


def broken_off(visitor, **asked):
    """The callback has noted what is asked, and Streamlit breaks the page off for the next click."""
    visitor.at.session_state["asked"] = asked
    return visitor


@pytest.mark.parametrize("page", ELSEWHERE)
def test_start_is_done_on_the_page_that_the_next_click_led_to_and_once(visit, page):
    visitor = visit(steps=6)
    broken_off(visitor, start=None).go(page)
    visitor.until("finished")
    run = visitor.run
    assert run.view.planned == 6
    visitor.go("train").look()
    assert visitor.run is run
    assert [key for key in visitor.keys if key.startswith("show_")] == [f"show_{run.id}"]


def test_a_start_with_other_settings_is_of_those_and_leaves_the_run_alone(visit):
    visitor = visit(steps=6).press("run_start").until("finished")
    first = visitor.run
    visitor.set("steps", 7)
    broken_off(visitor, start=None).go("explore")
    visitor.once(lambda: visitor.run is not first and visitor.run.view.state == "finished")
    assert (first.view.step, visitor.run.view.step) == (6, 7)


def test_a_typed_word_is_tracked_though_another_page_came_first(visit):
    visitor = visit(steps=6).press("run_start").until("finished")
    broken_off(visitor, add_word="pear").go("explore")
    visitor.once(lambda: "pear" in visitor.run.words)
    assert visitor.go("train").player["first"]["word"] == "pear"
    assert visitor.run.words.count("pear") == 1


def test_a_reload_that_overtakes_the_key_of_a_run_leaves_it_to_its_owner(visit):
    """The browser had the key of the untrained model before Start."""
    visitor = visit(steps=100_000, pace="1 steps/s")
    draft = visitor.run.id
    token = visitor.value("tokens")[draft]
    visitor.press("run_start").until("training")
    again = visitor.__class__({}, {})
    assert again.run.id != draft
    again.send("keyring", "found", [[], "", [draft, "x" * 22]])
    assert again.run.id != draft  # another's token opens nothing
    again.send("keyring", "found", [[], "", [draft, token]])
    assert again.run.id == draft
    again.press("run_stop").until("stopped")


@pytest.fixture
def broken(visit):
    """The tab Break of a run that stands still."""
    visitor = visit(steps=1000).set("step_size", 5).step()
    return visitor.go("explore").tab("Break").fill({"explore_text": "owl", "kind": "cross"})


def overtaking(visitor, *keys, page="train"):
    """Press buttons, and a link to another page before anything of that is done."""
    for key in keys:
        visitor.at.button(key=key).click()
    return visitor.go(page)


def blocked(visitor):
    return [key for key in visitor.keys if key.startswith("unblock_")]


@pytest.mark.parametrize("page", ["train", "data"])
def test_all_that_break_is_asked_is_done_though_another_page_came_first_and_once(broken, page):
    overtaking(broken, "ablate_others", "block_add", page=page)
    for _ in range(2):
        broken.go(page).go("explore").tab("Break")
        assert len(broken.value("ablate_heads")) == 1
        assert blocked(broken) == ["unblock_0"]
    overtaking(broken, "unblock_0", page=page).go("explore").tab("Break")
    assert blocked(broken) == []
    assert broken.errors == []


def test_a_look_is_blocked_of_the_word_it_was_pressed_for_and_not_of_one_chosen_since(broken):
    overtaking(broken, "block_add").choose(word="banana")
    assert blocked(broken.go("explore").tab("Break")) == []
    assert blocked(broken.set("explore_text", "owl")) == ["unblock_0"]

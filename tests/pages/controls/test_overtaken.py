"""Requests interrupted by a click to another page are carried out there, and only once."""

from __future__ import annotations

import pytest

from transformer.runs.registry import REGISTRY

ELSEWHERE = ("ask", "inside", "data")


def broken_off(visitor, **asked):
    """Store requests as if Streamlit had interrupted the page right after the callback noted them."""
    visitor.at.session_state["requests"] = asked
    return visitor


@pytest.mark.parametrize("page", ELSEWHERE)
def test_start_is_carried_out_once_on_the_page_that_the_next_click_opens(visit, page):
    visitor = visit(steps=6)
    broken_off(visitor, start=None).go(page)
    visitor.until("finished")
    run = visitor.run
    assert run.view.planned == 6
    visitor.go("watch").look()
    assert visitor.run is run
    assert [key for key in visitor.keys if key.startswith("show_")] == [f"show_{run.id}"]


@pytest.mark.parametrize("page", ["race", "masks"])
def test_start_on_watch_trains_its_run_even_if_a_page_with_its_own_start_opens_first(visit, page):
    visitor = visit(steps=6)
    draft = visitor.run
    visitor.set("steps", 7)
    broken_off(visitor, start=None).go(page)
    visitor.go("watch").until("finished")
    assert (visitor.run.view.planned, len(REGISTRY.listed())) == (7, 1)
    assert visitor.run is not draft


@pytest.mark.parametrize("page", ["watch", "ask"])
def test_start_on_race_trains_its_runs_even_if_another_page_opens_first(visit, page):
    visitor = visit({}, page="race")
    names = visitor.player["race"]["names"]
    broken_off(visitor, start=None).go(page)
    assert len(REGISTRY.listed()) == 2
    visitor.go("race")
    assert visitor.player["race"]["names"] == names
    visitor.press("run_stop")


def test_start_after_a_change_of_settings_uses_them_and_leaves_the_first_run_unchanged(visit):
    visitor = visit(steps=6).press("run_start").until("finished")
    first = visitor.run
    visitor.set("steps", 7)
    broken_off(visitor, start=None).go("ask")
    visitor.wait_until(lambda: visitor.run is not first and visitor.run.view.state == "finished")
    assert (first.view.step, visitor.run.view.step) == (6, 7)


def test_a_typed_word_is_tracked_even_if_another_page_opens_first(visit):
    visitor = visit(steps=6).press("run_start").until("finished")
    broken_off(visitor, add_word="pear").go("ask")
    visitor.wait_until(lambda: "pear" in visitor.run.words)
    assert visitor.go("watch").player["first"]["word"] == "pear"
    assert visitor.run.words.count("pear") == 1


def test_a_reload_before_the_browser_has_the_token_of_a_run_keeps_its_owner(visit):
    """The browser still has the token of the untrained model from before Start."""
    visitor = visit(steps=100_000, pace="1 steps/s")
    draft = visitor.run.id
    token = visitor.value("tokens")[draft]
    visitor.press("run_start").until("training")
    again = visitor.__class__({}, {})
    assert again.run.id != draft
    again.send("keyring", "found", [[], "", [draft, "x" * 22]])
    assert again.run.id != draft  # a wrong token opens nothing
    again.send("keyring", "found", [[], "", [draft, token]])
    assert again.run.id == draft
    again.press("run_stop").until("stopped")


@pytest.fixture
def broken(visit):
    """The Break tab of a paused run."""
    visitor = visit(steps=1000).set("step_size", 5).step()
    return visitor.go("ask").tab("Break").fill({"explore_text": "owl", "kind": "cross"})


def overtaking(visitor, *keys, page="watch"):
    """Press buttons, then open another page before any of their requests is carried out."""
    for key in keys:
        visitor.at.button(key=key).click()
    return visitor.go(page)


def blocked(visitor):
    return [key for key in visitor.keys if key.startswith("unblock_")]


@pytest.mark.parametrize("page", ["watch", "data"])
def test_requests_on_break_are_carried_out_once_even_if_another_page_opens_first(broken, page):
    overtaking(broken, "ablate_others", "block_add", page=page)
    for _ in range(2):
        broken.go(page).go("ask").tab("Break")
        assert len(broken.value("ablate_heads")) == 1
        assert blocked(broken) == ["unblock_0"]
    overtaking(broken, "unblock_0", page=page).go("ask").tab("Break")
    assert blocked(broken) == []
    assert broken.errors == []


def test_a_block_applies_to_the_word_it_was_pressed_for_and_not_to_one_chosen_later(broken):
    overtaking(broken, "block_add").choose(word="banana")
    assert blocked(broken.go("ask").tab("Break")) == []
    assert blocked(broken.set("explore_text", "owl")) == ["unblock_0"]

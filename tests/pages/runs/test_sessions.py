"""Several visitors of one server: each sees their own runs, and a link shows a run to another visitor."""

from __future__ import annotations

from html import unescape
from urllib.parse import parse_qsl, urlsplit

import pytest
import segno
from streamlit.runtime.context import ContextProxy

from pages.shared import selection
from tests.pages.conftest import TINY
from tests.pages.visitor import KEYS
from transformer.runs.limits import Limits
from transformer.runs.registry import REGISTRY


def listed(visitor):
    """Return the ids of the runs in the list, the newest first."""
    return [
        button.key.removeprefix("show_") for button in visitor.at.button if button.key.startswith("show_")
    ]


def test_a_link_to_a_running_run_shows_that_run_with_its_settings(visit, slow):
    owner = visit(slow, seed=8, heads=4, learning_rate=0.02).press("run_start").until("training")
    guest = visit({"run": owner.run.id})
    assert guest.run is owner.run
    assert "training" in guest.status
    assert {key: guest.value(key) for key in KEYS} == {key: owner.value(key) for key in KEYS}
    assert guest.value("seed") == 8
    assert guest.value("width") == 8
    assert not guest.says("**Changed:**")
    assert listed(guest) == [owner.run.id]
    assert REGISTRY.listed() == [owner.run]  # and no other model was built


def test_a_guest_may_edit_settings_without_touching_the_run_of_the_owner(visit, slow):
    owner = visit(slow).press("run_start").until("training")
    guest = visit({"run": owner.run.id}).fill({"seed": 5, "steps": 2})
    guest.press("run_start").until("finished")
    assert guest.run is not owner.run
    assert guest.run.view.after == owner.run.id
    assert owner.run.view.state == "training"
    assert owner.look().run.config.seed == 0


def test_a_follower_sees_the_owner_s_step_until_they_choose_a_step_of_their_own(visit):
    owner = visit(steps=25).press("run_start").until("finished")
    guest = visit({"run": owner.run.id})
    assert guest.player["mayFollow"]
    assert guest.player["first"]["follow"]
    for step in (2, 7, None):
        owner.go_to_step(step)
        assert guest.look().player["first"]["step"] == guest.news["owner"] == step
        assert "step" not in guest.link  # so that a reload still follows
    owner.go_to_step(3)
    guest.choose(word="cat", step=7)  # sent before the owner's new step arrived
    assert (guest.player["first"]["follow"], guest.player["first"]["step"]) == (True, 3)
    guest.go_to_step(11)
    assert (guest.player["first"]["follow"], guest.player["first"]["step"]) == (False, 11)
    assert guest.link["step"] == "11"
    assert owner.look().player["first"]["step"] == 3
    guest.choose(follow=True)
    assert guest.player["first"]["step"] == 3
    assert not owner.player["mayFollow"]
    owner.choose(follow=True)
    assert not owner.player["first"]["follow"]  # an owner follows no other visitor


def test_a_refusal_is_not_shown_on_another_run(visit, monkeypatch):
    monkeypatch.setattr(REGISTRY, "limits", Limits(per_visitor=1))
    visitor = visit(seed=1).press("run_start").until("finished")
    first = visitor.run
    visitor.fill({"steps": 100_000, "pace": "1 steps/s"}).press("run_start").wait_until(
        lambda: visitor.run is not first
    )
    visitor.set("seed", 2).press("run_start")
    assert visitor.says("You have ")
    visitor.set("own_word", "caf3").press("add_word")
    assert visitor.says("Only the letters a to z")
    visitor.press(f"show_{first.id}")
    assert visitor.errors == []


def test_choosing_a_run_on_ask_asks_one_of_the_tracked_words_of_that_run(visit):
    visitor = visit(seed=1).press("run_start").until("finished")
    first = visitor.run
    visitor.set("task", "zh-en").set("steps", 1).press("run_start").wait_until(
        lambda: visitor.run is not first
    )
    visitor.until("finished").go("ask")
    assert visitor.value("explore_text") == visitor.run.questions[0].text
    visitor.press(f"show_{first.id}")
    assert visitor.errors == []
    assert visitor.value("explore_text") == first.questions[0].text


def test_two_visitors_with_a_run_each_see_only_their_own_in_the_list(visit):
    one, two = visit(seed=1), visit(seed=2)
    assert one.run is not two.run  # nor do they share an untrained model
    one.press("run_start").until("finished")
    two.press("run_start").until("finished")
    assert listed(one.look()) == [one.run.id]
    assert listed(two.look()) == [two.run.id]


def test_the_owner_can_name_a_run_in_the_list_for_every_visitor(visit):
    owner = visit(seed=1).press("run_start").until("finished")

    def label(visitor):
        return visitor.at.button(key=f"show_{owner.run.id}").label

    owner.set("run_name", "my *first* run")
    assert label(owner) == "✔ **my \\*first\\* run** · finished at 3 · 0 of 100 right"
    guest = visit({"run": owner.run.id})
    assert label(guest) == label(owner)
    assert "run_name" not in guest.keys
    owner.set("run_name", 41 * "a")
    assert owner.errors == ["The name has 41 letters; use at most 40."]
    assert owner.run.view.name == "my *first* run"
    owner.set("run_name", "")
    assert owner.errors == []
    assert label(owner) == "✔ Reverse words · finished at 3 · 0 of 100 right"


def test_the_list_shows_the_newest_first_and_a_click_brings_a_run_back_with_its_settings(visit):
    visitor = visit(seed=1).press("run_start").until("finished")
    first = visitor.run
    visitor.fill({"seed": 2, "width": 16}).press("run_start").wait_until(lambda: visitor.run is not first)
    visitor.until("finished")
    second = visitor.run
    assert listed(visitor) == [second.id, first.id]
    visitor.press(f"show_{first.id}")
    assert visitor.run is first
    assert visitor.at.query_params["run"] == first.id
    assert (visitor.value("seed"), visitor.value("width")) == (1, 8)
    assert not visitor.says("**Changed:**")
    assert second.view.state == "finished"


def test_the_preset_of_a_run_comes_back_with_its_settings(visit):
    visitor = visit({}, preset="One head", steps=1).set("preset", "One layer each").set("steps", 1)
    visitor.press("run_start").until("finished")
    one_layer = visitor.run
    assert one_layer.config.recipe == "One layer each"
    visitor.set("preset", "Reverse words").set("steps", 2).press("run_start")
    visitor.wait_until(lambda: visitor.run is not one_layer).until("finished")
    plain = visitor.run
    for run, preset in ((one_layer, "One layer each"), (plain, "Reverse words")):
        visitor.press(f"show_{run.id}")
        assert visitor.value("preset") == preset
        assert visitor.value("layers_decoder") == run.config.model.n_decoder_layers
        assert visit({"run": run.id}).value("preset") == preset


def test_the_links_to_share_lead_to_this_run_and_to_these_settings(visit):
    visitor = visit(seed=4, goal="90%")
    (settings,) = [code.value for code in visitor.at.code]
    assert dict(parse_qsl(urlsplit(settings).query)) == {
        k: str(v) for k, v in (TINY | {"seed": 4, "goal": "90%"}).items()
    }
    assert visit(dict(parse_qsl(urlsplit(settings).query))).run.config == visitor.run.config
    visitor.press("run_start").until("finished")
    run, again = [selection_of(code.value) for code in visitor.at.code]
    assert run == {"run": visitor.run.id}
    assert not visitor.says("This address works on this machine only")  # the test's address is unknown
    assert "run" not in again
    assert "owner" not in again
    guest = visit(run)
    assert guest.run is visitor.run
    assert "owner_show" not in guest.keys


@pytest.fixture
def second(visit):
    """A visitor with two finished runs; the second, started after the first, is on the screen."""
    owner = visit(seed=1).press("run_start").until("finished")
    first = owner.run
    return (
        owner.set("seed", 2).press("run_start").wait_until(lambda: owner.run is not first).until("finished")
    )


def ghost(visitor):
    """Return the losses of an earlier run that are drawn behind those of this one."""
    losses = (visitor.player["ghost"] or {"0.y": []})["0.y"]
    return [loss for loss in losses if loss is not None]


def test_a_shared_link_opens_its_run_and_no_other(visit, second):
    guest = visit({"run": second.run.id})
    assert listed(guest) == [second.run.id]
    assert guest.says("Runs that you opened")
    assert second.says("Your runs")
    assert len(ghost(guest)) == 0
    assert not [key for key in guest.keys if key == "share_parents"]
    assert listed(second) == [second.run.id, second.run.view.after]
    assert len(ghost(second)) == 3


def test_the_owner_can_share_the_earlier_runs_too(visit, second):
    second.set("share_parents", True)
    link = next(code.value for code in second.at.code if "run=" in code.value and "owner=" not in code.value)
    guest = visit(selection_of(link))
    assert listed(guest) == listed(second)
    assert len(ghost(guest)) == 3
    guest.at.query_params.clear()  # as navigation does
    assert guest.go("masks").link["with"] == second.run.view.after


def test_a_link_names_as_many_earlier_runs_as_its_switch_says(second, monkeypatch):
    middle = second.run
    second.press("run_start").wait_until(lambda: second.run is not middle).until("finished")
    assert second.at.toggle(key="share_parents").label == "With the 2 runs before it"
    monkeypatch.setattr(selection, "MOST_BESIDE", 1)
    second.set("share_parents", True)
    assert second.at.toggle(key="share_parents").label == "With the run before it"
    link = next(code.value for code in second.at.code if "with=" in code.value)
    assert selection_of(link)["with"] == middle.id


def test_a_link_that_others_can_open_has_a_qr_code_and_the_owner_s_link_is_shown_only_on_request(
    visit, second, monkeypatch
):
    def codes():
        return [html.proto.body for html in second.at.get("html") if "class='hl-code'" in html.proto.body]

    address = "http://127.0.0.1:8501/"
    monkeypatch.setattr(ContextProxy, "url", property(lambda self: address))
    second.go("watch")
    assert codes() == []  # on a phone this address would mean the phone itself
    address = "http://stage.example:8501/"
    second.go("watch")
    link = next(code.value for code in second.at.code if "run=" in code.value)
    (shown,) = codes()
    assert segno.make(link, error="m").svg_data_uri(scale=8, border=4, light="white") in unescape(shown)
    assert not any("owner=" in code.value for code in second.at.code)
    second.press("owner_show")
    owner = next(code.value for code in second.at.code if "owner=" in code.value)
    assert selection_of(owner)["owner"] == second.at.session_state["tokens"][second.run.id]
    second.set("seed", 4)
    assert not any("owner=" in code.value for code in second.at.code)


def selection_of(link):
    """Return the parameters of a link."""
    return dict(parse_qsl(urlsplit(link).query))


def test_a_guest_who_starts_a_run_from_another_sees_that_run_and_not_the_ones_before_it(visit, second):
    guest = visit({"run": second.run.id}).set("seed", 3).press("run_start")
    own = guest.wait_until(lambda: guest.run is not second.run).until("finished").run
    token = guest.at.session_state["tokens"][own.id]
    again = visit({"run": own.id, "owner": token})
    assert listed(again) == [own.id, second.run.id]


def test_the_run_and_the_list_stay_the_same_on_every_page(visit):
    visitor = visit().press("run_start").until("finished")
    run = visitor.run
    for page in ("masks", "data", "watch"):
        visitor.at.query_params.clear()  # as navigation does
        visitor.go(page)
        assert visitor.run is run
        assert visitor.link["run"] == run.id
        assert listed(visitor) == ([] if page == "data" else [run.id])

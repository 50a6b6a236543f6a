"""Choices made in the browser, mainly the step: adopted, kept in the link, and used on every page."""

from __future__ import annotations

import numpy as np
import pytest

from tests.pages.conftest import LONG
from transformer.runs.registry import REGISTRY


@pytest.fixture
def trained(revisit):
    """The Watch page of a finished run of 25 steps."""
    return revisit(steps=25)


def chosen(visitor, *names):
    first = visitor.player["first"]
    return tuple(first[name] for name in names)


def step(visitor):
    """Return the step on the screen; None is LIVE."""
    return visitor.player["first"]["step"]


def test_every_choice_in_the_player_is_adopted_and_returned_to_it(trained):
    choice = {
        "word": "kayak",
        "kind": "encoder",
        "pinned": ["encoder.0", 1],
        "step": 7,
        "outline": True,
    }
    trained.choose(**choice)
    assert chosen(trained, *choice) == tuple(choice.values())
    assert trained.go("ask").go("watch").player["first"] == choice | {"follow": False}
    trained.choose(pinned=None, step=None, outline=False)
    assert chosen(trained, "pinned", "step", "outline") == (None, None, False)


FORGED = [
    *(None, 7, "step", [], [5], True),
    *({"step": value} for value in (-1, 10**9, 2.5, True, "5", [5], {"step": 5})),
    *({"word": value} for value in ("zebra", "", 5, ["cat"], {"cat": 1}, "<script>")),
    *({"kind": value} for value in ("sideways", "sequence", None, ["cross"], 5)),
    *({"pinned": value} for value in (["decoder.0.cross", 2], ["decoder.0.cross", -1], ["encoder.7", 0])),
    *({"pinned": value} for value in ("decoder.0.cross", ["decoder.0.cross"], [0, "encoder.0"], {"a": 1})),
    *({"outline": value} for value in ("yes", 1, [True])),
    *({"follow": value} for value in (True, 1, "yes")),
    *({"number": value} for value in ("1", None, 10**30, [1])),
]


@pytest.mark.parametrize(
    "page",
    ["watch", "inside", *(pytest.param(page, marks=pytest.mark.slow) for page in ("ask", "masks"))],
)
def test_a_forged_choice_changes_nothing(trained, page):
    trained.go(page).choose(step=3)
    before = trained.player["first"]
    for forged in FORGED:
        trained.send_choice(before | forged if isinstance(forged, dict) else forged)
        assert trained.player["first"] == before, forged
        assert trained.errors == []
    assert trained.look().player["first"] == before
    assert trained.link["step"] == "3"


def test_a_click_on_a_cell_that_does_not_exist_opens_nothing(trained):
    for cell in (
        *(None, 5, [], {}, {"at": {"kind": "cross"}}),
        {"at": {"kind": "cross"}, "head": ["decoder.0.cross", 2], "point": [0, 0]},
        {"at": {"kind": "encoder"}, "head": ["decoder.0.cross", 0], "point": [0, 0]},
        {"at": {"kind": "cross"}, "head": ["decoder.0.cross", 0], "point": [0.5, 0]},
    ):
        trained.send("player", "cell", cell)
        assert trained.errors == []
        assert "box" not in trained.link
    trained.go("ask").send("player", "cell", {"at": {"kind": "cross"}})
    assert trained.errors == []


@pytest.mark.parametrize("page", ["ask", "masks", "inside"])
def test_a_page_with_figures_made_on_the_server_shows_the_chosen_step_and_names_it(trained, page):
    trained.go_to_step(15).go(page)
    for at in (15, 4, 24):
        trained.go_to_step(at)
        assert step(trained) == trained.player["answers"] == at
        assert trained.link["step"] == str(at)
        if page == "ask":
            assert trained.drawn("explore_map_figure").step == at
            assert f"· step {at} ·" in trained.drawn("explore_map_figure").changing["title.text"]
        assert trained.news["newest"] == 25
    trained.go_to_step(None)
    assert step(trained) is None
    assert "step" not in trained.link
    assert trained.player["answers"] == 25


def test_the_same_step_can_be_chosen_again_after_live(trained):
    trained.go("ask").go_to_step(5).go_to_step(None).go_to_step(5)
    assert step(trained) == trained.player["answers"] == 5


def test_a_page_is_drawn_again_when_a_newer_step_is_requested(visit, slow):
    visitor = visit(slow).set("step_size", 3).step().go("ask")
    assert visitor.player["answers"] == 3
    visitor.run.advance(2).result(30)
    visitor.wait_until(lambda: visitor.run.view.step == 5).choose()
    assert visitor.player["answers"] == visitor.drawn("explore_map_figure").step == 5


def test_playback_on_ask_shows_each_step_and_does_not_change_the_link(trained):
    trained.go("ask").go_to_step(4)
    for at in (5, 6, 7):
        trained.choose(step=at, playing=True)
        assert trained.player["answers"] == at
        assert trained.link["step"] == "4"  # so that Back does not step through the playback
    assert trained.choose(step=7).link["step"] == "7"


def test_a_link_shows_the_same_step_to_every_visitor(visit):
    trained = visit(LONG, pace="20 steps/s").press("run_start").until("training").go_to_step(3)
    guest = trained.__class__(trained.link, {})
    assert guest.run is trained.run
    assert chosen(guest, "step", "follow") == (3, False)
    before = trained.run.view.step
    trained.wait_until(lambda: trained.run.view.step >= before + 5)
    assert step(trained) == step(guest.look()) == 3  # a past step stays on the screen


def test_a_forged_step_in_a_link_does_no_harm(trained):
    for asked in ("abc", "-1", str(10**30), "²"):
        guest = trained.__class__({"run": trained.run.id, "step": asked}, {})
        assert guest.errors == [], asked
        assert step(guest) is None, asked
        assert "step" not in guest.link, asked


def test_a_nearer_snapshot_added_later_changes_no_answer_about_a_past_step(visit):
    visitor = visit(LONG).set("step_size", 8).step()
    run = visitor.run
    run._published.note(snapshots=run.view.snapshots[:6])  # the newest snapshots are not published yet
    visitor.go("ask").go_to_step(8)
    before = visitor.drawn("explore_map_figure").arrays["0.z"]
    assert visitor.says("Step 8 has no snapshot: the model of step **5** answers.")
    run.advance(4).result(10)
    visitor.wait_until(lambda: run.view.step == run.view.snapshots[-1].step == 12)
    assert visitor.says("Step 8 has no snapshot: the model of step **5** answers.")
    np.testing.assert_array_equal(visitor.drawn("explore_map_figure").arrays["0.z"], before)
    visitor.go_to_step(None).go_to_step(8)
    assert "· step 8 ·" in visitor.drawn("explore_map_figure").changing["title.text"]


def test_another_run_is_shown_at_its_newest_step(visit):
    visitor = visit(steps=25).press("run_start").until("finished")
    first = visitor.run
    visitor.go_to_step(10).set("seed", 5).press("run_start").wait_until(lambda: visitor.run is not first)
    visitor.until("finished")
    assert step(visitor) is None
    visitor.go_to_step(4).press(f"show_{first.id}")
    assert visitor.run is first
    assert step(visitor) is None
    assert "step" not in visitor.link
    visitor.go_to_step(4)  # the same step as was last chosen in the other run
    assert step(visitor) == 4


def test_a_started_run_is_shown_live_whatever_step_the_link_names(visit):
    visitor = visit(step=2).press("run_start").until("finished")
    assert step(visitor) is None


def test_the_step_in_a_link_to_a_missing_run_is_dropped(visit):
    visitor = visit({"run": "gone", "step": "12"})
    assert visitor.says("The run of this link is no longer on this server.")
    assert step(visitor) is None
    assert "step" not in visitor.link


def test_looking_back_asking_and_playing_do_not_change_the_losses(visit, trained_alone):
    visitor = visit(LONG, pace="20 steps/s").press("run_start").until("training")
    run = visitor.run
    visitor.wait_until(lambda: run.view.step >= 5).go_to_step(3)
    visitor.go("ask").set("explore_text", "zebra").press("explore_next").set("explore_input", "free")
    visitor.choose(step=4, playing=True).tab("Break").set("ablate_heads", ["cross 1 · head 1"])
    visitor.press("block_add").tab("Measure").go_to_step(5).go_to_step(None)
    visitor.go("masks").go_to_step(2).go("watch").press("run_stop").until("stopped")
    assert REGISTRY.listed() == [run]
    losses = run.view.metrics.column("loss").tolist()
    assert len(losses) == run.view.step >= 5
    assert losses == trained_alone(run.config, len(losses))

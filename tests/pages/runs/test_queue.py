"""Many visitors of one server: pages show the queue and why they refuse; forged values change nothing."""

from __future__ import annotations

import threading

import pytest

from transformer.runs.limits import Limits
from transformer.runs.registry import REGISTRY, Registry


@pytest.fixture
def limits(monkeypatch):
    """Set the limits of the server."""

    def put(**limits):
        monkeypatch.setattr(REGISTRY, "limits", Limits(**limits))
        monkeypatch.setattr(REGISTRY.queue, "slots", REGISTRY.limits.training)

    return put


def test_a_waiting_visitor_sees_the_place_in_line_move_until_the_run_begins(visit, slow, limits):
    limits(training=1)
    first = visit(slow, seed=1).press("run_start").until("training")
    second = visit(slow, seed=2).press("run_start").wait_until(lambda: REGISTRY.listed()[0].place)
    third = visit(slow, seed=3).press("run_start").wait_until(lambda: REGISTRY.listed()[0].place)
    assert "◌ queued · waiting: place 2 of 2" == third.status
    assert third.headline == (
        "Waiting: place 2 of 2. This server trains 1 at a time; this run goes on by itself when it is "
        "its turn."
    )
    assert second.look().headline.startswith("Waiting: place 1 of 2.")
    assert "Waiting" not in first.look().headline
    assert third.enabled("run_pause")
    assert third.enabled("run_stop")
    first.press("run_stop").until("stopped")
    second.until("training")
    assert "waiting" not in second.status
    assert "Waiting" not in second.headline
    assert third.headline.startswith("Waiting: place 1 of 1.")
    third.press("run_stop").until("stopped")
    assert "Waiting" not in third.headline


def test_a_returning_visitor_sees_why_the_run_was_paused(visit, slow):
    visitor = visit(slow).press("run_start").until("training")
    visitor.run.lease.seen_at -= 10 * 60
    visitor.until("paused")
    assert visitor.headline.endswith(
        f"Paused at step {visitor.run.view.step:,}: no page has shown it for 10 minutes. Press Resume."
    )
    visitor.press("run_start").until("training")
    assert "no page has shown it" not in visitor.headline


@pytest.mark.parametrize(
    ("allowed", "key", "value", "message"),
    [
        (
            {"steps": 300},
            "steps",
            301,
            "301 steps are too many for this server; choose at most 300 in total.",
        ),
        ({"memory_mb": 50}, "batch_size", 4096, "This model needs about "),
    ],
)
def test_a_value_beyond_a_limit_is_refused_beside_its_box_even_if_start_is_forged(
    visit, limits, allowed, key, value, message
):
    limits(**allowed)
    visitor = visit(layers_encoder=2, layers_decoder=2)
    draft, good = visitor.run, visitor.value(key)
    visitor.set(key, value)
    (answer,) = visitor.errors
    assert answer.startswith(message)
    assert not visitor.enabled("run_start")
    visitor.at.session_state["requests"] = {"start": None}  # as if the disabled button had been pressed
    visitor.look()
    assert visitor.run is draft
    assert draft.view.state == "idle"
    assert REGISTRY.listed() == []
    visitor.set(key, good)
    assert visitor.errors == []
    assert visitor.enabled("run_start")


def test_one_run_too_many_is_refused_in_place_builds_nothing_and_leaves_the_others_alone(visit, slow, limits):
    limits(per_visitor=1)
    visitor = visit(slow).press("run_start").until("training")
    run, threads = visitor.run, threading.active_count()
    visitor.set("seed", 5).press("run_start")
    (answer,) = visitor.errors
    assert answer.startswith("You have 1 of 1 unfinished runs allowed on this server. ")
    assert visitor.run is run
    assert run.view.state == "training"
    assert threading.active_count() <= threads
    assert visit(seed=6).press("run_start").until("finished").errors == []  # the limit is per visitor
    visitor.press("run_stop").until("stopped")
    visitor.fill({"steps": 2, "pace": "as fast as it can"}).press("run_start").until("finished")
    assert visitor.errors == []
    assert visitor.run is not run


def test_a_reloaded_page_counts_the_runs_whose_tokens_its_browser_kept(visit, slow, limits):
    limits(per_visitor=1)
    visitor = visit(slow).press("run_start").until("training")
    token = visitor.value("tokens")[visitor.run.id]
    again, other = visit(seed=5), visit(seed=6)
    again.send("keyring", "found", [[[visitor.run.id, token, 0]], "", None])
    other.send("keyring", "found", [[[visitor.run.id, "x" * 22, 0]], "", None])
    again.press("run_start")
    assert again.errors[0].startswith("You have 1 of 1 unfinished runs allowed on this server. ")
    assert other.press("run_start").until("finished").errors == []  # a wrong token does not count
    visitor.press("run_stop").until("stopped")
    assert again.press("run_start").until("finished").errors == []


def test_continuing_a_finished_run_counts_as_another_unfinished_run(visit, slow, limits):
    limits(per_visitor=1)
    visitor = visit().press("run_start").until("finished")
    ended = visitor.run
    visitor.fill({"seed": 5, "pace": "1 steps/s", "steps": 300}).press("run_start")
    visitor.until("training").press(f"show_{ended.id}").press("run_continue")
    assert visitor.errors[0].startswith("You have 1 of 1 unfinished runs")
    assert ended.view.state == "finished"


def test_a_single_step_counts_as_another_unfinished_run(visit, slow, limits):
    limits(per_visitor=1)
    visitor = visit(slow).set("seed", 3).press("run_start").until("training")
    again = visit(seed=7, session={"visitor": visitor.value("visitor")})
    again.press("run_step")
    assert again.errors[0].startswith("You have 1 of 1 unfinished runs")
    assert again.run.view.step == 0
    assert again.run.view.state == "idle"


def test_an_invalid_limit_is_reported_on_the_page(visit, monkeypatch):
    monkeypatch.setenv("HEADLIGHT_TRAINING", "two")
    problem = Registry().problem
    assert problem == (
        "A limit of this server is invalid. HEADLIGHT_TRAINING=two cannot be used; choose a whole number "
        "from 1 to 64, or leave it out for the default, 2. Then restart the server."
    )
    assert Registry().limits == Limits()
    monkeypatch.setattr(REGISTRY, "problem", problem)
    assert visit().errors == [problem]

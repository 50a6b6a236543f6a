"""The time machine: one step control for every panel of every page. The past stands still."""

from __future__ import annotations

import re

import numpy as np
import pytest
import streamlit as st

from pages.parts import time_control
from pages.parts.plain import plain
from tests.pages.conftest import LONG
from transformer.evaluation import Evaluation
from transformer.figures.curves import PINS
from transformer.interventions import Interventions
from transformer.recording import frames
from transformer.runs.registry import REGISTRY


@pytest.fixture
def trained(visit):
    """The Watch page of a run that has finished its 25 steps."""
    visitor = visit(steps=25).press("run_start").until("finished")
    assert visitor.run.view.frames.steps == (*range(26),)
    return visitor


@pytest.fixture
def training(visit):
    """The Watch page of a run that goes on and on, and leaves the processor to the test."""
    visitor = visit(LONG, pace="20 steps/s").press("run_start").until("training")
    return visitor.once(lambda: visitor.run.view.frame.step >= 10)


def number(visitor, pattern):
    """The number in the only text that has this pattern."""
    (found,) = {match for text in visitor.texts for match in re.findall(pattern, text)}
    return int(found.replace(",", ""))


def panels(visitor):
    """The step that each panel of Watch shows."""
    large, curves = visitor.drawn("live_map_figure"), visitor.drawn("live_curves_figure").changing
    marker = curves["shapes[0].x0"] if curves["shapes[0].visible"] else None
    assert curves["shapes[0].x1"] == curves["shapes[0].x0"]
    return {
        "large map": large.step,
        "its title": int(re.search(r"step ([\d,]+)", large.changing["title.text"])[1].replace(",", "")),
        "strip": visitor.drawn("live_maps_figure").step,
        "outputs": number(visitor, r"hl-outputs' data-step='(\d+)'"),
        "handle": visitor.slider["at"],
        "marker": marker,
    }


def test_the_past_stands_still_in_every_panel_while_the_run_goes_on(training):
    training.stand(5)
    run, before = training.run, training.run.view.step
    shown = []
    for more in (3, 9, 20):
        training.once(lambda more=more: run.view.frame.step >= before + more)
        shown.append(panels(training))
        assert training.badge == ":blue-badge[REVIEW] step **5** of 100,000, training continues"
        assert "**training**" in training.status
    assert shown == [dict.fromkeys(shown[0], 5)] * 3
    assert run.view.frame.evaluation.step >= 25  # there is a newer count, and it is not shown
    assert number(training, r"held-out words, at step (\d+)") == 0
    frame = run.view.frame_at(5)
    assert training.says("**At step 5** the clearest head")
    site, head = frame.clearest
    np.testing.assert_allclose(
        training.drawn("live_map_figure").arrays["0.z"], frame.map(0, site)[head], atol=1e-4
    )
    assert training.slider["live"] is False
    assert before + 20 <= training.slider["steps"][-1] <= run.view.frame.step  # the track goes on growing


def test_words_right_and_right_by_length_are_the_newest_counted_at_the_step(trained):
    losses = {"loss": 1.0, "free_loss": 1.0, "token_accuracy": 0.5}
    counted = [
        Evaluation(step=k, right=k, total=200, by_length={4: (k, 25)}, **losses) for k in (0, 3, 19, 25)
    ]
    trained.run._published.publish(frames=trained.run.view.frames.extended(counted))
    for step, known in ((20, 19), (3, 3), (2, 0), (25, 25)):
        trained.stand(step)
        assert trained.says(f"<b>{known}</b> / 200<em>held-out words, at step {known}")
        assert trained.says(f"<span title='length 4: {known} of 25 right'>")
        assert panels(trained) == dict.fromkeys(panels(trained), step) | {
            "marker": None if step == 25 else step  # the newest is LIVE
        }


def test_live_comes_back_to_the_newest_step_and_follows(training):
    training.stand(5).press("time_live")
    run = training.run
    for more in (0, 4):
        least = run.view.frame.step
        training.once(lambda least=least, more=more: run.view.frame.step >= least + more)
        newest = run.view.frame.step
        shown = panels(training)
        assert shown.pop("marker") is None
        assert len(set(shown.values())) == 1
        assert least <= shown["handle"] <= newest
    assert training.badge == ":red-badge[● LIVE]"
    assert training.slider["live"] is True
    assert "step" not in training.link
    training.press("run_stop").until("stopped")
    assert training.badge == ":gray-badge[newest step]"


def test_who_moves_the_handle_to_the_newest_step_follows_the_run(trained):
    trained.stand(10)
    assert trained.badge == ":blue-badge[REVIEW] step **10** of 25, finished"
    trained.stand(25)
    assert trained.badge == ":gray-badge[newest step]"


@pytest.mark.parametrize("page", ["masks", "explore"])
def test_the_step_is_the_same_on_every_page(trained, page):
    trained.stand(15).go(page)
    assert trained.badge == ":blue-badge[REVIEW] step **15** of 25, finished"
    assert trained.link["step"] == "15"
    figure = {"masks": "mask_weights_figure", "explore": "explore_map_figure"}[page]
    assert trained.drawn(figure).step == 15
    drawn = trained.drawn(figure)
    assert "step 15" in drawn.changing.get("title.text", drawn.layout["title"]["text"])
    trained.stand(4)  # and it is one control
    assert trained.drawn(figure).step == 4
    assert panels(trained.go("train")) == dict.fromkeys(panels(trained), 4)
    trained.go(page).press("time_live")
    assert trained.drawn(figure).step == 25


def test_a_link_shows_the_same_step_to_everyone(training):
    training.stand(3).press("run_pause").until("paused")
    guest = training.__class__(training.link, {})
    assert guest.run is training.run
    assert panels(guest) == panels(training) == dict.fromkeys(panels(guest), 3)
    np.testing.assert_array_equal(
        guest.drawn("live_map_figure").arrays["0.z"], training.drawn("live_map_figure").arrays["0.z"]
    )
    assert guest.badge == ":blue-badge[REVIEW] step **3** of 100,000, paused"


@pytest.mark.parametrize("step", ["abc", "-1", str(10**30), "1e3", "²", "", "3.5", "None"])
def test_a_forged_step_does_no_harm(trained, step):
    guest = trained.__class__({"run": trained.run.id, "step": step}, {})
    assert guest.errors == []
    assert guest.badge == ":gray-badge[newest step]"
    assert guest.drawn("live_map_figure").step == 25
    assert "step" not in guest.link


def test_a_step_far_beyond_the_end_shows_the_last(trained):
    guest = trained.__class__({"run": trained.run.id, "step": "999999999"}, {})
    assert guest.errors == []
    assert guest.drawn("live_map_figure").step == guest.slider["at"] == 25
    assert guest.badge == ":blue-badge[REVIEW] step **25** of 25, finished"


def test_a_step_that_is_still_to_come_is_not_waited_for(training):
    guest = training.__class__({"run": training.run.id, "step": "99999"}, {})
    first = guest.slider["at"]
    assert guest.link["step"] == str(first)
    guest.once(lambda: guest.run.view.frame.step >= first + 10)
    assert panels(guest) == dict.fromkeys(panels(guest), first)


def test_a_step_that_the_run_forgets_meanwhile_stays_on_the_screen(trained, monkeypatch):
    trained.stand(15)
    before = trained.drawn("live_map_figure").arrays["0.z"]
    monkeypatch.setattr(frames, "DENSE", 1)
    known = trained.run.view.frames
    trained.run._published.publish(frames=known.thinned(set(), limit=known.nbytes - 1))
    assert panels(trained.look()) == dict.fromkeys(panels(trained), 15)
    np.testing.assert_array_equal(trained.drawn("live_map_figure").arrays["0.z"], before)
    trained.stand(20).stand(15)  # asked once more, it is gone: the nearest one is shown
    nearest = min(trained.run.view.frames.steps, key=lambda step: abs(step - 15))
    assert nearest in (14, 16)
    assert panels(trained) == dict.fromkeys(panels(trained), nearest)


def test_a_word_typed_at_the_end_of_a_film_is_shown(trained):
    trained.press("time_play")
    while trained.value("playing"):
        trained.look()
    assert "REVIEW" in trained.badge
    trained.set("own_word", "owl").once(lambda: trained.run.view.frame.row_of("owl") > 0)
    labels = trained.drawn("live_map_figure").layout["xaxis"]["ticktext"]
    assert [label.replace("<br>", "") for label in labels] == ["[SOS]", *"owl", "[EOS]"]
    assert panels(trained)["large map"] == 25


def test_a_nearer_snapshot_that_comes_later_changes_no_answer_about_the_past(visit):
    visitor = visit(LONG).set("step_size", 8).step()
    run = visitor.run
    run._published.note(snapshots=run.view.snapshots[:6])  # the newest steps are still to be looked at
    visitor.go("explore").set("explore_step", 8)
    before = visitor.drawn("explore_map_figure").arrays["0.z"]
    assert visitor.says("The weights of step 8 are not kept: step **5** answers.")
    run.advance(4).wait(10)
    visitor.once(lambda: run.view.step == run.view.snapshots[-1].step == 12)
    assert visitor.says("The weights of step 8 are not kept: step **5** answers.")
    np.testing.assert_array_equal(visitor.drawn("explore_map_figure").arrays["0.z"], before)
    visitor.press("time_live").set("explore_step", 8)
    assert visitor.says("The model of step **8** answers.")


def test_the_film_shows_every_frame_once_and_ends_with_the_last(trained):
    steps = [frame.step for frame in trained.run.view.frames]
    trained.press("time_play")
    shown = [panels(trained)["large map"]]
    assert trained.value("playing")
    while trained.look().value("playing"):
        shown.append(panels(trained)["large map"])
        assert len(shown) <= len(steps)
    assert shown == steps
    assert trained.slider["at"] == steps[-1]
    trained.look()
    assert panels(trained) == dict.fromkeys(panels(trained), 25)
    assert "REVIEW" in trained.badge
    trained.press("time_play")  # from the end it begins again
    assert trained.slider["at"] == 0


def test_the_film_stops_and_goes_on_where_it_stands(trained):
    first, second, third, *_ = [frame.step for frame in trained.run.view.frames if frame.step > 4]
    trained.stand(4).press("time_play")
    assert trained.slider["at"] == first
    assert trained.look().slider["at"] == second
    trained.press("time_play")
    assert [trained.look().slider["at"] for _ in range(3)] == [second] * 3
    assert trained.press("time_play").slider["at"] == third
    trained.stand(2)  # a hand on the control stops it too
    assert [trained.look().slider["at"] for _ in range(2)] == [2, 2]
    trained.press("time_play").press("time_live")
    assert trained.look().badge == ":gray-badge[newest step]"


def test_the_film_plays_on_every_page(trained):
    steps = [frame.step for frame in trained.run.view.frames if frame.step > 4]
    trained.stand(4).press("time_play").go("masks")
    shown = [trained.drawn("mask_weights_figure").step, trained.look().drawn("mask_weights_figure").step]
    assert shown == steps[1:3]
    trained.go("explore")
    assert trained.drawn("explore_map_figure").step == steps[3]


def test_an_untrained_model_has_no_film(visit):
    assert not visit().enabled("time_play")


@pytest.mark.parametrize(
    ("speed", "seconds"), [("2 frames/s", 0.5), ("5 frames/s", 0.2), ("10 frames/s", 0.1)]
)
def test_the_film_moves_on_as_fast_as_chosen(monkeypatch, speed, seconds):
    monkeypatch.setattr(st, "session_state", {"playing": True, "time_speed": speed})
    assert time_control.seconds_between_frames() == seconds
    st.session_state["playing"] = False
    assert time_control.seconds_between_frames() is None


def test_the_speed_stays_on_other_pages_and_a_forged_one_does_no_harm(trained):
    trained.set("time_speed", "10 frames/s")
    for page in ("explore", "masks", "train"):
        trained.go(page)
        assert trained.value("time_speed") == "10 frames/s"
        assert trained.at.selectbox(key="time_speed").value == "10 frames/s"
    trained.forge("time_speed", "10**9 frames/s")
    assert trained.press("time_play").errors == []


def test_a_moment_is_a_button_and_a_pin_and_both_go_to_its_step(visit):
    visitor = visit(LONG).set("step_size", 3).step()
    taken = Interventions(ablated=(("decoder.0.cross", 1),))
    assert visitor.run.intervene(taken).wait(10)
    visitor.step()
    (moment,) = visitor.run.view.moments
    assert visitor.slider["moments"] == [[3, moment.text]]
    assert visitor.at.button(key="moment_0").label == f"step 3 · {plain(moment.text)}"
    visitor.press("moment_0")
    assert panels(visitor) == dict.fromkeys(panels(visitor), 3)
    assert visitor.says("★ Ablated decoder layer 1 (cross), head 2.")
    visitor.press("time_live")
    assert panels(visitor)["handle"] == 6
    visitor.click("live_curves_figure", PINS, 0)
    assert panels(visitor) == dict.fromkeys(panels(visitor), 3)
    visitor.press("time_live").click("live_curves_figure", 0, 0)  # another curve is no pin
    assert panels(visitor)["handle"] == 6
    visitor.stand(1)
    assert visitor.says("Next moment, step 3: ablated decoder layer 1 (cross), head 2.")


def test_another_run_is_shown_at_its_newest_step(trained):
    first = trained.run
    trained.stand(10).set("seed", 5).press("run_start").once(lambda: trained.run is not first)
    trained.until("finished")
    assert trained.badge == ":gray-badge[newest step]"
    trained.stand(4).press(f"show_{first.id}")
    assert trained.run is first
    assert trained.badge == ":gray-badge[newest step]"
    assert "step" not in trained.link


def test_who_starts_a_run_follows_it_whatever_the_link_said(visit):
    visitor = visit(step=2)
    assert visitor.drawn("live_map_figure").step == 0
    visitor.press("run_start").until("finished")
    assert visitor.badge == ":gray-badge[newest step]"


def test_the_step_of_a_run_that_is_gone_is_forgotten(visit):
    visitor = visit({"run": "gone", "step": "12"})
    assert visitor.says("The run of this link is no longer on this server.")
    assert visitor.badge == ":gray-badge[newest step]"
    assert "step" not in visitor.link


def test_looking_back_asking_and_playing_leave_the_losses_as_they_are(training, trained_alone):
    run = training.run
    training.stand(3).press("time_play").look()
    training.go("explore").set("explore_text", "zebra").press("explore_next").set("explore_input", "free")
    training.tab("Break").set("ablate_heads", ["dec 1 cross · head 1"]).press("block_add")
    training.tab("Measure").stand(5).press("time_live")
    training.go("masks").stand(2).go("train").press("run_stop").until("stopped")
    assert REGISTRY.listed() == [run]
    losses = run.view.metrics.column("loss").tolist()
    assert len(losses) == run.view.step >= 7
    assert losses == trained_alone(run.config, len(losses))

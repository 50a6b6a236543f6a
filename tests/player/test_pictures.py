"""The curves of a run, and the roles of its heads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from transformer.player.index import drawn
from transformer.player.pictures import ghost_of, listed, run_curves, score_picture
from transformer.recording.metrics import Metrics
from transformer.shared.interventions import Interventions


def test_the_curves_are_the_numbers_of_the_run_up_to_its_end(recorded):
    picture = run_curves(recorded)
    figure = picture.figure()
    for name, column in (
        ("training", "loss"),
        ("test (given right answer)", "held_out_loss"),
        ("test (on its own)", "free_loss"),
    ):
        (trace,) = [trace for trace in figure["data"] if trace["name"] == name]
        known = recorded.metrics.column(column)
        measured = ~np.isnan(known)
        np.testing.assert_array_equal(trace["x"], recorded.metrics.column("step")[measured])
        np.testing.assert_allclose(trace["y"], known[measured], rtol=1e-6)
    assert figure["layout"]["xaxis"]["range"][1] == 40
    stopped = run_curves(replace(recorded, state="stopped", step=30))
    assert stopped.figure()["layout"]["xaxis"]["range"][1] == 30  # no more steps follow
    going_on = run_curves(replace(recorded, state="training", planned=300))
    assert going_on.figure()["layout"]["xaxis"]["range"][1] == 300


@pytest.mark.parametrize(
    "draw", [run_curves, lambda view, marker: score_picture(view, "mirror", marker=marker)]
)
def test_a_line_marks_the_step_that_is_shown(recorded, draw):
    at = draw(recorded, marker=17).layout
    assert (at["shapes[0].x0"], at["shapes[0].x1"], at["shapes[0].visible"]) == (17, 17, True)
    assert draw(recorded, marker=None).layout["shapes[0].visible"] is False


def test_scores_are_drawn_for_every_head_that_has_them_or_for_the_given_sites(recorded):
    def lines(*asked):
        return {trace["name"]: trace for trace in score_picture(recorded, *asked).figure()["data"]}

    heads = [f"cross {layer} h{head}" for layer in (1, 2) for head in (1, 2, 3)]
    assert [name for name in lines("mirror") if name in heads] == heads
    found = lines("mirror", ["decoder.1.cross"])
    assert [name for name in found if name in heads] == heads[3:]
    measured = recorded.frames.measurements
    for head, name in enumerate(heads[3:]):
        assert found[name]["x"] == [one.step for one in measured]
        scores = [float(one.head_scores["decoder.1.cross"]["mirror"][head]) for one in measured]
        assert found[name]["y"] == scores


def test_the_curve_of_a_score_begins_where_it_was_first_measured(recorded):
    first, *others = recorded.frames.measurements
    fewer = {site: {"entropy": scores["entropy"]} for site, scores in first.head_scores.items()}
    frames = recorded.frames.extended([replace(first, head_scores=fewer)])
    picture = score_picture(replace(recorded, frames=frames), "mirror", ["decoder.1.cross"])
    (line,) = [one for one in picture.figure()["data"] if one["name"] == "cross 2 h1"]
    assert line["x"] == [other.step for other in others]


def test_a_gap_is_none_and_a_number_has_five_decimals():
    assert listed(np.array([1.0, 0.123456789, -2e-9])) == [1.0, 0.12346, 0.0]
    assert listed(np.array([np.nan, 3.0])) == [None, 3.0]


def test_the_ghost_of_a_run_is_its_curves_in_the_traces_of_the_previous_run(recorded):
    ghost, own = (
        ghost_of(recorded, replace(recorded, metrics=Metrics())),
        drawn(run_curves(recorded))["arrays"],
    )
    assert {name: ghost[name] for name in ("0.x", "0.y")} == {"0.x": own["2.x"], "0.y": own["2.y"]}
    assert set(ghost) == {"0.x", "0.y", "1.x", "1.y"}


def test_a_run_whose_curve_lies_under_that_of_the_next_has_no_ghost(recorded):
    after = replace(recorded, metrics=Metrics())
    losses = recorded.metrics.columns("loss")[0]
    for step, loss in enumerate(losses):
        assert ghost_of(recorded, after) is not None  # longer than the next so far
        after.metrics.append(step=step, seconds=step, loss=1.005 * loss)
    assert ghost_of(recorded, after) is None
    other = replace(recorded, metrics=Metrics())
    for step, loss in enumerate(losses):
        other.metrics.append(step=step, seconds=step, loss=1.02 * loss)
    assert ghost_of(recorded, other) is not None


@pytest.mark.parametrize(
    ("site", "scores", "said"),
    [
        ("decoder.0.cross", {"mirror": 0.78, "first": 0.1}, "reads backwards 78%"),
        ("decoder.0.cross", {"mirror": 0.1, "eos": 0.5}, "looks at [EOS] 50%"),
        ("decoder.0.cross", {"mirror": 0.499, "eos": 0.4}, "no clear pattern"),
        ("decoder.0.self", {"previous": 0.6, "first": 0.61}, "looks at [SOS] 61%"),
        ("encoder.0", {"diagonal": 0.8, "first": 0.1}, "looks at the same place 80%"),
    ],
)
def test_a_head_is_named_by_its_role_unless_it_is_switched_off(recorded, site, scores, said):
    frame = recorded.frames[0]
    known = frame.head_scores | {site: {name: np.array([0.0, score]) for name, score in scores.items()}}
    frame = replace(frame, step=1325, measurement=replace(frame.measurement, step=1325, head_scores=known))
    assert frame.role(site, 1) == said
    assert replace(frame, step=1340).role(site, 1) == said  # measured less often than shown
    off = replace(frame, interventions=Interventions(ablated=((site, 1),)))
    assert off.role(site, 1) == "switched off"


@pytest.mark.parametrize(("focus", "said"), [(0.73, "looks at one token 73%"), (0.49, "no clear pattern")])
def test_where_focus_is_the_aim_a_head_is_in_focus_from_the_same_threshold(recorded, focus, said):
    frame, site = recorded.frames[0], "decoder.0.cross"
    scores = {name: np.array([0.0, score]) for name, score in {"focus": focus, "first": 0.2}.items()}
    measured = replace(frame.measurement, head_scores=frame.head_scores | {site: scores})
    assert replace(frame, measurement=measured, target_score="focus").role(site, 1) == said
    assert replace(frame, measurement=measured, target_score="mirror").role(site, 1) == "no clear pattern"

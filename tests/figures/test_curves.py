"""The curves of a run: every number in its panel, thinned without bias, the previous run as a ghost."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.figures.conftest import drawn
from transformer.figures import colors
from transformer.figures.curves import MAX_POINTS, Series, curves, ghost, highest_loss, thinned

NAN = np.nan


def series(n, every=4, seed=0):
    """Return a run of n steps with six different columns, evaluated once in `every` steps."""
    rng = np.random.default_rng(seed)
    steps = np.arange(1, n + 1)
    evaluated = steps % every == 0
    return Series(
        steps=steps,
        loss=3.0 + rng.random(n),
        held_out_loss=np.where(evaluated, 2.0 + rng.random(n), NAN),
        token_accuracy=0.5 + 0.1 * rng.random(n),
        exact=np.where(evaluated, 0.1 * rng.random(n), NAN),
        free_loss=np.where(evaluated, 3.0 + rng.random(n), NAN),
    )


def picture(run, planned=300, run_id="this run", **more):
    return curves(run, planned=planned, highest_loss=3.9, run_id=run_id, **more)


def lines(made):
    """Return the lines of a figure by name, as Plotly reads them."""
    return {trace.name: trace for trace in drawn(made).data}


@pytest.mark.parametrize("n", [1, 2, 500, 501, 999, 1000, 1001, 12_345])
def test_thinning_keeps_the_mean_and_the_last_step_in_at_most_500_points(n):
    steps = np.arange(1, n + 1)
    values = np.random.default_rng(n).normal(size=n)
    x, y = thinned(steps, values)
    assert len(x) == len(y) <= MAX_POINTS == 500
    assert len(x) > n / (n // 500 + 2)  # not thinned more than necessary
    assert x[-1] == n
    in_each = np.diff(x, prepend=0)  # steps that a point stands for
    assert (in_each > 0).all()
    assert (in_each * y).sum() / n == pytest.approx(values.mean(), abs=1e-12)


def test_each_point_is_the_mean_of_several_steps_at_the_last_of_them():
    x, y = thinned(np.arange(1, 8), np.array([1.0, 3.0, 5.0, 7.0, 2.0, 2.0, 10.0]), most=3)
    assert x.tolist() == [3, 6, 7]
    assert y.tolist() == pytest.approx([3.0, 11 / 3, 10.0])
    assert thinned(np.arange(3), x, most=3)[1] is x  # values that fit are returned unchanged


def test_losses_are_in_one_panel_and_shares_in_the_other():
    made = picture(series(12), planned=240)
    layout = drawn(made).layout
    for name, line in lines(made).items():
        assert line.yaxis == ("y" if "given" in name or "right" not in name else "y2")
    assert tuple(layout.xaxis.range) == (0, 240)
    assert tuple(layout.yaxis.range) == (0, 3.9)
    low, high = layout.yaxis2.range
    assert low < 0 < 1 < high  # no share touches the frame
    assert layout.yaxis2.tickformat == ".0%"
    assert layout.yaxis2.domain[1] < layout.yaxis.domain[0]
    loss, shares = (note.text for note in layout.annotations)
    assert loss == "loss: how wrong it is"
    for name, trace in (("training letters", "letters right (training)"), ("test words", "test words right")):
        assert f"<span style='color:{lines(made)[trace].line.color}'><b>{name}</b>" in shares
    assert layout.xaxis.title.text == "step"


def test_every_number_of_the_run_has_a_line_that_differs_by_more_than_colour():
    run = series(12)
    found = lines(picture(run))
    solid, marked, dashed = ("lines", "solid"), ("lines+markers", "solid"), ("lines", "dash")
    for name, values, color, look in (
        ("training", run.loss, colors.TRAIN, solid),
        ("letters right (training)", run.token_accuracy, colors.TRAIN, solid),
        ("test (given right answer)", run.held_out_loss, colors.HELD_OUT, marked),
        ("test words right", run.exact, colors.HELD_OUT, marked),
        ("test (on its own)", run.free_loss, colors.FREE, dashed),
    ):
        trace = found.pop(name)
        measured = ~np.isnan(values)  # no gap where there is no evaluation
        assert list(trace.x) == run.steps[measured].tolist()
        assert list(trace.y) == values[measured].tolist()
        assert (trace.line.color, (trace.mode, trace.line.dash)) == (color, look)
        assert trace.showlegend == (name in ("training", "test (given right answer)", "test (on its own)"))
    assert all("previous" in name and not trace.showlegend for name, trace in found.items())
    assert len({colors.TRAIN, colors.HELD_OUT, colors.FREE, colors.GHOST}) == 4


def test_losses_and_shares_that_are_evaluated_at_different_steps_have_their_own_steps():
    run = series(24)
    steps = np.arange(1, 25)
    found = lines(picture(replace(run, held_out_loss=np.where(steps % 6 == 0, 2.0, NAN))))
    assert list(found["test words right"].x) == [4, 8, 12, 16, 20, 24]
    assert list(found["test (given right answer)"].x) == [6, 12, 18, 24]
    assert list(found["test (on its own)"].x) == [4, 8, 12, 16, 20, 24]


def test_a_translation_counts_tokens_and_sentences():
    made = picture(series(12), called=("tokens", "sentences"))
    assert {"tokens right (training)", "test sentences right"} <= {*lines(made)}
    assert "letters" not in made.spec
    assert "words" not in made.spec


def test_the_loss_axis_grows_in_steps_for_losses_above_that_of_a_uniform_guess():
    """A uniform guess among 30 tokens has a loss of 3.4."""
    low, high = np.array([NAN, 3.8]), np.array([4.2, NAN, 6.3])
    assert highest_loss(30) == highest_loss(30, low) == highest_loss(30, np.full(2, NAN)) == 3.9
    assert highest_loss(30, low, high) == 8.0
    assert highest_loss(30, np.array([3.95])) == 4.0


def test_the_previous_run_is_a_grey_ghost_behind_the_present_one():
    run, before = series(8), series(20, seed=1)
    alone = picture(run)
    made = replace(alone, arrays={**alone.arrays, **ghost(before)})  # as a player merges them
    order = list(lines(made))
    assert order[:2] == ["previous run: training loss", "previous run: words right"]  # drawn first
    loss, right = (lines(made)[name] for name in order[:2])
    assert loss.line.color == right.line.color == colors.GHOST
    assert loss.line.dash == right.line.dash == "dot"
    assert list(loss.y) == before.loss.tolist()
    assert list(right.x) == [4, 8, 12, 16, 20]
    assert list(lines(made)["training"].y) == run.loss.tolist()
    assert made.step == 8


def test_a_run_without_steps_has_axes_and_no_lines():
    made = picture(series(0))
    assert made.step == 0
    figure = drawn(made)
    assert len(figure.data) == 7
    for line in figure.data:  # the ghost has no points either
        assert list(line.x) == list(line.y) == [None]
    assert tuple(figure.layout.xaxis.range) == (0, 300)


def test_a_long_run_is_thinned_in_the_picture_and_its_evaluations_are_not_but_few_of_them_are_marked():
    run = series(6000, every=25)
    found = lines(picture(run, planned=6000))
    for name in ("training", "letters right (training)"):
        assert len(found[name].x) == 500
    assert len(ghost(run)["0.x"]) == 500
    assert found["training"].y[0] == pytest.approx(run.loss[:12].mean())
    evaluations = found["test words right"]
    assert len(evaluations.x) == 240
    assert evaluations.mode == "lines+markers"
    assert 0 < evaluations.marker.maxdisplayed <= 60


def test_the_spec_stays_the_same_while_training_goes_on():
    first = picture(series(4))
    assert picture(series(40)).spec == first.spec
    assert set(picture(series(40)).arrays) == set(first.arrays) > set(ghost(series(8)))
    assert picture(series(4), planned=400).spec != first.spec
    other = picture(series(4), run_id="another run")
    assert json.loads(other.spec)["layout"]["uirevision"] == "another run"  # a zoom lasts only for its run


def test_a_marker_crosses_both_panels_at_its_step_and_moves_without_a_new_spec():
    run = series(12)
    without, here, there = picture(run), picture(run, marker=7), picture(run, marker=0)
    assert without.spec == here.spec == there.spec
    for made, visible, step in ((without, False, 0), (here, True, 7), (there, True, 0)):
        (line,) = drawn(made).layout.shapes
        assert (line.visible, line.x0, line.x1) == (visible, step, step)
        assert (line.yref, line.y0, line.y1) == ("paper", 0, 1)
        assert line.line.dash == "dot"
        assert set(made.layout) == set(without.layout)

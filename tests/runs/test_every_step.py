"""Every step is recorded: in batches, before any change, and with the past of words added later."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import pytest

from tests.runs.conftest import take
from transformer.asking.model import model_of
from transformer.insight import moments
from transformer.recording.map_computer import BATCH
from transformer.recording.scorer import Scorer
from transformer.recording.view import Publisher, RunView
from transformer.runs import run_recorder as module
from transformer.shared.interventions import Interventions


def assert_complete(view: RunView) -> None:
    """Assert that each step has one frame, with its loss, and one snapshot."""
    assert view.frames.steps == tuple(range(view.step + 1))
    assert [snapshot.step for snapshot in view.snapshots] == list(range(view.step + 1))
    assert [frame.loss for frame in view.frames[1:]] == view.metrics.column("loss").tolist()


@pytest.mark.parametrize("watched", [False, True])
def test_a_run_has_a_frame_and_the_weights_of_each_step(tiny, training, losses, watched):
    config = tiny(steps=2 * BATCH + 7, evaluate_every=20, goal=None)
    one, published = training(config)
    take(one, None, watched=watched)
    assert_complete(published.view)
    assert published.view.metrics.column("loss").tolist() == losses(config)
    evaluated = [0, 20, 40, 57]
    assert [measurement.step for measurement in published.view.frames.measurements] == evaluated
    assert [f.words[0].output_step for f in published.view.frames[18:22]] == [0, 0, 20, 20]


def test_unwatched_frames_are_computed_in_batches_and_watched_frames_once_they_have_waited_long_enough(
    tiny, training, monkeypatch
):
    one, published = training(tiny(steps=90, evaluate_every=90, goal=None))
    newest = []
    for _ in range(BATCH + 1):
        one.step(alone=False, watched=False)
        newest.append(published.view.frames.steps[-1])
    assert newest == [*(BATCH - 1) * [0], BATCH, BATCH]
    monkeypatch.setattr(module, "WATCHED_SECONDS", 0.0)
    for step in range(BATCH + 2, BATCH + 5):
        one.step(alone=False, watched=True)
        assert published.view.frames.steps[-1] == step
    monkeypatch.setattr(module, "WATCHED_SECONDS", 600.0)
    one.step(alone=False, watched=True)
    assert published.view.frames.steps[-1] == published.view.step - 1
    whole_again = published.view
    one.recording.compute()
    assert_complete(published.view)
    assert whole_again.frames.steps[-1] == published.view.step - 1  # an older view is unchanged


@pytest.mark.parametrize(("runs", "computed"), [(1, [1, 2, 3, 4, 5, 6, 7]), (3, [1, 1, 1, 4, 4, 4, 7])])
def test_runs_that_take_turns_are_each_shown_less_often(tiny, training, monkeypatch, runs, computed):
    one, published = training(tiny(steps=90, evaluate_every=90, goal=None))
    monkeypatch.setattr(module, "WATCHED_SECONDS", 1.0)
    newest = []
    for second in range(10**9, 10**9 + 7):
        clock = SimpleNamespace(
            perf_counter=lambda second=second: float(second), thread_time=time.thread_time
        )
        monkeypatch.setattr(module, "time", clock)
        one.step(alone=False, watched=True, runs=runs)
        newest.append(published.view.frames.steps[-1])
    assert newest == computed


def test_the_first_frame_is_published_together_with_its_weights(tiny, training, monkeypatch):
    seen, publish = [], Publisher.publish

    def noted(self, **changes):
        publish(self, **changes)
        seen.append(self.view)

    monkeypatch.setattr(Publisher, "publish", noted)
    training(tiny())
    framed = [view for view in seen if view.frames]
    assert framed
    assert all([snapshot.step for snapshot in view.snapshots] == [0] for view in framed)


def test_no_batch_mixes_two_models(tiny, training):
    """Heads and masks are switched off in mid-batch: each frame shows the interventions of its step."""
    one, published = training(tiny(steps=30, evaluate_every=30, goal=None))
    plans = [
        Interventions(),
        Interventions(ablated=(("decoder.0.cross", 1),)),
        Interventions(masks=(("causal", False), ("padding", False))),
    ]
    for plan in plans:
        if plan != published.view.interventions:
            one.intervene(plan)
        take(one, 4)
    one.recording.compute()
    view = published.view
    assert_complete(view)
    taken = [plans[0]] * 4 + [plans[1]] * 4 + [plans[2]] * 5  # the step of a change shows the new plan
    assert [frame.interventions for frame in view.frames] == taken
    assert [snapshot.interventions for snapshot in view.snapshots] == taken
    future = [np.isnan(frame.map(0, "decoder.1.self")[0, 0, 1]) for frame in view.frames]
    assert future == 8 * [True] + 5 * [False]
    assert ["[PAD]" in frame.words[0].src_tokens for frame in view.frames] == 8 * [False] + 5 * [True]
    assert [moment.step for moment in view.moments if moment.kind == "intervention"] == [4, 8]


@pytest.mark.parametrize("command", ["pause", "stop", "add_word"])
def test_pending_frames_are_computed_before_a_run_stands_still_or_adds_a_word(tiny, make_run, until, command):
    run = make_run(tiny(steps=100_000, evaluate_every=100_000))
    run.start()
    until(lambda: run.view.step > 3)
    if command == "add_word":
        run.add_word("dog")
        until(lambda: "dog" in run.view.frames.words)
        run.pause().result(30)
    else:
        getattr(run, command)().result(30)
    assert_complete(run.view)


@pytest.mark.parametrize("steps", [3, 16], ids=["in one part", "in four parts"])
def test_a_word_added_late_has_its_newest_map_at_once_and_its_whole_past_soon_after(
    tiny, make_run, until, monkeypatch, steps
):
    """The maps equal those of a run that tracked the word from the beginning."""
    monkeypatch.setattr(module, "PAST_STEPS", 5)
    config = tiny(steps=200, evaluate_every=200, goal=None)
    late, early = make_run(config), make_run(config, words=("kayak", "cat", "dog"))
    for run in (late, early):
        run.advance(steps).result(30)
        until(lambda run=run: run.view.state == "paused")
    late.add_word("dog")
    until(lambda: late.view.frames.steps_of("dog"))
    until(lambda: late.view.frames.steps_of("dog") == tuple(range(steps + 1)))
    assert_complete(late.view)
    for one, other in zip(late.view.frames, early.view.frames, strict=True):
        for site in one.axes:
            shown, expected = one.map(one.row_of("dog"), site), other.map(other.row_of("dog"), site)
            np.testing.assert_allclose(shown, expected, atol=2e-4, equal_nan=True)
        assert one.words[2].predicted == other.words[2].predicted
        assert one.words[2].output_step == (steps if one.step == steps else None)


def test_the_past_of_a_word_is_recorded_with_the_masks_of_each_step(tiny, training):
    one, published = training(tiny(steps=30, evaluate_every=30, goal=None))
    off = Interventions(masks=(("causal", False), ("padding", False)))
    for taken in (off, Interventions()):
        take(one, 3)
        one.intervene(taken)
    one.recording.add_word(one.state.task.question("dog"))
    while one.recording.has_backfill:
        one.recording.compute_past()
    frames = published.view.frames
    assert frames.steps_of("dog") == tuple(range(7))
    blocked = [np.isnan(frame.map(2, "decoder.0.self")[0, 0, 1]) for frame in frames]
    assert blocked == [True, True, True, False, False, False, True]
    assert ["[PAD]" in frame.words[2].src_tokens for frame in frames] == [not one for one in blocked]


def test_a_word_that_replaces_another_removes_only_the_maps_of_that_word(tiny, training, monkeypatch):
    one, published = training(tiny(steps=30, evaluate_every=30, goal=None))
    take(one, 5)
    monkeypatch.setattr(module, "MAX_WORDS", 2)
    one.recording.add_word(one.state.task.question("dog"))
    while one.recording.has_backfill:
        one.recording.compute_past()
    assert_complete(published.view)
    assert published.view.frames.words == ("cab", "dog")
    assert {len(frame.words) for frame in published.view.frames} == {2}


def test_a_head_turns_at_the_first_step_at_which_its_score_reaches_the_threshold(
    half_trained, monkeypatch, training
):
    """Compare with scores from the kept weights of that step and of the step before."""
    threshold = 0.35
    monkeypatch.setattr(module, "THRESHOLD", threshold)
    monkeypatch.setattr(moments, "THRESHOLD", threshold)
    config = half_trained.config.with_changes(evaluate_every=30, steps=120, goal=None, d_model=32)
    one, published = training(config)
    take(one, None)
    view = published.view
    turned = [moment for moment in view.moments if moment.head is not None]
    assert turned
    scorer = Scorer(one.state.task)
    for moment in turned:
        before, after = (
            scorer.scores(model_of(view.config, view.snapshot_at(step)))[moment.site]["mirror"][moment.head]
            for step in (moment.step - 1, moment.step)
        )
        assert before < threshold <= after, moment
        assert view.frames.of_step(moment.step).measurement.step == moment.step
    assert any(moment.step % 30 for moment in turned), "none lies between two evaluations"


def test_weights_of_a_large_model_are_kept_only_at_evaluations_and_moments(tiny, training, monkeypatch):
    monkeypatch.setattr(module, "DISK_LIMIT", 1000)
    one, published = training(tiny(steps=20, evaluate_every=5, goal=None))
    take(one, None)
    view = published.view
    assert view.frames.steps == tuple(range(21))
    kept = {step.step for step in view.snapshots}
    moment_steps = {moment.step for moment in view.moments}
    assert {0, 5, 10, 15, 20} <= kept <= {0, 5, 10, 15, 20} | moment_steps

"""Costly recording covers fewer steps and reports this; a nearby step stands in for a skipped one."""

from __future__ import annotations

from tests.runs.conftest import take
from transformer.recording.map_recorder import MOST_APART, TOLERANCE, UNWATCHED, WATCHED, FrameScheduler
from transformer.recording.weights import Snapshot
from transformer.shared.interventions import Interventions


def intervals_of(a_frame, a_step, n=60, watched=False):
    """Return the recording interval in steps after each of n batches of 25 frames; costs are in seconds."""
    made, everies = FrameScheduler(), []
    for _ in range(n):
        for _ in range(25):
            made.trained(a_step)
        made.recorded(25, 25 * a_frame, watched=watched)
        everies.append(made.every)
    return everies


def test_recording_within_its_share_of_time_covers_every_step():
    assert set(intervals_of(0.9 * UNWATCHED, 1.0)) == {1}
    assert set(intervals_of(0.9 * WATCHED, 1.0, watched=True)) == {1}


def test_costly_recording_covers_fewer_steps_and_then_keeps_its_share_of_time():
    for a_frame in (0.2, 0.7, 3.0):
        every = intervals_of(a_frame, 1.0)[-1]
        assert 1 < every <= MOST_APART
        assert a_frame / every <= TOLERANCE * UNWATCHED
        assert 2 * a_frame / every > UNWATCHED
    assert intervals_of(1000.0, 1.0)[-1] == MOST_APART


def test_one_costly_batch_changes_nothing_and_cheap_batches_restore_every_step():
    made = FrameScheduler(every=4)
    made.trained(1.0)
    for _ in range(20):
        made.recorded(25, 25 * 0.05, watched=False)
    assert made.every == 1
    made.recorded(1, 1.0, watched=False)  # one costly frame, with scores and outputs
    assert made.every == 1


def test_after_one_costly_batch_every_step_is_recorded_again_although_each_uses_most_of_its_share():
    made = FrameScheduler()
    made.trained(1.0)
    made.recorded(5, 5 * 0.7 * WATCHED + 5.0, watched=True)  # thinning, for example
    assert made.every > 1
    for _ in range(60):
        made.recorded(5 // made.every + 1, (5 // made.every + 1) * 0.7 * WATCHED * made.every, watched=True)
    assert made.every == 1


def test_a_longer_interval_is_published_and_leaves_steps_out_evenly(tiny, training):
    one, published = training(tiny(steps=24, evaluate_every=24, goal=None), every=4)
    take(one, 23)
    one.recording.compute()
    assert published.view.every == 4
    assert published.view.frames.steps == (0, 4, 8, 12, 16, 20)


def test_for_a_step_without_a_snapshot_the_nearest_on_its_side_of_an_intervention_is_used(tiny, training):
    one, published = training(tiny(steps=12, evaluate_every=12, goal=None))
    take(one, 5)
    one.intervene(Interventions(ablated=(("decoder.0.cross", 1),)))
    take(one, 5)
    one.recording.compute()
    one.recording.weights.keep({0, 1, 5, 9})
    published.note(snapshots=one.recording.weights.snapshots)
    found: dict[int, Snapshot | None] = {
        step: published.view.snapshot_at(step) for step in (2, 4, 5, 7, 8, 12)
    }
    assert {step: kept.step for step, kept in found.items() if kept} == {2: 1, 4: 1, 5: 5, 7: 5, 8: 9, 12: 9}

"""Two runs in a race: both get the same share of the machine, and the race changes no loss."""

from __future__ import annotations

import time

import pytest

from tests.runs.conftest import losses_of
from transformer.runs.limits import Limits
from transformer.runs.queue import Lease, Queue


@pytest.fixture
def raced(server):
    """Race two runs of one server until a condition holds; return the runs and their progress."""

    def race(one, other, *, by_seconds=False, until):
        registry = server(training=1)
        runs = [registry.draft(config) for config in (one, other)]
        registry.race(*runs)
        runs[0].turns.by_seconds = by_seconds
        for run in runs:
            run.ready.wait(30)
        for run in runs:
            registry.start(run)
        seen = []
        end = time.monotonic() + 60
        while not until(*(run.view for run in runs)) and time.monotonic() < end:
            seen.append(tuple((run.view.state, run.view.step, run.view.seconds) for run in runs))
            time.sleep(0.002)
        return runs, seen

    return race


def ended(*views):
    return all(view.state == "finished" for view in views)


def test_racing_runs_share_one_slot_and_stay_within_one_step_of_each_other(tiny, raced):
    """The second model is several times as large: without a race it would fall behind."""
    runs, seen = raced(tiny(steps=60), tiny(steps=60, d_model=96, d_ff=192), until=ended)
    training = [(one[1], other[1]) for one, other in seen if one[0] == other[0] == "training"]
    assert ended(*(run.view for run in runs))
    assert len(set(training)) > 20
    assert all(abs(one - other) <= 1 for one, other in training)


def test_by_seconds_both_train_equally_long_within_one_step_and_the_smaller_takes_more_steps(tiny, raced):
    runs, seen = raced(
        tiny(steps=2000),
        tiny(steps=2000, d_model=120, d_ff=480, n_encoder_layers=4, n_decoder_layers=4),
        by_seconds=True,
        until=lambda one, other: min(one.seconds, other.seconds) > 1.0,
    )
    (_, small, small_seconds), (_, large, large_seconds) = seen[-1]
    steps = [run.view.metrics.column("seconds") for run in runs]
    longest = max(max(b - a for a, b in zip(one, one[1:], strict=False)) for one in steps)
    assert abs(small_seconds - large_seconds) <= longest
    assert small > 1.3 * large


def test_a_race_changes_no_loss(tiny, raced, losses):
    configs = [tiny(steps=12), tiny(steps=12, causal_mask=False)]
    runs, _ = raced(*configs, until=ended)
    assert [losses_of(run) for run in runs] == [losses(config) for config in configs]


def test_a_paused_or_ended_run_does_not_hold_up_the_other_run(tiny, raced):
    (one, other), _ = raced(tiny(steps=20), tiny(steps=60), until=lambda one, other: one.step >= 5)
    one.pause().result(10)
    at = other.view.step
    assert at <= 6
    while other.view.step < at + 20:
        time.sleep(0.01)
    one.resume().result(10)
    assert other.wait(60)
    assert (one.view.step, other.view.step) == (20, 60)


def test_a_run_that_joins_later_catches_up_while_the_first_waits(tiny, server):
    registry = server(training=1)
    first, second = (registry.draft(tiny(steps=steps)) for steps in (400, 30))
    registry.start(first)
    while first.view.step < 20:
        time.sleep(0.005)
    registry.race(first, second)
    registry.start(second)
    while second.view.state != "training":
        time.sleep(0.001)
    began = first.view.step
    while second.view.step < 20:
        assert first.view.step <= max(began + 1, second.view.step + 1)
        time.sleep(0.001)


def test_switching_between_steps_and_seconds_stops_neither_run(tiny, raced):
    """The run that is ahead in steps, and waits, may be behind in seconds."""
    runs, _ = raced(
        tiny(steps=5000),
        tiny(steps=5000, d_model=96, d_ff=192),
        until=lambda one, other: min(one.step, other.step) > 5,
    )
    for k in range(40):
        runs[0].turns.by_seconds = k % 2 == 0
        before = sum(run.view.step for run in runs)
        end = time.monotonic() + 10
        while sum(run.view.step for run in runs) < before + 3:
            assert time.monotonic() < end, "nobody steps"
            time.sleep(0.001)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_leases_that_share_a_slot_have_one_place_in_the_queue_and_release_it_together(order):
    queue = Queue(1)
    leases = [Lease(queue, Limits()), Lease(queue, Limits())]
    last = Lease(queue, Limits())
    called = []
    leases[0].share(leases[1])
    assert leases[order[0]].take(list)
    assert not last.take(lambda: called.append("last"))
    assert leases[order[1]].take(list)
    assert last.place == (1, 1)
    leases[0].leave()
    assert not called
    leases[1].leave()
    assert called == ["last"]


def test_two_leases_that_wait_together_are_called_together():
    queue = Queue(1)
    first, one, other = (Lease(queue, Limits()) for _ in range(3))
    called = []
    assert first.take(list)
    one.share(other)
    assert not one.take(lambda: called.append("one"))
    assert not other.take(lambda: called.append("other"))
    assert one.place == other.place == (1, 1)
    first.leave()
    assert sorted(called) == ["one", "other"]
    assert one.take(list)
    assert other.take(list)

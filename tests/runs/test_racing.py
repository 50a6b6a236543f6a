"""The runs of a race train in turn in one thread and one slot, and the race changes no loss."""

from __future__ import annotations

import threading
import time

import pytest
import torch

from tests.runs.conftest import TWO_HEADS_OFF, losses_of
from transformer.runs.limits import Limits
from transformer.runs.queue import Lease, Queue
from transformer.shared.interventions import NO_INTERVENTIONS
from transformer.tasks import Task


@pytest.fixture
def raced(server):
    """Race runs of one server until a condition holds; return the runs and their progress."""

    def race(*configs, by_seconds=False, until):
        registry = server(training=1, per_visitor=len(configs))
        runs = [registry.draft(config) for config in configs]
        registry.race(runs)
        runs[0].thread.by_seconds = by_seconds
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


@pytest.fixture
def large(tiny):
    """A configuration of the same task whose steps take several times as long."""
    return lambda **changes: tiny(d_model=96, d_ff=192, **changes)


@pytest.mark.parametrize("n", [2, 5])
def test_racing_runs_share_one_slot_and_stay_within_one_step_of_each_other(tiny, large, raced, n):
    small = [tiny(steps=24, evaluate_every=24, seed=k) for k in range(n - 1)]
    runs, seen = raced(*small, large(steps=24, evaluate_every=24), until=ended)
    training = [[step for _, step, _ in one] for one in seen if {state for state, *_ in one} == {"training"}]
    assert ended(*(run.view for run in runs))
    assert len({*map(tuple, training)}) > 10
    assert all(max(steps) - min(steps) <= 1 for steps in training)


def test_by_seconds_both_train_equally_long_within_one_step_and_the_smaller_takes_more_steps(tiny, raced):
    runs, seen = raced(
        tiny(steps=2000),
        tiny(steps=2000, d_model=120, d_ff=480, n_encoder_layers=4, n_decoder_layers=4),
        by_seconds=True,
        until=lambda one, other: min(one.seconds, other.seconds) > 1.0,
    )
    (_, small, small_seconds), (_, large, large_seconds) = seen[-1]
    steps = [run.view.metrics.column("seconds") for run in runs]
    longest = max(max(b - a for a, b in zip(some, some[1:], strict=False)) for some in steps)
    assert abs(small_seconds - large_seconds) <= longest
    assert small > 1.3 * large


def test_a_race_changes_no_loss_and_no_number_of_threads(tiny, raced, losses):
    configs = [
        tiny(steps=12),
        tiny(steps=12, causal_mask=False, dropout=0.2),
        tiny(steps=12, threads=2, d_model=256, n_heads=2),
    ]
    runs, _ = raced(*configs, until=ended)
    assert [run.view.threads for run in runs] == [1, 1, 2]
    for run, config in zip(runs, configs, strict=True):
        torch.set_num_threads(config.threads or 1)
        expected = losses(config)
        torch.set_num_threads(1)
        assert losses_of(run) == expected


def test_torch_computes_with_the_threads_of_the_run_that_steps(tiny, raced, monkeypatch):
    batch, threads = Task.batch, {1: set(), 2: set()}

    def noted(task, seed, k):
        threads[seed].add(torch.get_num_threads())
        return batch(task, seed, k)

    monkeypatch.setattr(Task, "batch", noted)
    raced(tiny(seed=1), tiny(seed=2, threads=2), until=ended)
    assert threads == {1: {1}, 2: {2}}


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


def test_a_racing_run_is_changed_stopped_and_continued_by_itself(tiny, raced, losses):
    config = tiny(steps=60, seed=3)
    (one, other), _ = raced(tiny(steps=60), config, until=lambda one, other: other.step >= 4)
    one.intervene(TWO_HEADS_OFF).result(10)
    one.set_learning_rate(0.001).result(10)
    one.add_word("sheep")
    one.stop().result(10)
    assert (one.view.state, one.view.interventions, one.view.learning_rate) == (
        *("stopped", TWO_HEADS_OFF),
        0.001,
    )
    one.continue_for(3, 0.01).result(10)
    assert one.wait(60)
    assert other.wait(60)
    assert "sheep" in one.words
    assert (other.view.interventions, "sheep" in other.words) == (NO_INTERVENTIONS, False)
    assert losses_of(other) == losses(config)


def test_a_run_that_fails_or_leaves_memory_in_a_race_ends_alone(tiny, raced, losses, monkeypatch):
    batch = Task.batch

    def broken(task, seed, k):
        if (seed, k) == (13, 5):
            raise RuntimeError("the letters have run out")
        return batch(task, seed, k)

    monkeypatch.setattr(Task, "batch", broken)
    config = tiny(steps=40, seed=3)
    (bad, left, other), _ = raced(
        tiny(steps=40, seed=13), tiny(steps=40), config, until=lambda bad, *_: bad.state == "failed"
    )
    left.halt()
    assert bad.join(30)
    assert left.join(30)
    assert left.view.step < 40
    assert other.wait(60)
    assert losses_of(other) == losses(config)


def test_a_run_that_joins_later_catches_up_while_the_first_waits(tiny, server):
    registry = server(training=1)
    first, second = (registry.draft(tiny(steps=steps)) for steps in (400, 30))
    registry.start(first)
    while first.view.step < 20:
        time.sleep(0.005)
    registry.race([first, second])
    registry.start(second)
    while second.view.state != "training":
        time.sleep(0.001)
    began = first.view.step
    while second.view.step < 20:
        assert first.view.step <= max(began + 1, second.view.step + 1)
        time.sleep(0.001)


def test_a_run_that_waits_in_the_queue_trains_once_it_races_against_a_training_run(tiny, server, until):
    registry = server(training=1, per_visitor=5)
    trains, between, waits = runs = [registry.draft(tiny(steps=100_000, seed=seed)) for seed in range(3)]
    for k, run in enumerate(runs):
        registry.start(run)
        until(lambda run=run, k=k: run.place == (k, k) if k else run.view.state == "training")
    registry.race([waits, trains])
    until(lambda: waits.view.step > 2)
    assert [run.view.state for run in runs] == ["training", "queued", "training"]
    assert between.place == (1, 1)


def test_a_run_that_joins_another_race_leaves_the_first_with_its_slot(tiny, server, until, losses):
    """The run that stays behind waits for a slot of its own, and then learns on as alone."""
    registry = server(training=2, per_visitor=5)
    configs = [tiny(steps=steps, seed=seed) for steps, seed in ((4000, 0), (60, 1), (4000, 2), (4000, 3))]
    one, other, third, alone = runs = [registry.draft(config) for config in configs]
    registry.race([one, other])
    for run in (one, other, alone):
        registry.start(run)
    until(lambda: min(run.view.step for run in (one, other, alone)) > 3)
    registry.race([one, third])
    registry.start(third)
    until(lambda: third.view.step > 3)
    assert one.thread is third.thread is not other.thread
    assert [run.view.state for run in runs] == ["training", "queued", "training", "training"]
    assert other.place == (1, 1)
    for run in (one, third, alone):
        run.stop().result(10)
    assert other.wait(60)
    assert losses_of(other) == losses(configs[1])


def test_a_paused_run_that_leaves_a_race_takes_no_slot_along(tiny, server, until):
    registry = server(training=1, per_visitor=5)
    paused, trains, third, waits = (registry.draft(tiny(steps=100_000, seed=seed)) for seed in range(4))
    registry.race([paused, trains])
    registry.start(paused)
    registry.start(trains)
    until(lambda: min(paused.view.step, trains.view.step) > 0)
    registry.start(waits)
    until(lambda: waits.place == (1, 1))
    paused.pause().result(10)
    registry.race([paused, third])
    paused.set_pace(1.0).result(10)  # carried out in its new thread
    trains.set_pace(1.0).result(10)
    assert [run.view.state for run in (paused, trains, waits)] == ["paused", "training", "queued"]


def test_a_run_that_races_is_joined_and_left_at_any_moment_and_learns_what_it_learns_alone(
    tiny, server, losses
):
    registry, config = server(training=2, per_visitor=9), tiny(steps=40, dropout=0.2)
    run = registry.draft(config)
    others = [registry.draft(tiny(steps=100_000, seed=seed)) for seed in (1, 2)]
    registry.race([run, others[0]])
    for one in (run, *others):
        registry.start(one)
    k = 0
    while run.view.active:
        k += 1
        registry.race([run, others[k % 2]])
        registry.race(others)
        time.sleep(0.01)
    assert k > 3
    assert losses_of(run) == losses(config)
    names = [thread.name for thread in threading.enumerate() if thread.name.startswith("run-")]
    assert len(names) <= 3


def test_switching_between_steps_and_seconds_stops_neither_run(tiny, large, raced):
    """The run that is ahead in steps, and waits, may be behind in seconds."""
    runs, _ = raced(
        tiny(steps=5000), large(steps=5000), until=lambda one, other: min(one.step, other.step) > 5
    )
    for k in range(40):
        runs[0].thread.by_seconds = k % 2 == 0
        before = sum(run.view.step for run in runs)
        end = time.monotonic() + 10
        while sum(run.view.step for run in runs) < before + 3:
            assert time.monotonic() < end, "nobody steps"
            time.sleep(0.001)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_leases_that_share_a_slot_have_one_place_in_the_queue_and_release_it_together(order):
    queue = Queue(1)
    leases = [Lease(queue, Limits()), Lease(queue, Limits())]
    last = Lease(queue, Limits())
    called = []
    for lease in leases:
        lease.join("race")
    assert leases[order[0]].take(list)
    assert not last.take(lambda: called.append("last"))
    assert leases[order[1]].take(list)
    assert last.place == (1, 1)
    leases[0].leave()
    assert not called
    leases[1].leave()
    assert called == ["last"]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_leases_that_wait_together_have_the_better_of_their_places_and_are_called_together(order):
    queue = Queue(1)
    first, one, between, other = (Lease(queue, Limits()) for _ in range(4))
    called = []
    assert first.take(list)
    for name, lease in (("one", one), ("between", between), ("other", other)):
        assert not lease.take(lambda name=name: called.append(name))
    assert [lease.place for lease in (one, between, other)] == [(1, 3), (2, 3), (3, 3)]
    for k in order:
        (one, other)[k].join("race")
    assert [lease.place for lease in (one, between, other)] == [(1, 2), (2, 2), (1, 2)]
    first.leave()
    assert sorted(called) == ["one", "other"]
    assert one.take(list)
    assert other.take(list)


def test_two_leases_with_slots_that_join_release_one_and_a_waiting_lease_gets_the_slot_of_its_party():
    queue = Queue(2)
    one, other, waits, last = (Lease(queue, Limits()) for _ in range(4))
    called = []
    assert one.take(list)
    assert other.take(list)
    assert not waits.take(lambda: called.append("waits"))
    assert not last.take(lambda: called.append("last"))
    for lease in (one, other):
        lease.join("race")
    assert called == ["waits"]
    last.join("race")
    assert called == ["waits", "last"]
    assert last.take(list)

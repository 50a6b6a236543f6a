"""Many runs on one server: some train, the others are queued, and no visitor takes more than a share."""

from __future__ import annotations

import logging
import re
import threading

import pytest

from transformer.errors import InputError
from transformer.runs.training_session import TrainingSession
from transformer.tasks import Task

WITH_ONE = {"training": 1}


def states(*runs):
    return [run.view.state for run in runs]


def test_two_runs_train_and_the_others_are_queued_in_the_order_they_started(server, begin, until):
    registry = server(per_visitor=5)
    runs = [begin(registry) for _ in range(5)]
    assert states(*runs) == ["training", "training", "queued", "queued", "queued"]
    assert [run.place for run in runs] == [None, None, (1, 3), (2, 3), (3, 3)]
    assert runs[4].view.active  # so that every page keeps refreshing
    runs[1].stop()
    until(lambda: runs[2].view.state == "training")
    assert states(*runs) == ["training", "stopped", "training", "queued", "queued"]
    assert [run.place for run in runs] == [None, None, None, (1, 2), (2, 2)]


def test_a_run_that_was_queued_learns_what_it_learns_alone(server, begin, tiny, until, losses):
    registry = server(**WITH_ONE)
    first, second = begin(registry), registry.draft(tiny())
    registry.start(second)
    until(lambda: second.place == (1, 1))
    first.pause()
    until(lambda: second.view.state == "finished")
    assert second.view.metrics.column("loss").tolist() == losses(tiny())


def test_a_paused_run_releases_its_slot_and_is_queued_to_resume(server, begin, until):
    registry = server(**WITH_ONE)
    first, second = begin(registry), begin(registry)
    first.pause()
    until(lambda: second.view.state == "training")
    first.resume().result(20)  # returns once it is queued: no page waits for the slot
    assert (first.view.state, first.place) == ("queued", (1, 1))
    second.pause()
    until(lambda: first.view.state == "training")
    step = first.view.step
    until(lambda: first.view.step > step)


def test_a_slot_granted_after_a_pause_starts_nothing(server, begin, until):
    registry = server(**WITH_ONE)
    first, second = begin(registry), begin(registry)
    second.pause().result(20)
    first.stop()
    second._runner.ask(second._runner.called)  # as if granted just before the pause took effect
    second.set_pace(5.0).result(20)
    assert (second.view.state, second.view.step) == ("paused", 0)
    third = begin(registry)
    until(lambda: third.view.state == "training")


def test_a_run_that_fails_gives_its_slot_to_the_next(server, begin, tiny, until, monkeypatch):
    batch, another_came = Task.batch, threading.Event()

    def broken(task, seed, k):
        if seed == 13 and k > 0:
            another_came.wait(60)
            raise RuntimeError("the letters have run out")
        return batch(task, seed, k)

    monkeypatch.setattr(Task, "batch", broken)
    registry = server()
    other, bad = begin(registry), registry.draft(tiny(seed=13))
    registry.start(bad)
    until(lambda: bad.view.state == "training")
    waits = begin(registry)
    assert waits.place == (1, 1)
    another_came.set()
    until(lambda: waits.view.state == "training")
    assert bad.view.reason == "RuntimeError: the letters have run out"
    assert states(other, bad) == ["training", "failed"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_dies_without_an_error_releases_its_slot(server, begin, until, monkeypatch):
    registry = server(**WITH_ONE)
    first, second = begin(registry), begin(registry)

    step = TrainingSession.step

    def die(training, **how):
        if threading.current_thread().name == f"run-{first.id[:6]}":
            raise SystemExit  # no error handler catches this
        step(training, **how)

    monkeypatch.setattr(TrainingSession, "step", die)
    until(lambda: second.view.state == "training")
    first.join()


def test_an_unviewed_run_is_paused_with_a_reason_and_can_be_resumed(server, begin, until):
    registry = server(**WITH_ONE)
    run, waits = begin(registry), begin(registry)
    run.lease.seen_at -= 10 * 60
    until(lambda: run.view.state == "paused")
    assert run.view.reason == (
        f"Paused at step {run.view.step:,}: no page has shown it for 10 minutes. Press Resume."
    )
    until(lambda: waits.view.state == "training")
    waits.close()
    assert run.look() is run.view
    run.resume()
    until(lambda: run.view.state == "training")
    assert run.view.reason == ""


def test_an_unviewed_queued_run_is_paused_and_passes_its_slot_to_the_next(server, begin, until):
    registry = server(**WITH_ONE)
    first, second, third = (begin(registry) for _ in range(3))
    second.lease.seen_at -= 600
    first.stop()
    until(lambda: third.view.state == "training")
    assert second.view.state == "paused"
    assert second.view.reason.startswith("Paused at step 0: no page has shown it for 10 minutes.")


def test_a_run_at_its_time_limit_is_stopped_with_a_reason_and_can_be_continued(server, begin, until):
    registry = server(minutes=30)
    run = begin(registry)
    run.lease.taken_at -= 30 * 60
    until(lambda: run.view.state == "stopped")
    assert run.view.reason == (
        f"Stopped at step {run.view.step:,}: this server limits a run to 30 minutes at a time. "
        "Press Continue to train on."
    )
    assert run.view.frame.step == run.view.step
    registry.continue_for(run, 5, 0.01)
    until(lambda: run.view.state == "training")
    assert run.view.reason == ""


def test_a_run_can_be_continued_up_to_the_step_limit_and_not_beyond(server, tiny, until):
    registry = server(steps=300)
    run = registry.draft(tiny(steps=4))
    registry.start(run)
    until(lambda: run.view.state == "finished")
    with pytest.raises(
        InputError, match="^301 steps are too many for this server; choose at most 300 in total"
    ):
        registry.continue_for(run, 297, 0.01)
    registry.continue_for(run, 296, 0.01)
    until(lambda: run.view.planned == 300)


def test_each_visitor_has_a_separate_limit_of_unfinished_runs(server, begin, slow, until):
    registry = server(training=1, per_visitor=2)
    first, second = begin(registry, visitor="ann"), begin(registry, visitor="ann")
    third = registry.draft(slow, visitor="ann")
    refused = "^You have 2 of 2 unfinished runs allowed on this server. "
    with pytest.raises(InputError, match=refused):
        registry.start(third)
    assert third.view.state == "idle"
    assert registry.listed() == [second, first]
    begin(registry, visitor="bob")
    second.stop()
    until(lambda: second.view.state == "stopped")
    registry.start(third)
    with pytest.raises(InputError, match=refused):
        registry.continue_for(second, 3, 0.1)
    registry.adopt(third)  # already counted, so not a third run
    assert second.view.state == "stopped"


def test_ended_and_abandoned_runs_are_evicted_but_never_a_run_that_is_viewed(server, begin, tiny, until):
    registry = server(training=3, kept=3)
    watched, left, ended = begin(registry), begin(registry), registry.draft(tiny(steps=1))
    registry.start(ended)
    until(lambda: ended.view.state == "finished")
    watched.pause()
    left.lease.seen_at -= 3600
    until(lambda: states(watched, left) == ["paused", "paused"])
    fourth = begin(registry)
    assert registry.listed() == [fourth, left, watched]  # an ended run goes first, although it is newer
    fifth = begin(registry)
    assert registry.listed() == [fifth, fourth, watched]
    sixth = begin(registry)
    assert registry.listed() == [sixth, fifth, fourth, watched]


def test_each_event_is_logged_in_one_line_without_full_ids_or_words(
    server, begin, tiny, until, caplog, monkeypatch
):
    caplog.set_level(logging.INFO, logger="headlight.runs")
    registry = server(training=3, kept=2)
    done = registry.draft(tiny(steps=2), words=("zebra",))
    registry.start(done)
    until(lambda: done.view.state == "finished")
    left = begin(registry)
    left.pause()
    left.resume().result(20)
    left.lease.seen_at -= 3600
    until(lambda: left.view.state == "paused")
    left.stop()
    until(lambda: f"stop {left.id[:6]}" in caplog.text)
    monkeypatch.setattr(Task, "batch", lambda task, seed, k: {}["zebra"])
    bad = registry.draft(tiny())
    registry.start(bad)
    until(lambda: bad.view.state == "failed")
    bad.join()
    with pytest.raises(InputError):
        registry.draft(tiny(steps=1_000_000))
    lines = [record.getMessage() for record in caplog.records if record.name == "headlight.runs"]
    ids = {run.id[:6]: name for name, run in (("done", done), ("left", left), ("bad", bad))}
    told = [re.sub(r"\d+\.\d s", "T s", line) for line in lines]
    for prefix, name in ids.items():
        told = [line.replace(prefix, name) for line in told]
    step = left.view.step
    assert told == [
        "start done: training at step 0, T s",
        "finish done: finished at step 2, T s",
        "start left: training at step 0, T s",
        f"neglect left: paused at step {step}, T s",
        f"stop left: stopped at step {step}, T s",
        "evict done: finished at step 2, T s",
        "start bad: training at step 0, T s",
        "fail bad: failed at step 0, T s, KeyError",
        "refuse steps",
    ]
    for run in (done, left, bad):
        assert run.id not in caplog.text
    assert "zebra" not in caplog.text

"""The queue of runs: first come, first served, within time limits, and no run is forgotten."""

from __future__ import annotations

import threading
import time

import pytest

from transformer.runs import queue as module
from transformer.runs.limits import Limits
from transformer.runs.queue import Lease, Queue


@pytest.fixture
def clock(monkeypatch):
    """The time in minutes, which a test can set."""
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: 60 * now[0])
    return now


def nothing():
    """Do nothing when called."""


def test_a_run_without_a_queue_has_its_slot_at_once_and_without_limit(clock):
    turn = Lease()
    assert turn.take(nothing)
    assert turn.place is None
    clock[0] = 1e6
    assert turn.over() is None
    assert not turn.unseen


def test_waiting_and_pausing_use_no_minutes_and_viewing_adds_none(clock):
    queue = Queue(1)
    first, second = Lease(queue, Limits(minutes=5)), Lease(queue, Limits(minutes=5))
    assert first.take(nothing)
    assert not second.take(nothing)
    assert second.place == (1, 1)
    clock[0] = 4
    first.leave()
    assert second.take(nothing)
    clock[0] = 8.9
    second.look()
    assert second.over() is None
    clock[0] = 9
    state, why = second.over()
    assert state == "stopped"
    assert "5 minutes at a time" in why
    second.leave()
    clock[0] = 30
    second.look()
    assert second.take(nothing)
    assert second.over() is None


def test_an_unviewed_run_must_pause_and_a_view_keeps_it_going(clock):
    turn = Lease(Queue(1), Limits(unseen_minutes=10))
    turn.take(nothing)
    for clock[0] in (4, 8, 9):
        assert turn.over() is None
    turn.look()
    for clock[0] in (13, 17, 18.9):
        assert turn.over() is None
    clock[0] = 19
    assert turn.unseen
    state, why = turn.over()
    assert state == "paused"
    assert "no page has shown it for 10 minutes" in why
    turn.look()
    assert turn.over() is None


def test_the_time_in_which_the_machine_sleeps_does_not_count(clock):
    turn = Lease(Queue(1), Limits(unseen_minutes=10, minutes=20))
    turn.take(nothing)
    for clock[0] in (4, 64, 68, 69.9):  # asleep from 4 to 64
        assert turn.over() is None
    clock[0] = 70
    assert turn.over()[0] == "paused"
    turn.look()
    for clock[0] in (74, 78, 79.9):
        assert turn.over() is None
    clock[0] = 80
    assert turn.over()[0] == "stopped"


# The queue.


@pytest.fixture
def called():
    """The names whose callback has been called, in order."""
    return []


@pytest.fixture
def take(called):
    """Ask a queue for a slot; the callback appends the name to `called`."""
    return lambda queue, who: queue.take(who, lambda: called.append(who))


def places(queue, who):
    return [queue.place(one) for one in who]


def test_a_released_slot_goes_to_the_first_in_the_queue(take, called):
    queue = Queue(2)
    assert [take(queue, who) for who in "abcde"] == [True, True, False, False, False]
    assert [take(queue, who) for who in "acd"] == [True, False, False]  # asking again changes nothing
    assert places(queue, "abcde") == [None, None, (1, 3), (2, 3), (3, 3)]
    assert queue.place("nobody") is None
    assert called == []
    queue.leave("b")
    assert called == ["c"]
    assert take(queue, "c")
    queue.leave("a")
    assert called == ["c", "d"]
    assert places(queue, "abcde") == [None, None, None, None, (1, 1)]
    take(queue, "a")
    assert places(queue, "ea") == [(1, 2), (2, 2)]  # at the end of the queue again


def test_leaving_the_queue_moves_the_others_up_and_frees_no_slot(take, called):
    queue = Queue(1)
    for who in "abcd":
        take(queue, who)
    queue.leave("b")
    assert places(queue, "acd") == [None, (1, 2), (2, 2)]
    assert called == []


def test_releasing_a_slot_that_is_not_held_changes_nothing(take, called):
    queue = Queue(1)
    take(queue, "a")
    take(queue, "b")
    queue.leave("c")
    queue.leave("a")
    queue.leave("a")
    assert called == ["b"]
    assert queue.place("b") is None


def test_a_callback_can_take_the_slot_at_once_in_the_same_thread():
    queue, heard = Queue(1), []
    queue.take("a", lambda: None)
    queue.take("b", lambda: heard.append(queue.take("b", lambda: None)))
    queue.leave("a")
    assert heard == [True]


def test_never_more_than_three_of_many_threads_hold_a_slot_and_each_gets_one():
    queue, most, lock = Queue(3), [], threading.Lock()
    working: set[int] = set()
    done: list[int] = []

    def work(who):
        mine = threading.Event()
        while not queue.take(who, mine.set):
            assert mine.wait(20), "it was never called"
        with lock:
            working.add(who)
            most.append(len(working))
        time.sleep(0.001)
        with lock:
            working.remove(who)
            done.append(who)
        queue.leave(who)

    threads = [threading.Thread(target=work, args=(who,)) for who in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(done) == list(range(40))
    assert max(most) <= 3
    assert queue.place(0) is None
    assert queue.take("next", lambda: None)  # no slot is still taken


def test_a_stopped_run_has_no_place_even_before_it_has_left_the_queue(tiny, make_run, monkeypatch):
    queue = Queue(1)
    training, waiting = (make_run(tiny(steps=100_000), lease=Lease(queue)) for _ in range(2))
    training.start().result(30)
    waiting.start().result(30)
    assert waiting.place == (1, 1)
    monkeypatch.setattr(Lease, "leave", lambda turn: None)
    waiting.stop().result(30)
    assert waiting.view.state == "stopped"
    assert queue.place(waiting.lease) == (1, 1)
    assert waiting.place is None

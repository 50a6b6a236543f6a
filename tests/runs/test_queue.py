"""Who may train and who waits: first come, first served, for so long, and nobody is forgotten."""

from __future__ import annotations

import threading
import time

import pytest

from transformer.runs import queue as module
from transformer.runs.limits import Limits
from transformer.runs.queue import Lease, Queue


@pytest.fixture
def clock(monkeypatch):
    """Minutes on the clock, to be moved."""
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: 60 * now[0])
    return now


def nothing():
    """Nobody listens."""


def test_a_run_by_itself_has_its_slot_at_once_and_for_ever(clock):
    turn = Lease()
    assert turn.take(nothing)
    assert turn.place is None
    clock[0] = 1e6
    assert turn.over() is None
    assert not turn.unseen


def test_waiting_and_pausing_take_nothing_off_the_minutes_and_looking_adds_none(clock):
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


def test_a_run_that_nobody_looks_at_is_to_pause_and_a_look_keeps_it_going(clock):
    turn = Lease(Queue(1), Limits(unseen_minutes=10))
    turn.take(nothing)
    clock[0] = 9
    turn.look()
    clock[0] = 18.9
    assert turn.over() is None
    clock[0] = 19
    assert turn.unseen
    state, why = turn.over()
    assert state == "paused"
    assert "no page has shown it for 10 minutes" in why
    turn.look()
    assert turn.over() is None


# The line.


@pytest.fixture
def called():
    """Who has been called, in order."""
    return []


@pytest.fixture
def take(called):
    """Stand in a line, to be called by name."""
    return lambda queue, who: queue.take(who, lambda: called.append(who))


def places(queue, who):
    return [queue.place(one) for one in who]


def test_who_gives_a_slot_back_lets_in_the_one_that_came_first(take, called):
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
    assert places(queue, "ea") == [(1, 2), (2, 2)]  # at the end of the line again


def test_who_waits_no_longer_moves_the_others_up_and_lets_nobody_in(take, called):
    queue = Queue(1)
    for who in "abcd":
        take(queue, who)
    queue.leave("b")
    assert places(queue, "acd") == [None, (1, 2), (2, 2)]
    assert called == []


def test_giving_back_what_one_does_not_have_changes_nothing(take, called):
    queue = Queue(1)
    take(queue, "a")
    take(queue, "b")
    queue.leave("c")
    queue.leave("a")
    queue.leave("a")
    assert called == ["b"]
    assert queue.place("b") is None


def test_who_is_called_may_ask_at_once_in_the_same_thread():
    queue, heard = Queue(1), []
    queue.take("a", lambda: None)
    queue.take("b", lambda: heard.append(queue.take("b", lambda: None)))
    queue.leave("a")
    assert heard == [True]


def test_of_many_threads_never_more_than_three_work_and_each_has_its_turn():
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
    assert queue.take("next", lambda: None)  # nobody has kept a slot


def test_a_stopped_run_waits_no_more_even_before_it_has_left_the_line(tiny, make_run, monkeypatch):
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

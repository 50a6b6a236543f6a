"""Who may work and who waits: first come, first served, and nobody is forgotten."""

from __future__ import annotations

import threading
import time

import pytest

from transformer.runs.slots import Slots
from transformer.runs.turn import Turn


@pytest.fixture
def called():
    """Who has been called, in order."""
    return []


@pytest.fixture
def take(called):
    """Stand in a line, to be called by name."""
    return lambda slots, who: slots.take(who, lambda: called.append(who))


def places(slots, who):
    return [slots.place(one) for one in who]


def test_the_first_two_work_and_the_others_wait_with_their_places(take, called):
    slots = Slots(2)
    assert [take(slots, who) for who in "abcde"] == [True, True, False, False, False]
    assert places(slots, "abcde") == [None, None, (1, 3), (2, 3), (3, 3)]
    assert slots.place("nobody") is None
    assert called == []


def test_who_gives_a_slot_back_lets_in_the_one_that_came_first(take, called):
    slots = Slots(2)
    for who in "abcde":
        take(slots, who)
    slots.leave("b")
    assert called == ["c"]
    assert take(slots, "c")
    slots.leave("a")
    assert called == ["c", "d"]
    assert places(slots, "abcde") == [None, None, None, None, (1, 1)]
    take(slots, "a")
    assert places(slots, "ea") == [(1, 2), (2, 2)]  # at the end of the line again


def test_who_waits_no_longer_moves_the_others_up_and_lets_nobody_in(take, called):
    slots = Slots(1)
    for who in "abcd":
        take(slots, who)
    slots.leave("b")
    assert places(slots, "acd") == [None, (1, 2), (2, 2)]
    assert called == []


def test_asking_again_keeps_the_slot_or_the_place(take):
    slots = Slots(1)
    for who in "abc":
        take(slots, who)
    assert [take(slots, who) for who in "abc"] == [True, False, False]
    assert places(slots, "abc") == [None, (1, 2), (2, 2)]


def test_giving_back_what_one_does_not_have_changes_nothing(take, called):
    slots = Slots(1)
    take(slots, "a")
    take(slots, "b")
    slots.leave("c")
    slots.leave("a")
    slots.leave("a")
    assert called == ["b"]
    assert slots.place("b") is None


def test_who_is_called_may_ask_at_once_in_the_same_thread():
    slots, heard = Slots(1), []
    slots.take("a", lambda: None)
    slots.take("b", lambda: heard.append(slots.take("b", lambda: None)))
    slots.leave("a")
    assert heard == [True]


def test_of_many_threads_never_more_than_three_work_and_each_has_its_turn():
    slots, most, lock = Slots(3), [], threading.Lock()
    working: set[int] = set()
    done: list[int] = []

    def work(who):
        mine = threading.Event()
        while not slots.take(who, mine.set):
            assert mine.wait(20), "it was never called"
        with lock:
            working.add(who)
            most.append(len(working))
        time.sleep(0.001)
        with lock:
            working.remove(who)
            done.append(who)
        slots.leave(who)

    threads = [threading.Thread(target=work, args=(who,)) for who in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(done) == list(range(40))
    assert max(most) <= 3
    assert slots.place(0) is None
    assert slots.take("next", lambda: None)  # nobody has kept a slot


def test_a_stopped_run_waits_no_more_even_before_it_has_left_the_line(tiny, make_run, monkeypatch):
    slots = Slots(1)
    training, waiting = (make_run(tiny(steps=100_000), turn=Turn(slots)) for _ in range(2))
    training.start().wait(30)
    waiting.start().wait(30)
    assert waiting.place == (1, 1)
    monkeypatch.setattr(Turn, "leave", lambda turn: None)
    waiting.stop().wait(30)
    assert waiting.view.state == "stopped"
    assert slots.place(waiting._turn) == (1, 1)
    assert waiting.place is None

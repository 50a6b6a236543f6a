"""The clock of one run on a server: how long it may keep its slot, and how long it may go unseen."""

from __future__ import annotations

import pytest

from transformer.runs import turn as module
from transformer.runs.limits import Limits
from transformer.runs.slots import Slots
from transformer.runs.turn import Turn


@pytest.fixture
def clock(monkeypatch):
    """Minutes on the clock, to be moved."""
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: 60 * now[0])
    return now


def nothing():
    """Nobody listens."""


def test_a_run_by_itself_has_its_slot_at_once_and_for_ever(clock):
    turn = Turn()
    assert turn.take(nothing)
    assert turn.place is None
    clock[0] = 1e6
    assert turn.over() is None
    assert not turn.unseen


def test_a_run_that_has_trained_for_its_minutes_is_to_stop_though_somebody_looks(clock):
    turn = Turn(Slots(1), Limits(minutes=60))
    turn.take(nothing)
    for clock[0] in range(60):
        turn.look()
        assert turn.over() is None
    clock[0] = 60
    turn.look()
    state, why = turn.over()
    assert state == "stopped"
    assert why == "on this server a run trains for 60 minutes at a stretch. Continue it if you like."


def test_waiting_and_pausing_take_nothing_off_the_minutes(clock):
    slots = Slots(1)
    first, second = Turn(slots, Limits(minutes=5)), Turn(slots, Limits(minutes=5))
    assert first.take(nothing)
    assert not second.take(nothing)
    assert second.place == (1, 1)
    clock[0] = 4
    first.leave()
    assert second.take(nothing)
    clock[0] = 8.9
    assert second.over() is None
    clock[0] = 9
    assert second.over()[0] == "stopped"
    second.leave()
    clock[0] = 30
    second.look()
    assert second.take(nothing)
    assert second.over() is None


def test_asking_for_a_slot_that_one_has_does_not_turn_the_clock_back(clock):
    turn = Turn(Slots(1), Limits(minutes=5))
    turn.take(nothing)
    clock[0] = 4
    turn.take(nothing)
    clock[0] = 5
    assert turn.over()[0] == "stopped"


def test_a_run_that_nobody_looks_at_is_to_pause_and_a_look_keeps_it_going(clock):
    turn = Turn(Slots(1), Limits(unseen_minutes=10))
    turn.take(nothing)
    clock[0] = 9
    turn.look()
    clock[0] = 18.9
    assert turn.over() is None
    clock[0] = 19
    assert turn.unseen
    assert turn.over() == ("paused", "nobody looked for 10 minutes. Press Resume.")
    turn.look()
    assert turn.over() is None


def test_one_minute_is_said_as_such(clock):
    turn = Turn(Slots(1), Limits(unseen_minutes=1))
    turn.take(nothing)
    clock[0] = 1
    assert turn.over() == ("paused", "nobody looked for a minute. Press Resume.")

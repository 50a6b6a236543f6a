"""How often a page looks again, and at what it does not look."""

from types import SimpleNamespace

import pytest

from pages.parts import refresh
from pages.parts.refresh import audience, refresh_seconds, refreshing
from transformer.runs import calibration


def view(**facts):
    return SimpleNamespace(**{"active": True, "frame": object(), "pace": None, "state": "training"} | facts)


@pytest.mark.parametrize(("n", "seconds"), [(1, 1.0), (2, 1.0), (3, 1.9), (30, 1.9)])
def test_the_more_pages_are_open_the_less_often_each_looks(monkeypatch, n, seconds):
    monkeypatch.setattr(refresh, "audience", lambda: n)
    assert refresh_seconds(view()) == seconds
    assert seconds < 2.0  # nobody waits longer than that for the next picture


@pytest.mark.parametrize(
    ("facts", "seconds"),
    [({"pace": 5.0}, 0.2), ({"pace": 1.0}, 0.2), ({"pace": 20.0}, 0.5), ({"frame": None}, 0.4)],
)
def test_a_slow_pace_and_a_first_picture_are_looked_at_more_often_unless_there_is_a_crowd(
    monkeypatch, facts, seconds
):
    monkeypatch.setattr(refresh, "audience", lambda: 2)
    assert refresh_seconds(view(**facts)) == seconds
    assert refresh_seconds(view(), waiting=True) == 0.2
    monkeypatch.setattr(refresh, "audience", lambda: 20)
    assert refresh_seconds(view(**facts)) == 1.9


def test_what_stands_still_is_not_looked_at_again_unless_it_is_measured_or_may_go_on(monkeypatch):
    monkeypatch.setattr(refresh, "audience", lambda: 1)
    monkeypatch.setattr(calibration, "_speed", object())
    assert refresh_seconds(view(active=False, state="finished")) is None
    assert refresh_seconds(view(active=False, state="idle")) is None
    assert refresh_seconds(view(active=False, state="paused")) == 2.0
    monkeypatch.setattr(refresh.selection, "known_states", lambda: ("finished", "training"))
    assert refresh_seconds(view(active=False, state="finished")) == 2.0  # for the list says so
    monkeypatch.setattr(refresh.selection, "known_states", lambda: ("finished",))
    monkeypatch.setattr(refresh.selection, "may_be_moved", lambda: True)
    assert refresh_seconds(view(active=False, state="finished")) == 2.0  # another page may let it go on
    monkeypatch.setattr(calibration, "_speed", None)
    assert refresh_seconds(view(active=False, state="idle")) == 1.0


class WholePage(Exception):
    """The page is run in full."""


@pytest.mark.parametrize("now", ["training", "finished"])
def test_a_new_state_is_not_shown_before_the_buttons_that_go_with_it(monkeypatch, now):
    def rerun():
        raise WholePage

    drawn = []
    run = SimpleNamespace(look=lambda: view(state=now, moments=[]))
    monkeypatch.setattr(refresh.st, "fragment", lambda run_every: lambda part: part)
    monkeypatch.setattr(refresh.st, "rerun", rerun)
    monkeypatch.setattr(refresh.selection, "step", lambda: None)

    def look(seen):
        refreshing(run, view(state=seen, moments=[]), drawn.append, every=lambda view: 1.0)

    look(seen=now)
    assert [shown.state for shown in drawn] == [now]
    with pytest.raises(WholePage):
        look(seen="queued")
    assert len(drawn) == 1


def test_the_whole_page_is_run_when_another_run_of_the_list_is_in_a_new_state(monkeypatch):
    def rerun():
        raise WholePage

    others, looks = iter([("training",), ("training",), ("finished",)]), []
    run = SimpleNamespace(look=lambda: view(moments=[]))
    monkeypatch.setattr(refresh.st, "fragment", lambda run_every: lambda part: looks.append(part) or part)
    monkeypatch.setattr(refresh.st, "rerun", rerun)
    monkeypatch.setattr(refresh.selection, "step", lambda: None)
    monkeypatch.setattr(refresh.selection, "known_states", lambda: next(others))
    refreshing(run, view(moments=[]), lambda view: None, every=lambda view: 1.0)
    with pytest.raises(WholePage):
        looks[0]()


def test_a_page_that_has_not_looked_for_a_while_is_no_longer_counted(monkeypatch):
    clock, session = [100.0], ["a"]
    monkeypatch.setattr(refresh, "_looked", {})
    monkeypatch.setattr(refresh.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(refresh, "get_script_run_ctx", lambda: SimpleNamespace(session_id=session[0]))
    assert audience() == 1
    assert audience() == 1  # the same page again
    session[0] = "b"
    assert audience() == 2
    clock[0] += refresh.STAYS + 0.1
    assert audience() == 1

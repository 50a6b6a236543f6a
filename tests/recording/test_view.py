"""The view of a run: derived values, refused values, and immutability."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, replace

import pytest

from transformer.insight.moments import Moment
from transformer.runs.run import Run


@pytest.fixture(scope="module")
def view(tiny_run):
    """The view of an idle run."""
    run = Run(tiny_run)
    assert run.ready.wait(60)
    run.close()
    run.join()
    return run.view


def test_the_time_left_is_the_steps_left_divided_by_the_speed(view):
    assert view.seconds_left is None
    assert replace(view, steps_per_second=4.0, step=10, planned=100).seconds_left == 22.5
    assert replace(view, steps_per_second=4.0, step=100, planned=100).seconds_left == 0.0


@pytest.mark.parametrize("state", ["idle", "queued", "training", "paused", "finished", "stopped", "failed"])
def test_a_run_is_active_only_while_queued_or_training(view, state):
    assert replace(view, state=state).active == (state in ("queued", "training"))


@pytest.mark.parametrize(
    "said",
    [
        {"pace": 0},
        {"pace": 7.0},
        {"threads": -1},
        {"step": 9},  # more than the eight planned
        {"learning_rate": 0.0},
        {"learning_rate": math.inf},
        {"seconds": -1.0},
        {"every": 0},
        {"name": "x" * 41},
        {"right": (0, 0)},
        {"right": (3, 2)},
        {"everyday": (-1, 5)},
        {"moments": (Moment(1, "turned", "it turned", '"><img src=x>', 0),)},
    ],
    ids=str,
)
def test_values_that_no_run_can_have_are_refused(view, said):
    with pytest.raises(ValueError, match="none of a run"):
        replace(view, **said)


def test_a_run_without_its_first_frame_is_active(view):
    before = replace(view, frames=())
    assert before.active
    assert before.frame is None


def test_a_view_taken_once_never_changes(make_run, tiny, until):
    run = make_run(tiny())
    until(lambda: run.view.frame)
    taken = run.view
    with pytest.raises(FrozenInstanceError):
        taken.step = 3
    run.start()
    until(lambda: run.view.state == "finished")
    assert (taken.state, taken.step, [frame.step for frame in taken.frames]) == ("idle", 0, [0])

"""How much of a run's time is spent on looking at it."""

import time

import pytest

from transformer.recording.recorder import Recorder
from transformer.runs import looks
from transformer.runs.published import Published


@pytest.fixture
def dear(monkeypatch):
    """Frames that take 0.03 s longer than they do."""
    frame = Recorder.frame

    def slow(self, **facts):
        time.sleep(0.03)
        return frame(self, **facts)

    monkeypatch.setattr(Recorder, "frame", slow)


def steps_of_frames(make_run, config, **settings):
    run = make_run(config, **settings)
    run.start()
    assert run.wait(60)
    return [frame.step for frame in run.view.frames], run.view.seconds


def test_at_full_speed_frames_take_only_a_share_of_the_training(make_run, tiny, dear):
    steps, seconds = steps_of_frames(make_run, tiny(steps=60, evaluate_every=60, goal=None))
    assert steps[:6] == [0, 1, 2, 3, 4, 5]  # whatever they cost
    assert steps[-1] == 60
    allowed = (looks.LOOKING_SHARE * seconds + looks.LOOKING_ADVANCE) / 0.03
    assert len(steps) - 6 - 1 <= allowed + 1
    assert len(steps) < len([step for step in range(61) if step <= 5 or step % 5 == 0])


def test_whoever_slows_a_run_down_to_see_more_sees_all(make_run, tiny, dear):
    run = make_run(tiny(steps=12, evaluate_every=12, goal=None))
    run.set_pace(5.0)
    run.start()
    assert run.wait(60)
    assert [frame.step for frame in run.view.frames] == list(range(13))


def test_a_run_whose_frames_are_too_dear_is_looked_at_now_and_then_all_the_same(
    make_run, tiny, dear, monkeypatch
):
    monkeypatch.setattr(looks, "AT_LEAST_SECONDS", 0.05)
    monkeypatch.setattr(looks, "LOOKING_SHARE", 0.0)
    monkeypatch.setattr(looks, "LOOKING_ADVANCE", 0.0)
    config = tiny(steps=150, evaluate_every=150, goal=None)
    steps, _ = steps_of_frames(make_run, config)
    assert len([step for step in steps if 5 < step < 150]) > 0


def test_frames_that_cost_little_are_as_many_as_ever(make_run, tiny, monkeypatch):
    monkeypatch.setattr(looks, "LOOKING_ADVANCE", 100.0)
    steps, _ = steps_of_frames(make_run, tiny(steps=30, evaluate_every=30, goal=None))
    assert set(steps) >= {0, 1, 2, 3, 4, 5, 10, 15, 20, 25, 30}


def test_whoever_sees_the_first_frame_finds_the_weights_that_it_is_of(make_run, tiny, monkeypatch):
    seen, change = [], Published.change

    def noted(self, changed):
        change(self, changed)
        seen.append(self.view)

    monkeypatch.setattr(Published, "change", noted)
    run = make_run(tiny())
    assert run.ready.wait(60)
    framed = [view for view in seen if view.frames]
    assert framed
    assert [view.step for view in framed if not view.snapshots] == []

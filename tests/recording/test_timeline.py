"""The film of a run: in order, bounded, and never changing under its readers."""

from __future__ import annotations

import numpy as np

from transformer.recording.frame import Axes, Frame
from transformer.recording.timeline import Timeline


def frame(step, loss=1.0):
    """A frame that holds little but its size."""
    return Frame(
        step=step,
        seconds=0.0,
        loss=loss,
        exact=(0, 1),
        exact_step=0,
        probes=(),
        axes={"decoder.0.cross": Axes(query="tgt", key="src", causal=False)},
        maps={"decoder.0.cross": np.zeros((1, 2, 13, 39), np.float16)},
        src_real=np.ones((1, 8), bool),
        tgt_real=np.ones((1, 2), bool),
        scores={"decoder.0.cross": np.zeros(2)},
        clearest=("decoder.0.cross", 0),
    )


def test_a_frame_knows_how_many_bytes_its_arrays_take():
    assert frame(0).nbytes == 2 * 13 * 39 * 2 + 8 + 2


def test_frames_stand_in_order_and_one_of_the_same_step_replaces_the_newest():
    timeline = Timeline()
    for step in (0, 1, 2):
        timeline.add(frame(step))
    timeline.add(frame(2, loss=0.5))
    assert [f.step for f in timeline.frames] == [0, 1, 2]
    assert timeline.frames[-1].loss == 0.5


def test_readers_keep_what_they_took():
    timeline = Timeline()
    timeline.add(frame(0))
    taken = timeline.frames
    timeline.add(frame(1))
    assert [f.step for f in taken] == [0]


def test_memory_is_bounded_and_the_first_and_the_newest_frame_stay():
    size = frame(0).nbytes
    timeline = Timeline(memory_limit=20 * size)
    for step in range(500):
        timeline.add(frame(step))
        steps = [f.step for f in timeline.frames]
        assert len(steps) <= 20
        assert steps[0] == 0
        assert steps[-1] == step
        assert steps == sorted(set(steps))
        assert step < 20 or len(steps) >= 10


def test_what_is_old_is_thinned_more_than_what_is_new():
    timeline = Timeline(memory_limit=40 * frame(0).nbytes)
    for step in range(300):
        timeline.add(frame(step))
    gaps = np.diff([f.step for f in timeline.frames])
    assert gaps[-10:].max() == 1
    assert gaps[:10].min() > 1


def test_replacing_the_newest_again_and_again_costs_no_other_frame():
    timeline = Timeline(memory_limit=10 * frame(0).nbytes)
    for step in range(9):
        timeline.add(frame(step))
    for _ in range(50):
        timeline.add(frame(8))
    assert [f.step for f in timeline.frames] == list(range(9))

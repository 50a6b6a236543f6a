"""The past of a run: frames and snapshots in order, bounded, and never changing under its readers."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from transformer.config import ModelConfig, TrainConfig
from transformer.interventions import Block, Interventions
from transformer.recording import shelf as module
from transformer.recording.frame import Axes, Frame
from transformer.recording.shelf import Shelf
from transformer.recording.snapshot import Snapshot, snapshot_is_due
from transformer.recording.timeline import BESIDE, MEMORY_LIMIT, Timeline, frame_is_due

CROSS = Axes(query="tgt", key="src", writes=True, causal=False, padding=True)
OWN = Axes(query="tgt", key="tgt", writes=True, causal=True, padding=True)


def frame(step, loss=1.0, shape=(1, 2, 13, 39), sites=("decoder.0.cross",)):
    """A frame that holds little but its size."""
    return Frame(
        step=step,
        seconds=0.0,
        loss=loss,
        exact=(0, 1),
        exact_step=0,
        probes=(),
        axes={site: CROSS if site.endswith("cross") else OWN for site in sites},
        maps={site: np.full(shape, step % 1024, np.float16) for site in sites},
        head_scores={
            site: {"entropy": np.full(shape[1], 0.5), "mirror": np.linspace(0.1, 0.9, shape[1])}
            for site in sites
        },
        clearest=("decoder.0.cross", 0),
        interventions=Interventions(blocked=(Block(site="decoder.0.cross", row=0, column=0),)),
    )


def snapshot(step, n=100):
    return Snapshot(step=step, weights={"table": np.full(n, float(step), np.float32)})


def limit_for(n_frames):
    """The memory with which a timeline keeps exactly so many frames: frames and snapshots share alike."""
    share = n_frames * frame(0).nbytes
    return -(-32 * share // 9)  # seven sixteenths of it are for what is beside the maps and the weights


def steps(kept):
    return [one.step for one in kept]


def in_memory(timeline):
    return sum(one.nbytes for one in (*timeline.frames, *timeline.snapshots))


def whole(timeline):
    """Whether all that is kept still has the numbers of its step, wherever it lies."""
    frames = all((f.maps["decoder.0.cross"] == f.step % 1024).all() for f in timeline.frames)
    return frames and all((s.weights["table"] == s.step).all() for s in timeline.snapshots)


def test_a_frame_knows_how_many_bytes_its_maps_take():
    assert frame(0).nbytes == 2 * 13 * 39 * 2
    assert frame(0, sites=("decoder.0.cross", "decoder.0.self")).nbytes == 2 * 2 * 13 * 39 * 2


def test_mirror_scores_of_a_frame_are_those_of_cross_attention():
    made = frame(0, shape=(1, 5, 2, 3), sites=("decoder.0.self", "decoder.0.cross"))
    assert list(made.scores) == ["decoder.0.cross"]
    assert made.scores["decoder.0.cross"].tolist() == pytest.approx([0.1, 0.3, 0.5, 0.7, 0.9])
    assert made.best == (("decoder.0.cross", 4), pytest.approx(0.9))


def test_a_head_is_called_by_its_pattern_or_none_or_switched_off():
    made = frame(0, shape=(1, 5, 2, 3), sites=("decoder.0.self", "decoder.0.cross"))
    made.head_scores["decoder.0.cross"]["entropy"][:] = 0.99  # no role
    assert made.role("decoder.0.cross", 3) == "anti-diagonal 0.70"
    assert made.role("decoder.0.cross", 1) == "no clear pattern"
    off = replace(made, interventions=Interventions(ablated=(("decoder.0.cross", 3),)))
    assert off.role("decoder.0.cross", 3) == "switched off"
    assert off.role("decoder.0.cross", 4) == "anti-diagonal 0.90"
    assert off.role("decoder.0.self", 3) == "anti-diagonal 0.70"


def test_a_frame_on_the_shelf_is_the_same_and_takes_no_memory():
    made = frame(3)
    away = made.shelved(Shelf())
    assert (away.step, away.nbytes, away.interventions) == (3, 0, made.interventions)
    assert np.array_equal(away.maps["decoder.0.cross"], made.maps["decoder.0.cross"])
    assert away.scores["decoder.0.cross"].tolist() == made.scores["decoder.0.cross"].tolist()
    assert made.nbytes > 0


def test_frames_are_dense_while_most_changes_and_sparser_later():
    due = [step for step in range(1, 1001) if frame_is_due(step)]
    assert due == [1, 2, 3, 4, 5, *range(10, 51, 5), *range(60, 501, 10)]


def test_frames_stand_in_order_and_one_of_the_same_step_replaces_the_newest():
    timeline = Timeline()
    for step in (0, 1, 2):
        timeline.add(frame(step))
    timeline.add(frame(2, loss=0.5))
    assert steps(timeline.frames) == [0, 1, 2]
    assert timeline.frames[-1].loss == 0.5


def test_readers_keep_what_they_took():
    timeline = Timeline()
    timeline.add(frame(0))
    timeline.add_snapshot(snapshot(0))
    taken = timeline.frames, timeline.snapshots
    timeline.add(frame(1))
    timeline.add_snapshot(snapshot(1))
    assert [steps(kept) for kept in taken] == [[0], [0]]


def test_memory_is_bounded_and_the_first_and_the_newest_frame_stay():
    timeline = Timeline(memory_limit=limit_for(20))
    for step in range(500):
        timeline.add(frame(step))
        found = steps(timeline.frames)
        assert len(found) <= 20
        assert found[0] == 0
        assert found[-1] == step
        assert found == sorted(set(found))
        assert step < 20 or len(found) >= 10


def test_what_is_old_is_thinned_more_than_what_is_new():
    timeline = Timeline(memory_limit=limit_for(40))
    for step in range(300):
        timeline.add(frame(step))
    gaps = np.diff(steps(timeline.frames))
    assert gaps[-10:].max() == 1
    assert gaps[:10].min() > 1


def test_replacing_the_newest_again_and_again_costs_no_other_frame():
    timeline = Timeline(memory_limit=limit_for(10))
    for step in range(9):
        timeline.add(frame(step))
    for _ in range(50):
        timeline.add(frame(8))
    assert steps(timeline.frames) == list(range(9))


def test_moments_stay_in_both_films_however_many_follow():
    timeline = Timeline(memory_limit=limit_for(12))
    moments = {37, 38, 111, 850}
    for step in range(1000):
        if step in moments:
            timeline.protect(step)
        timeline.add(frame(step))
        timeline.add_snapshot(snapshot(step, n=frame(0).nbytes // 4))
    for kept in (timeline.frames, timeline.snapshots):
        assert moments | {0, 999} <= set(steps(kept))
        assert len(kept) <= 12
    assert whole(timeline)


def test_more_moments_than_memory_are_kept_on_disk():
    timeline = Timeline(memory_limit=limit_for(6))
    for step in range(40):
        timeline.add(frame(step))
        timeline.protect(step)
        timeline.add_snapshot(snapshot(step, n=frame(0).nbytes // 4))
        assert in_memory(timeline) <= limit_for(6)
    assert steps(timeline.frames) == steps(timeline.snapshots) == list(range(40))
    assert whole(timeline)


LARGE = 30_000  # bytes of a limit of 100,000


def test_a_snapshot_of_more_than_a_quarter_of_the_memory_is_large():
    timeline = Timeline(memory_limit=100_000)
    assert not timeline.is_large(25_000)
    assert timeline.is_large(25_001)
    assert not Timeline().is_large(16 * 2**20)
    assert Timeline().is_large(16 * 2**20 + 1)


def test_of_large_snapshots_only_the_first_the_last_and_those_of_moments_stay_and_all_on_disk():
    timeline = Timeline(memory_limit=100_000)
    for step in range(0, 300, 10):
        if step in (0, 50, 60, 200):
            timeline.protect(step)
        timeline.add_snapshot(snapshot(step, n=LARGE // 4))
        expected = sorted({0, *(s for s in (50, 60, 200) if s <= step), step})
        assert steps(timeline.snapshots) == expected
        assert in_memory(timeline) == 0
    assert whole(timeline)


def test_a_large_snapshot_of_the_same_step_replaces_the_newest():
    timeline = Timeline(memory_limit=100_000)
    for _ in range(3):
        timeline.add_snapshot(snapshot(0, n=LARGE // 4))
    assert steps(timeline.snapshots) == [0]
    timeline.protect(5)
    for n in (LARGE // 4, LARGE // 2):
        timeline.add_snapshot(snapshot(5, n=n))
    assert steps(timeline.snapshots) == [0, 5]
    assert timeline.snapshots[-1].weights["table"].shape == (LARGE // 2,)


def test_a_full_disk_loses_no_snapshot(monkeypatch):
    def full(*arguments, **named):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "store", full)
    timeline = Timeline(memory_limit=100_000)
    for step in range(0, 80, 10):
        if step in (20, 30):
            timeline.protect(step)
        timeline.add_snapshot(snapshot(step, n=LARGE // 4))
        timeline.add(frame(step))
    assert steps(timeline.snapshots) == [0, 20, 30, 70]
    assert {0, 20, 30, 70} <= set(steps(timeline.frames))
    assert whole(timeline)


def test_twenty_thousand_steps_of_the_default_model_stay_within_the_memory_of_a_run():
    """Frames and weights of the default size at the steps at which a run makes them, with twelve probes."""
    model, train = ModelConfig(), TrainConfig()
    sites = [f"encoder.{i}" for i in range(model.n_encoder_layers)]
    sites += [f"decoder.{i}.{kind}" for i in range(model.n_decoder_layers) for kind in ("self", "cross")]
    longest = 2 * train.max_letters + 2
    probes = (12, model.n_heads, longest, longest)
    n_weights = 4 * sum(
        stack * (n * model.d_model**2 + 2 * model.d_model * model.d_ff)
        for stack, n in ((model.n_encoder_layers, 4), (model.n_decoder_layers, 8))
    )
    weights = MappingProxyType({"all": np.zeros(n_weights // 4, np.float32)})
    maps = MappingProxyType({site: np.zeros(probes, np.float16) for site in sites})
    moments = (180, 181, 400, 950, 5000, 5001, 12_345, 19_990)
    timeline, most = Timeline(), 0
    pattern = frame(0, sites=sites)
    for step in range(20_001):
        if step in moments:
            timeline.protect(step)
        if step in moments or step == 0 or frame_is_due(step) or step % 25 == 0:
            made = Frame(**{**_fields(pattern), "step": step, "maps": maps})
            timeline.add(made)
            most = max(most, in_memory(timeline))
        if step in moments or snapshot_is_due(step):
            timeline.add_snapshot(Snapshot(step=step, weights=weights))
            most = max(most, in_memory(timeline))
    assert most <= MEMORY_LIMIT - BESIDE
    assert most > (MEMORY_LIMIT - BESIDE) // 2, "the memory is there to be used"
    for kept in (timeline.frames, timeline.snapshots):
        assert {0, *moments, 20_000} <= set(steps(kept))
    assert len(timeline.frames) > 30


def _fields(made):
    return {name: getattr(made, name) for name in made.__dataclass_fields__}

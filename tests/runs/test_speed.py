"""The time of a run is estimated from one measured number and the work of a step, counted correctly."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from transformer.config import KINDS_OF, RunConfig
from transformer.model.attention import MultiHeadAttention
from transformer.model.layers import FeedForward
from transformer.recording.activations import record
from transformer.runs import speed
from transformer.runs.speed import run_seconds, slowness, work_of
from transformer.training.loop import learn
from transformer.training.state import TrainState


def sizes(topology, letters):
    return RunConfig(device="cpu").with_changes(
        topology=topology,
        n_encoder_layers=2,
        n_decoder_layers=3,
        n_heads=3,
        d_model=12,
        d_ff=20,
        batch_size=5,
        min_letters=letters[0],
        max_letters=letters[1],
    )


@pytest.mark.parametrize("letters", [(7, 7), (1, 7)], ids=["without padding", "padding is left out"])
@pytest.mark.parametrize("topology", KINDS_OF)
def test_the_counted_work_equals_the_counts_of_pytorch_and_of_a_recording(topology, letters):
    config = sizes(topology, letters)
    state = TrainState.begin(config)
    tensors = state.to_device(state.task.batch(0, 0))
    assert bool((tensors[0] == 0).any()) == (letters == (1, 7))
    with record(state.model) as cache:
        state.model(*tensors[:2])
    state.model.train()
    with FlopCounterMode(display=False) as counter:
        learn(state, *tensors)
    counts, work = counter.get_flop_counts()["Global"], work_of(config)
    assert work.products == counts[torch.ops.aten.addmm] + counts[torch.ops.aten.mm]
    assert work.cells == sum(weights.size for weights in cache.weights.values())
    assert work.maps == sum(weights.shape[0] * weights.shape[1] for weights in cache.weights.values())
    blocks = [
        module for module in state.model.modules() if isinstance(module, MultiHeadAttention | FeedForward)
    ]
    assert work.blocks == len(blocks)


def test_the_expected_time_grows_with_the_steps_the_work_and_the_slowness_of_the_machine(monkeypatch):
    monkeypatch.setattr(speed, "slowness", lambda: 1.0)
    small, wide = RunConfig(), RunConfig().with_changes(d_model=512, d_ff=2048)
    once = run_seconds(small, 100)
    assert run_seconds(small, 300) == pytest.approx(3 * once)
    assert run_seconds(wide, 100) > 20 * once
    monkeypatch.setattr(speed, "slowness", lambda: 2.5)
    assert run_seconds(small, 100) == pytest.approx(2.5 * once)


def test_the_machine_is_measured_once_without_torch_and_without_the_random_state():
    code = (
        "import sys, numpy; from transformer.runs.speed import slowness; state = numpy.random.get_state()[1];"
        "first = slowness(); assert first == slowness() and 0.02 < first < 50, first;"
        "assert (state == numpy.random.get_state()[1]).all() and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_machine_that_computes_twice_as_long_is_twice_as_slow(monkeypatch):
    slowness.cache_clear()
    clock = iter(np.arange(0.0, 1000.0, speed.SAMPLE))
    monkeypatch.setattr(speed.time, "perf_counter", lambda: float(next(clock)))
    assert slowness() == pytest.approx(1.0)
    slowness.cache_clear()
    clock = iter(np.arange(0.0, 1000.0, 2 * speed.SAMPLE))
    assert slowness() == pytest.approx(2.0)
    slowness.cache_clear()


def test_a_run_trains_with_the_threads_of_its_setting_and_else_with_one(tiny, make_run):
    for threads, used in ((None, 1), (2, 2)):
        run = make_run(tiny(threads=threads))
        run.ready.wait(30)
        assert run.view.threads == used

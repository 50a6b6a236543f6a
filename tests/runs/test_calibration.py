"""The speed of a machine is measured once, and the work of a step is counted correctly."""

import os

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from transformer.config import KINDS_OF, RunConfig
from transformer.model.attention import MultiHeadAttention
from transformer.model.layers import FeedForward
from transformer.recording.tape import record
from transformer.runs import calibration, runner
from transformer.runs.calibration import Speed, calibrate, candidates, speed, threads_of, work_of
from transformer.training.loop import learn
from transformer.training.state import TrainState


@pytest.fixture
def unmeasured(monkeypatch):
    """A process in which nothing has been measured."""
    monkeypatch.setattr(calibration, "_speed", None)


def no_run_trains():
    """Report that nothing trains."""
    return True


def cores(monkeypatch, n):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(n)), raising=False)


@pytest.mark.parametrize(
    ("n", "tried"), [(1, (1,)), (2, (1,)), (3, (1, 2)), (4, (1, 2)), (8, (1, 2, 4)), (16, (1, 2, 4, 8))]
)
def test_candidate_numbers_of_threads_leave_a_core_for_the_page_if_there_are_several(monkeypatch, n, tried):
    cores(monkeypatch, n)
    assert candidates() == tried


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
    with record(state.model) as tape:
        state.model(*tensors[:2])
    state.model.train()
    with FlopCounterMode(display=False) as counter:
        learn(state, *tensors)
    counts, work = counter.get_flop_counts()["Global"], work_of(config)
    assert work.products == counts[torch.ops.aten.addmm] + counts[torch.ops.aten.mm]
    assert work.cells == sum(weights.size for weights in tape.weights.values())
    assert work.maps == sum(weights.shape[0] * weights.shape[1] for weights in tape.weights.values())
    blocks = [one for one in state.model.modules() if isinstance(one, MultiHeadAttention | FeedForward)]
    assert work.blocks == len(blocks)


def test_the_estimate_reproduces_the_measured_step_times(monkeypatch, unmeasured):
    cores(monkeypatch, 2)
    taken = {calibration._SMALL_MODEL: 0.02, calibration._LARGE_MODEL: 0.13}
    monkeypatch.setattr(calibration, "_step_seconds", lambda config, threads, budget: taken[config])
    found = calibrate(no_run_trains)
    for config, seconds in taken.items():
        assert found.step_seconds(config) == pytest.approx(seconds)
    longer = found.run_seconds(RunConfig(), 200)
    assert longer == pytest.approx(200 * 0.02 * calibration.OVERHEAD)


def test_the_fastest_number_of_threads_is_chosen_and_measured_once(monkeypatch, unmeasured):
    cores(monkeypatch, 8)
    asked, budgets = [], []

    def seconds(config, threads, budget):
        asked.append((config, threads))
        budgets.append(budget)
        return {1: 0.03, 2: 0.01, 4: 0.02}[threads]

    monkeypatch.setattr(calibration, "_step_seconds", seconds)
    assert threads_of(RunConfig(), no_run_trains) == 2
    assert threads_of(RunConfig(), no_run_trains) == calibrate(no_run_trains).threads == speed().threads == 2
    small, large = calibration._SMALL_MODEL, calibration._LARGE_MODEL
    assert asked == [(small, 1), (small, 2), (small, 4), (large, 2)]
    assert budgets == pytest.approx([calibration.SECONDS / 4] * 4)


def test_a_configured_number_of_threads_is_used_and_nothing_is_measured(monkeypatch, unmeasured):
    cores(monkeypatch, 8)
    assert threads_of(RunConfig(threads=3), no_run_trains) == 3
    cores(monkeypatch, 2)
    assert threads_of(RunConfig(), no_run_trains) == 1  # nothing to choose
    assert speed() is None


def test_measuring_takes_real_steps_and_leaves_the_random_state_unchanged(unmeasured):
    state = torch.get_rng_state()
    before = torch.get_num_threads()
    found = calibrate(no_run_trains)
    assert torch.get_num_threads() == before
    assert isinstance(found, Speed)
    assert found.threads in candidates()
    assert 1e-5 < found.step_seconds(RunConfig()) < 60
    assert torch.equal(torch.get_rng_state(), state)


def test_a_run_shows_how_many_threads_it_trains_with(tiny, make_run):
    run = make_run(tiny(threads=2))
    run.ready.wait(30)
    assert run.view.threads == 2


def test_nothing_is_measured_while_a_run_trains_or_kept_if_a_run_starts_meanwhile(monkeypatch, unmeasured):
    cores(monkeypatch, 4)
    asked = []
    monkeypatch.setattr(calibration, "_step_seconds", lambda config, *_: asked.append(config) or 0.01)
    assert calibrate(lambda: False) is None
    assert asked == []
    assert threads_of(RunConfig(), lambda: False) == 1
    for quiet_for in range(1, 5):  # this many of the five checks find no training run
        answers = iter([True] * quiet_for)
        assert calibrate(lambda answers=answers: next(answers, False)) is None
        assert speed() is None
    assert isinstance(calibrate(no_run_trains), Speed)


def test_an_idle_run_measures_the_machine_once_the_other_run_has_ended(
    monkeypatch, unmeasured, tiny, server, until
):
    registry, steps = server(), []

    def seconds(*_):
        steps.append(training.view.step)
        return 0.01

    monkeypatch.setattr(calibration, "_step_seconds", seconds)
    training = registry.draft(tiny(steps=100_000))
    registry.start(training)
    until(lambda: training.view.step > 0)
    monkeypatch.setattr(runner, "CALM_SECONDS", 0.01)
    assert registry.draft(tiny()).ready.wait(30)
    until(lambda: training.view.step > 60)
    assert speed() is None
    training.stop().result(30)
    until(lambda: speed() is not None)
    assert set(steps) == {training.view.step}

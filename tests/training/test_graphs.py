"""Steps as CUDA graphs: replayed steps learn the same as eager ones."""

import pytest
import torch

from transformer.config import TrainConfig
from transformer.shared.interventions import Interventions
from transformer.training.distributed import Distributed
from transformer.training.graphs import EAGER_FIRST, MAX_GRAPHS, Graphs
from transformer.training.loop import train
from transformer.training.state import TrainState, captures


def fake_capture(log):
    """Simulate a GPU: a capture takes no step, and a replay takes the captured step on the same tensors."""

    def capture(step):
        log.append("capture")

        def replay():
            log.append("replay")
            return step()

        return replay

    return capture


def losses(config, graphs, steps=100):
    state = TrainState.begin(config.with_changes(steps=steps, goal=None))
    state.graphs = graphs
    return [loss for report in train(state) for loss in report.losses]


def test_a_hundred_replayed_steps_have_the_losses_of_a_hundred_eager_ones(tiny):
    log = []
    config = tiny(min_letters=5, max_letters=5, evaluate_every=1000)  # one shape
    assert losses(config, Graphs(fake_capture(log))) == losses(config, None)
    assert log == ["capture"] + ["replay"] * (100 - EAGER_FIRST)


def test_the_first_steps_of_each_shape_are_eager_and_each_shape_has_its_own_graph():
    log = []
    graphs = Graphs(fake_capture(log))
    taken = []

    def step(x):
        taken.append(tuple(x.shape))
        return x.sum() * 2

    for _ in range(EAGER_FIRST + 2):
        for size in (2, 3):
            x = torch.arange(float(size)) + len(taken)
            assert graphs.run(step, (x,)) == x.sum() * 2
    assert (log.count("capture"), log.count("replay")) == (2, 4)
    assert taken.count((2,)) == taken.count((3,)) == EAGER_FIRST + 2


def test_later_steps_do_not_overwrite_the_result_of_a_step():
    graphs = Graphs(fake_capture([]))
    place = torch.zeros(2)

    def step(x):
        return place.copy_(x)  # a graph writes its result to the same memory every time

    kept = [graphs.run(step, (torch.full((2,), float(i)),)) for i in range(EAGER_FIRST + 3)]
    assert [one.tolist() for one in kept[EAGER_FIRST:]] == [
        [i, i] for i in range(EAGER_FIRST, EAGER_FIRST + 3)
    ]


def test_a_step_that_cannot_be_captured_is_taken_eagerly():
    tried = []

    def refuse(step):
        tried.append(step)
        raise RuntimeError("operation not permitted when stream is capturing")

    graphs = Graphs(refuse)
    for i in range(EAGER_FIRST + 5):
        assert graphs.run(lambda x: x + 1, (torch.tensor(i),)) == i + 1
    assert len(tried) == 1


def test_the_number_of_captured_shapes_is_limited():
    graphs = Graphs(fake_capture(log := []))
    for size in range(1, MAX_GRAPHS + 4):
        for _ in range(EAGER_FIRST + 2):
            assert graphs.run(lambda x: x.sum(), (torch.ones(size),)) == size
    assert log.count("capture") == MAX_GRAPHS


def test_an_intervention_in_mid_run_captures_a_new_graph(tiny):
    config = tiny(min_letters=5, max_letters=5, steps=12, goal=None)
    taken = Interventions(ablated=(("decoder.0.cross", 0),))
    found = []
    for graphs in (None, Graphs(fake_capture(log := []))):
        state = TrainState.begin(config)
        state.graphs = graphs
        steps = train(state)
        numbers = [next(steps).losses for _ in range(6)]
        state.intervene(taken)
        found.append(numbers + [report.losses for report in steps])
    assert found[0] == found[1]
    assert log.count("capture") == 2


def test_steps_are_eager_unless_graphs_are_asked_for():
    gpu, cpu = torch.device("cuda"), torch.device("cpu")
    eager, graphs = TrainConfig(), TrainConfig(cuda_graphs=True)
    assert not captures(eager, gpu, None)
    assert captures(graphs, gpu, None)
    assert not captures(graphs, cpu, None)
    assert not captures(graphs, gpu, Distributed(rank=0, n_processes=2, device=gpu))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_on_a_gpu_replayed_losses_equal_eager_ones(tiny):
    config = tiny(device="cuda", min_letters=5, max_letters=5, steps=100, goal=None)
    found = []
    for eager in (True, False):
        state = TrainState.begin(config.with_changes(cuda_graphs=not eager))
        found.append([loss for report in train(state) for loss in report.losses])
    assert found[0] == pytest.approx(found[1], abs=1e-4)

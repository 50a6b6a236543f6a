"""A cache with a limit in bytes."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

from transformer.anatomy.trace import trace
from transformer.asking.model import QUESTION_CACHE, snapshot_model
from transformer.config import RunConfig
from transformer.recording.map_computer import tensors_of
from transformer.recording.weights import Snapshot, Weights
from transformer.shared.bounded import BoundedCache, nbytes_of
from transformer.shared.interventions import NO_INTERVENTIONS
from transformer.tasks import resolved
from transformer.training.state import TrainState


def test_the_least_recently_used_value_is_evicted_when_all_values_exceed_the_limit():
    cache, made = BoundedCache(100), []

    def get(key, size):
        return cache.get(key, lambda: made.append(key) or f"value of {key}", lambda _: size)

    assert get("a", 40) == "value of a"
    get("b", 40)
    get("a", 40)
    get("c", 40)  # b is the least recently used
    assert cache.nbytes == 80
    get("a", 40)
    get("b", 40)
    assert made == ["a", "b", "c", "b"]


def test_a_value_larger_than_the_limit_is_returned_but_not_cached():
    cache = BoundedCache(100)
    cache.get("small", lambda: 1, lambda _: 60)
    assert cache.get("large", lambda: 2, lambda _: 101) == 2
    assert (cache.nbytes, cache.peek("small"), cache.peek("large")) == (60, 1, None)


def test_a_value_that_could_not_be_created_is_tried_again():
    cache = BoundedCache(100)
    with pytest.raises(ZeroDivisionError):
        cache.get("a", lambda: 1 // 0, lambda _: 1)
    assert cache.get("a", lambda: 3, lambda _: 1) == 3


def test_concurrent_threads_get_the_same_value():
    cache, made, got, gate = BoundedCache(100), [], [], threading.Barrier(8)

    def ask():
        gate.wait()
        got.append(cache.get("a", lambda: made.append(1) or object(), lambda _: 1))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert len({id(one) for one in got}) == 1


def test_nested_arrays_are_counted_at_any_depth():
    weights = {"a": np.zeros((3, 5), np.float32), "b": (np.zeros(7, np.float64), "text", None)}
    assert nbytes_of(Snapshot(step=1, source=weights)) == 60 + 56


@pytest.mark.parametrize("kind", ["asked", "trace"])
def test_models_and_traces_of_all_questions_together_stay_within_the_limit(monkeypatch, kind):
    monkeypatch.setattr(QUESTION_CACHE, "_entries", {})
    config = resolved(RunConfig(device="cpu").with_changes(d_model=64, n_heads=2))
    sizes = []
    for seed in range(4):
        weights = TrainState.begin(config.with_changes(seed=seed)).model.state_dict()
        snapshot = Snapshot(step=0, source={name: w.numpy() for name, w in weights.items()})
        nbytes = nbytes_of(snapshot)
        if not seed:
            monkeypatch.setattr(QUESTION_CACHE, "most_bytes", 3 * nbytes)
        if kind == "asked":
            snapshot_model(config, snapshot).answer("frog")
        else:
            trace(config, snapshot, "frog")
        sizes.append(QUESTION_CACHE.nbytes / nbytes)
    models = 1 if kind == "trace" else 0  # all traces share one model
    assert 1 <= sizes[0] - models < 2  # the weights, as part of the cached value
    assert 2 <= max(sizes) <= 3


@pytest.mark.parametrize("ask", [snapshot_model, lambda *of: trace(*of, "frog")], ids=["asked", "trace"])
def test_a_cached_value_of_a_step_does_not_keep_the_weights_of_its_run_in_memory(ask):
    state = TrainState.begin(RunConfig(device="cpu").with_changes(d_model=8, n_heads=2))
    row = b"".join(tensor.numpy().tobytes() for tensor in state.model.state_dict().values())
    weights = Weights()
    weights.append({0: row}, NO_INTERVENTIONS, tensors_of(state.model))
    made, run = ask(state.config, weights.snapshots[0]), weakref.ref(weights)
    assert ask(state.config, weights.snapshots[0]) is made
    del weights
    gc.collect()
    assert run() is None

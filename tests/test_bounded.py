"""A cache that is bounded in bytes."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from transformer.anatomy.passage import passage
from transformer.asking import QUESTIONS, asked
from transformer.bounded import BoundedCache, nbytes_of
from transformer.config import RunConfig
from transformer.recording.snapshot import Snapshot
from transformer.tasks import completed
from transformer.training.state import TrainState


def test_the_least_recently_used_goes_when_all_together_are_too_large():
    cache, made = BoundedCache(100), []

    def get(key, size):
        return cache.get(key, lambda: made.append(key) or f"value of {key}", lambda _: size)

    assert get("a", 40) == "value of a"
    get("b", 40)
    get("a", 40)
    get("c", 40)  # b was used last the longest ago
    assert cache.nbytes == 80
    get("a", 40)
    get("b", 40)
    assert made == ["a", "b", "c", "b"]


def test_a_value_beyond_the_limit_is_handed_over_and_not_held():
    cache = BoundedCache(100)
    cache.get("small", lambda: 1, lambda _: 60)
    assert cache.get("large", lambda: 2, lambda _: 101) == 2
    assert cache.nbytes <= 100


def test_what_could_not_be_made_is_tried_again():
    cache = BoundedCache(100)
    with pytest.raises(ZeroDivisionError):
        cache.get("a", lambda: 1 // 0, lambda _: 1)
    assert cache.get("a", lambda: 3, lambda _: 1) == 3


def test_threads_that_ask_at_once_get_one_value():
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


def test_arrays_are_counted_however_deep_they_lie():
    weights = {"a": np.zeros((3, 5), np.float32), "b": (np.zeros(7, np.float64), "text", None)}
    assert nbytes_of(Snapshot(step=1, weights=weights)) == 60 + 56


@pytest.mark.parametrize("kind", ["asked", "passage"])
def test_models_and_traces_of_all_questions_together_stay_within_the_limit(monkeypatch, kind):
    monkeypatch.setattr(QUESTIONS, "_entries", {})
    config = completed(RunConfig(device="cpu").with_changes(d_model=64, n_heads=2))
    sizes = []
    for seed in range(4):
        weights = TrainState.begin(config.with_changes(seed=seed)).model.state_dict()
        snapshot = Snapshot(step=0, weights={name: w.numpy() for name, w in weights.items()})
        if not seed:
            monkeypatch.setattr(QUESTIONS, "most_bytes", 5 * snapshot.nbytes)
        if kind == "asked":
            asked(config, snapshot).answer("frog")
        else:
            passage(config, snapshot, "frog")
        sizes.append(QUESTIONS.nbytes / snapshot.nbytes)
    assert 2 <= sizes[0] < 3  # the weights twice: as they were recorded, and in what was made of them
    assert 4 <= max(sizes) <= 5

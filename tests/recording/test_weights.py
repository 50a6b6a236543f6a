"""The weights of a run: the same numbers from memory and from the file, thinned evenly to a limit."""

from __future__ import annotations

import numpy as np
import pytest

from transformer.errors import InputError
from transformer.interventions import NO_INTERVENTIONS, Interventions
from transformer.recording import weights as module
from transformer.recording.weights import Weights

TENSORS = (("a", (2, 3)), ("b.weight", (5,)))
OFF = Interventions(ablated=(("encoder.0", 1),))


def numbers(step):
    return np.arange(11, dtype="<f4") + step


def filled(path, steps, taken=NO_INTERVENTIONS):
    made = Weights(path)
    made.append({step: numbers(step).tobytes() for step in steps}, taken, TENSORS)
    return made


def kept(weights):
    return [one.step for one in weights.snapshots]


def numbers_match(weights):
    """Check that each step has its own numbers."""
    for one in weights.snapshots:
        found = one.weights
        assert {name: array.shape for name, array in found.items()} == dict(TENSORS)
        assert np.array_equal(np.concatenate([array.ravel() for array in found.values()]), numbers(one.step))
    return True


@pytest.mark.parametrize("flushed", [False, True])
def test_each_step_has_its_numbers_in_memory_and_in_the_file(tmp_path, flushed):
    made = filled(tmp_path / "w", range(40))
    if flushed:
        made.flush()
    made.append({40: numbers(40).tobytes()}, OFF, TENSORS)
    assert kept(made) == [*range(41)]
    assert [one.interventions for one in made.snapshots][39:] == [NO_INTERVENTIONS, OFF]
    assert numbers_match(made)
    with pytest.raises(InputError, match=r"^The weights of step 41 are not kept any more"):
        made.read(41)


def test_the_newest_step_written_again_replaces_its_earlier_weights(tmp_path):
    made = filled(tmp_path / "w", range(5))
    made.flush()
    made.append({4: numbers(4).tobytes(), 5: numbers(5).tobytes()}, OFF, TENSORS)
    made.flush()
    other = Weights(tmp_path / "w")
    other.follow()
    for one in (made, other):
        assert kept(one) == [*range(6)]
        assert [step.interventions == OFF for step in one.snapshots] == 4 * [False] + 2 * [True]
        assert numbers_match(one)


@pytest.mark.parametrize(("path", "limit"), [(None, "IN_MEMORY"), ("w", "DISK_LIMIT")])
def test_thinning_repeatedly_drops_every_second_step_and_keeps_protected_ones(
    tmp_path, monkeypatch, path, limit
):
    monkeypatch.setattr(module, limit, 50 * 44 + 3)
    made = Weights(None if path is None else tmp_path / path)
    for at in range(0, 1000, 25):
        made.append({step: numbers(step).tobytes() for step in range(at, at + 25)}, NO_INTERVENTIONS, TENSORS)
        made.flush()
        made.thin_waiting({0, 333})
        made.thin({0, 333})
        assert made.nbytes <= 50 * 44 + 3
    assert {0, 333, 999, *range(992, 1000)} <= {*kept(made)}
    assert max(np.diff(kept(made))) <= 64
    assert numbers_match(made)
    if path is not None:
        assert (tmp_path / path).stat().st_size < 50 * 300


def test_a_step_that_is_thinned_while_steps_for_a_file_are_chosen_is_left_out(tmp_path, monkeypatch):
    made = filled(tmp_path / "w", range(6))
    chosen = module.steps_to_keep

    def thinned_meanwhile(*arguments):
        made.keep({0, 2, 5})
        return chosen(*arguments)

    monkeypatch.setattr(module, "steps_to_keep", thinned_meanwhile)
    records = made.records(10**6)
    assert [bytes(one.body) for one in records] == [numbers(step).tobytes() for step in (0, 2, 5)]


def test_following_a_file_reads_its_new_steps_and_all_of_a_rewritten_file(tmp_path):
    made, other = filled(tmp_path / "w", range(8)), Weights(tmp_path / "w")
    made.flush()
    other.follow(5)
    assert kept(other) == [*range(6)]
    for taken in (OFF, NO_INTERVENTIONS):  # the same step again, replacing what was read
        made.append({8: numbers(8).tobytes()}, taken, TENSORS)
        made.flush()
        other.follow()
        assert kept(other) == [*range(9)]
        assert other.snapshots[-1].interventions == taken
        assert numbers_match(other)
    made.keep({0, 3, 8})
    other.follow()
    assert kept(other) == [0, 3, 8]
    assert numbers_match(other)


def test_weights_not_yet_in_the_file_are_thinned_to_the_limit_of_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "IN_MEMORY", 40 * 44)
    made = filled(tmp_path / "w", range(30))
    made.flush()
    for step in range(30, 400):
        made.append({step: numbers(step).tobytes()}, NO_INTERVENTIONS, TENSORS)
        made.thin_waiting({0, 77})
        assert made.nbytes <= (30 + 40) * 44
    assert {*range(30), 77, 399} <= {*kept(made)}
    assert numbers_match(made)

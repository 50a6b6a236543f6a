"""The weights of a run: the same numbers from memory and from the file, thinned evenly to a limit."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from transformer.errors import InputError
from transformer.recording import weights as module
from transformer.recording.weights import Weights
from transformer.shared.interventions import NO_INTERVENTIONS, Interventions

TENSORS = (("a", (2, 3)), ("b.weight", (5,)))
OFF = Interventions(ablated=(("encoder.0", 1),))


def numbers(step):
    return np.arange(11, dtype="<f4") + step


def filled(steps, taken=NO_INTERVENTIONS, stored=None):
    made = Weights(stored)
    made.append({step: numbers(step).tobytes() for step in steps}, taken, TENSORS)
    return made


def kept(weights):
    return [snapshot.step for snapshot in weights.snapshots]


def numbers_match(weights):
    """Check that each step has its own numbers."""
    for snapshot in weights.snapshots:
        found = snapshot.weights
        assert {name: array.shape for name, array in found.items()} == dict(TENSORS)
        assert np.array_equal(
            np.concatenate([array.ravel() for array in found.values()]), numbers(snapshot.step)
        )
    return True


def test_a_step_is_read_from_memory_until_it_is_stored_and_then_from_the_file():
    asked = []
    made = filled(range(40), stored=lambda step: asked.append(step) or numbers(step).tobytes())
    assert numbers_match(made)
    assert asked == []
    made.note_stored(made.waiting(29))
    assert [*made.waiting(99)] == [*range(30, 40)]
    made.append({40: numbers(40).tobytes()}, OFF, TENSORS)
    assert numbers_match(made)
    assert asked == [*range(30)]
    assert [snapshot.interventions for snapshot in made.snapshots][39:] == [NO_INTERVENTIONS, OFF]
    with pytest.raises(InputError, match=r"^The weights of step 41 are not kept any more"):
        made.read(41)


def test_weights_that_were_replaced_while_they_were_written_wait_to_be_written_again():
    made = filled(range(5))
    written = made.waiting(9)
    made.append({4: numbers(4).tobytes() + b"", 5: numbers(5).tobytes()}, OFF, TENSORS)
    made.note_stored(written)
    assert [*made.waiting(9)] == [4, 5]
    assert kept(made) == [*range(6)]
    assert [step.interventions == OFF for step in made.snapshots] == 4 * [False] + 2 * [True]


@pytest.mark.parametrize("limit", ["IN_MEMORY", "DISK_LIMIT"])
def test_thinning_repeatedly_drops_every_second_step_and_keeps_protected_ones(monkeypatch, limit):
    monkeypatch.setattr(module, limit, 50 * 44 + 3)
    made = Weights(lambda step: numbers(step).tobytes())
    for at in range(0, 1000, 25):
        made.append({step: numbers(step).tobytes() for step in range(at, at + 25)}, NO_INTERVENTIONS, TENSORS)
        if limit == "DISK_LIMIT":
            made.note_stored(made.waiting(at + 25))
        made.thin_waiting({0, 333})
        made.thin({0, 333})
        assert made.nbytes <= 50 * 44 + 3
    assert {0, 333, 999, *range(992, 1000)} <= {*kept(made)}
    assert max(np.diff(kept(made))) <= 64
    assert numbers_match(made)


def test_a_step_that_is_thinned_while_steps_for_a_file_are_chosen_is_left_out(monkeypatch):
    made = filled(range(6))
    chosen = module.steps_to_keep

    def thinned_meanwhile(*arguments):
        found = chosen(*arguments)
        made.keep({0, 2, 5})
        return found

    monkeypatch.setattr(module, "steps_to_keep", thinned_meanwhile)
    assert kept(made.chosen(10**6)) == [0, 2, 5]


def test_a_step_that_is_recorded_while_steps_for_a_file_are_chosen_is_left_out(monkeypatch):
    made = filled(range(3))
    staying = made._staying
    more = threading.Thread(target=made.append, args=({3: numbers(3).tobytes()}, NO_INTERVENTIONS, TENSORS))

    def recorded_meanwhile(*arguments):
        more.start()
        more.join(0.2)
        return staying(*arguments)

    monkeypatch.setattr(made, "_staying", recorded_meanwhile)
    assert kept(made.chosen(10**6)) == [0, 1, 2]
    more.join()
    assert kept(made) == [0, 1, 2, 3]


def test_following_a_file_shows_exactly_its_steps_and_keeps_known_snapshots():
    other = Weights(lambda step: numbers(step).tobytes())
    other.follow([(step, NO_INTERVENTIONS) for step in range(6)], TENSORS)
    first = other.snapshots[0]
    other.follow([(0, NO_INTERVENTIONS), (5, OFF)], TENSORS)
    assert kept(other) == [0, 5]
    assert other.snapshots[0] is first
    assert other.snapshots[1].interventions == OFF
    assert numbers_match(other)


def test_weights_not_yet_in_the_file_are_thinned_to_the_limit_of_memory(monkeypatch):
    monkeypatch.setattr(module, "IN_MEMORY", 40 * 44)
    made = filled(range(30), stored=lambda step: numbers(step).tobytes())
    made.note_stored(made.waiting(30))
    for step in range(30, 400):
        made.append({step: numbers(step).tobytes()}, NO_INTERVENTIONS, TENSORS)
        made.thin_waiting({0, 77})
        assert made.nbytes <= (30 + 40) * 44
    assert {*range(30), 77, 399} <= {*kept(made)}
    assert numbers_match(made)

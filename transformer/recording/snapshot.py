"""A snapshot: the weights at one step. Immutable and free of torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from transformer.interventions import NOTHING, Interventions
from transformer.recording.shelf import Shelf, bytes_in_memory
from transformer.recording.stored import Array

SNAPSHOT_EVERY = 25
"""Steps between two snapshots, once the first steps are over."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Snapshot:
    """The model of one step, as numbers."""

    step: int
    weights: Mapping[str, Array]
    """Name of the parameter to its numbers."""
    interventions: Interventions = NOTHING
    """What was taken away from the model at that step."""

    @property
    def nbytes(self) -> int:
        """Memory of the weights."""
        return bytes_in_memory(self.weights)

    def in_memory(self) -> Snapshot:
        """The same with its weights at hand."""
        return replace(self, weights=dict(self.weights))

    def shelved(self, shelf: Shelf) -> Snapshot:
        """The same with its weights on disk."""
        return replace(self, weights=shelf.put(self.weights))


def snapshot_is_due(step: int) -> bool:
    """Dense while most changes, sparser later: 0 to 5, every 5th to 50, then every 25th step."""
    return step <= 5 or (step <= 50 and step % 5 == 0) or step % SNAPSHOT_EVERY == 0

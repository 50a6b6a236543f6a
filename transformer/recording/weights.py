"""The weights of a run's steps: in memory until they are in the run's file, then read from the file."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod

import numpy as np

from transformer.errors import InputError
from transformer.recording.frame import Array
from transformer.recording.recording import FILLED, nearest_step, steps_to_keep
from transformer.shared.interventions import NO_INTERVENTIONS, Interventions

DISK_LIMIT = 128 * 2**20
"""Maximum bytes of the weights of one run in its file; all weights of a default run fit."""
IN_MEMORY = 32 * 2**20
"""Maximum bytes of weights that are in memory and not in a file, after each thinning."""

Tensors = tuple[tuple[str, tuple[int, ...]], ...]
"""Name and shape of each parameter, in the order in which the weights of a step are stored."""
Stored = Callable[[int], bytes]
"""Reads the weights of a step from a file, as bytes: see `Weights.body`. Raises InputError."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Snapshot:
    """The weights at one step. Immutable and free of torch."""

    step: int
    interventions: Interventions = NO_INTERVENTIONS
    """The interventions at that step."""
    source: Weights | Mapping[str, Array] = field(repr=False)
    """The store from which the numbers are read on demand, or the numbers themselves."""

    @property
    def weights(self) -> Mapping[str, Array]:
        """Parameters by name, as float32 numbers. Raises InputError if they are not kept any more, or cannot
        be read."""
        return self.source.read(self.step) if isinstance(self.source, Weights) else self.source

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers while they are in use."""
        if isinstance(self.source, Weights):
            return self.source.nbytes_each
        return sum(array.nbytes for array in self.source.values())


class Weights:
    """The weights of one run. One thread appends; any thread reads and thins, and one stores them in a file.

    Thinning only forgets: the file follows with its next transaction.

    Args:
        stored: reads a step that is in the file; None where there is no file.
    """

    def __init__(self, stored: Stored | None = None) -> None:
        self.snapshots: tuple[Snapshot, ...] = ()
        """In order of step. Replaced whole, so that readers need no lock."""
        self.tensors: Tensors = ()
        self.stored = stored
        self._lock = threading.RLock()
        self._places: dict[int, bytes | None] = {}  # numbers by step; None where they are in the file

    @property
    def nbytes_each(self) -> int:
        """Bytes of the weights of one step."""
        return 4 * sum(prod(shape) for _, shape in self.tensors)

    @property
    def nbytes(self) -> int:
        """Bytes of all weights, in the file or in memory."""
        return self.nbytes_each * len(self.snapshots)

    def append(self, steps: Mapping[int, bytes], interventions: Interventions, tensors: Tensors) -> None:
        """Add the weights of further steps, ascending; snapshots of the same and of later steps are dropped.

        Args:
            steps: the bytes of each step, as `body` returns them; at least one step.
        """
        with self._lock:
            self.tensors = tensors
            first = min(steps)
            self._places.update(steps)
            made = (Snapshot(step=step, interventions=interventions, source=self) for step in steps)
            self.snapshots = (*(snapshot for snapshot in self.snapshots if snapshot.step < first), *made)

    def read(self, step: int) -> dict[str, Array]:
        """Parameters at a step by name, as float32 numbers. Raises InputError as `body`."""
        numbers = np.frombuffer(self.body(step), dtype="<f4")
        arrays, at = {}, 0
        for name, shape in self.tensors:
            n = prod(shape)
            arrays[name] = numbers[at : at + n].reshape(shape)
            at += n
        return arrays

    def body(self, step: int) -> bytes:
        """The parameters at a step as bytes, float32, little-endian.

        Raises:
            InputError: they are not kept any more, or cannot be read from the file.
        """
        with self._lock:
            is_stored, place = step in self._places, self._places.get(step)
        if place is not None:
            return place
        if not is_stored or self.stored is None:
            raise InputError(f"The weights of step {step:,} are not kept any more; choose another step.")
        return self.stored(step)

    def chosen(self, limit: int, protected: Collection[int] = ()) -> Weights:
        """Steps within a limit in bytes, chosen as in `thin`, all in memory; unreadable ones are left out."""
        made = Weights()
        with self._lock:
            stay = self._staying(limit, protected)
            snapshots = {snapshot.step: snapshot for snapshot in self.snapshots}
        for step in sorted(stay):
            with suppress(InputError):  # thinned meanwhile
                made.append({step: self.body(step)}, snapshots[step].interventions, self.tensors)
        return made

    # Thinning.

    def thin_waiting(self, protected: Collection[int]) -> None:
        """Thin the steps that are not in a file if they exceed `IN_MEMORY`; `protected` as in `thin`."""
        with self._lock:
            waiting = [step for step, place in self._places.items() if place is not None]
            if len(waiting) * self.nbytes_each > IN_MEMORY:
                written = self._places.keys() - {*waiting}
                room = int(FILLED * IN_MEMORY / self.nbytes_each)
                self.keep(written | steps_to_keep(waiting, room, protected))

    def thin(self, protected: Collection[int]) -> None:
        """Thin the weights if they exceed `DISK_LIMIT`.

        Args:
            protected: steps that stay, in addition to the first and the last, as far as there is room.
        """
        with self._lock:
            if self.nbytes > DISK_LIMIT:
                self.keep(self._staying(FILLED * DISK_LIMIT, protected))

    def _staying(self, limit: float, protected: Collection[int]) -> set[int]:
        """The steps that stay within a limit in bytes; at least the first and the last."""
        steps, room = [snapshot.step for snapshot in self.snapshots], int(limit // max(1, self.nbytes_each))
        return steps_to_keep(steps, room, protected)

    def keep_few(self, few: int, protected: Collection[int]) -> bool:
        """Keep only about `few` evenly spaced steps, and the first, the last and the protected ones.

        Returns whether there were more.
        """
        with self._lock:
            steps = [snapshot.step for snapshot in self.snapshots]
            even = {nearest_step(steps, steps[-1] * i // few) for i in range(few)} if steps else set()
            self.keep({*even, *steps[:1], *steps[-1:], *protected})
            return len(self.snapshots) < len(steps)

    def keep(self, stay: Set[int | None]) -> None:
        """Keep only these steps."""
        with self._lock:
            self._places = {step: place for step, place in self._places.items() if step in stay}
            self.snapshots = tuple(snapshot for snapshot in self.snapshots if snapshot.step in self._places)

    # The file.

    def waiting(self, last: int) -> dict[int, bytes]:
        """The weights of the steps up to `last` that are not in the file."""
        with self._lock:
            return {step: place for step, place in self._places.items() if place is not None and step <= last}

    def note_stored(self, written: Mapping[int, bytes]) -> None:
        """Note that these weights are in the file, to be read there unless they were replaced meanwhile."""
        with self._lock:
            for step, body in written.items():
                if self._places.get(step) is body:
                    self._places[step] = None

    def follow(self, steps: Collection[tuple[int, Interventions]], tensors: Tensors) -> None:
        """Note that exactly these steps are in the file, and drop all others."""
        by_step = {snapshot.step: snapshot for snapshot in self.snapshots}
        for step, interventions in steps:
            if step not in by_step or by_step[step].interventions != interventions:
                by_step[step] = Snapshot(step=step, interventions=interventions, source=self)
        with self._lock:
            self.tensors = tensors
            self._places = dict.fromkeys(step for step, _ in steps)
            self.snapshots = tuple(by_step[step] for step in sorted(self._places))

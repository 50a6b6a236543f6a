"""The weights of a run's steps: in memory until they are in the run's file, then read from it by position."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

import msgspec
import numpy as np

from transformer.errors import InputError
from transformer.interventions import NO_INTERVENTIONS, Interventions
from transformer.recording.frame import Array
from transformer.recording.frames import FILLED, nearest_step, steps_to_keep
from transformer.recording.records import Entry, Record, append, body_of, compact, scan, stands

DISK_LIMIT = 128 * 2**20
"""Maximum bytes of the weights of one run in its file; all weights of a default run fit."""
IN_MEMORY = 32 * 2**20
"""Maximum bytes of weights that are in memory and not in a file."""

Tensors = tuple[tuple[str, tuple[int, ...]], ...]
"""Name and shape of each parameter, in the order of the numbers."""


@dataclass(frozen=True)
class _Facts:
    """The facts in front of the numbers of one step."""

    step: int
    interventions: Interventions
    tensors: Tensors


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
        """Name of each parameter to its float32 numbers. Raises InputError if they were thinned."""
        return self.source.read(self.step) if isinstance(self.source, Weights) else self.source

    @property
    def nbytes(self) -> int:
        """Memory of the numbers while they are in use."""
        if isinstance(self.source, Weights):
            return self.source.nbytes_each
        return sum(array.nbytes for array in self.source.values())


class Weights:
    """The weights of one run. One thread appends and thins; any thread reads, and a second one may flush.

    Args:
        path: the file; if it is None, all weights stay in memory.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.snapshots: tuple[Snapshot, ...] = ()
        """In order of step. Replaced whole, so that readers need no lock."""
        self.tensors: Tensors = ()
        self._path, self._lock = path, threading.RLock()
        self._places: dict[int, Entry | Record] = {}  # step to where its numbers are: in the file, or here
        self._end = 0  # of the known part of the file
        self._followed: Entry | None = None  # the last record read from another process's file

    @property
    def nbytes_each(self) -> int:
        """Bytes of the weights of one step."""
        return 4 * sum(prod(shape) for _, shape in self.tensors)

    @property
    def nbytes(self) -> int:
        """Bytes of all weights, in the file or in memory."""
        return self.nbytes_each * len(self.snapshots)

    def append(self, steps: Mapping[int, bytes], interventions: Interventions, tensors: Tensors) -> None:
        """Add the weights of further steps, in order; a step that is there already is replaced."""
        with self._lock:
            self.tensors = tensors
            first = min(steps)
            before = self._places.pop(first, None)
            if isinstance(before, Entry) and before.end == self._end:
                self._end = before.start  # its record will be overwritten
            for step, numbers in steps.items():
                self._places[step] = Record(
                    msgspec.json.encode(_Facts(step, interventions, tensors)), numbers
                )
            made = (Snapshot(step=step, interventions=interventions, source=self) for step in steps)
            self.snapshots = (*(one for one in self.snapshots if one.step < first), *made)

    def read(self, step: int) -> dict[str, Array]:
        """The parameters at a step. Raises InputError."""
        numbers = np.frombuffer(self.body(step), dtype="<f4")
        found, at = {}, 0
        for name, shape in self.tensors:
            n = prod(shape)
            found[name] = numbers[at : at + n].reshape(shape)
            at += n
        return found

    def body(self, step: int) -> bytes:
        """The parameters at a step as bytes, float32, little-endian. Raises InputError."""
        with self._lock:
            place = self._places.get(step)
            if place is None:
                raise InputError(f"The weights of step {step:,} are not kept any more; choose another step.")
            if isinstance(place, Record):
                return place.body
            assert self._path is not None
            return body_of(self._path, place)

    def records(self, limit: int, protected: Collection[int] = ()) -> list[Record]:
        """Records of evenly chosen steps within a limit in bytes; steps that cannot be read are left out."""
        chosen = []
        for step in sorted(self._staying(limit, protected)):
            with suppress(InputError), self._lock:
                body = self.body(step)  # refuses a step that was thinned meanwhile
                chosen.append(Record(self._places[step].facts, body))
        return chosen

    # Thinning.

    def thin_waiting(self, protected: Collection[int]) -> None:
        """Thin the steps that are not in a file if they exceed `IN_MEMORY`: see `thin`."""
        with self._lock:
            waiting = [step for step, place in self._places.items() if isinstance(place, Record)]
            if len(waiting) * self.nbytes_each > IN_MEMORY:
                written = self._places.keys() - {*waiting}
                room = int(FILLED * IN_MEMORY / self.nbytes_each)
                self.keep(written | steps_to_keep(waiting, room, protected))

    def thin(self, protected: Collection[int]) -> None:
        """Thin the weights if they exceed `DISK_LIMIT`. Raises OSError.

        Args:
            protected: steps that stay, in addition to the first and the last, as far as there is room.
        """
        with self._lock:
            if self.nbytes > DISK_LIMIT:
                self.keep(self._staying(FILLED * DISK_LIMIT, protected))

    def _staying(self, limit: float, protected: Collection[int]) -> set[int]:
        """The steps that stay within a limit."""
        steps, room = [one.step for one in self.snapshots], int(limit // max(1, self.nbytes_each))
        return steps_to_keep(steps, room, protected)

    def keep_few(self, few: int, protected: Collection[int]) -> bool:
        """Keep only `few` evenly chosen steps, and the first, the last and the protected ones.

        Returns whether there were more. Raises OSError.
        """
        with self._lock:
            steps = [one.step for one in self.snapshots]
            even = {nearest_step(steps, steps[-1] * i // few) for i in range(few)} if steps else set()
            self.keep({*even, *steps[:1], *steps[-1:], *protected})
            return len(self.snapshots) < len(steps)

    def keep(self, stay: Set[int | None]) -> None:
        """Keep only these steps. Raises OSError."""
        with self._lock:
            before = self._places
            places = {step: place for step, place in before.items() if step in stay}
            if len(places) == len(before):
                return
            written = {step: place for step, place in places.items() if isinstance(place, Entry)}
            if len(written) < sum(isinstance(place, Entry) for place in before.values()):
                assert self._path is not None
                entries = compact(self._path, [*written.values()])
                self._end = entries[-1].end if entries else 0
                places |= dict(zip(written, entries, strict=True))
            self._places = places
            self.snapshots = tuple(one for one in self.snapshots if one.step in places)

    # The file.

    def move_to(self, path: Path) -> None:
        """Use this file from now on; `flush` writes also the weights so far to it. Raises InputError."""
        with self._lock:
            for step in list(self._places):
                facts = self._places[step].facts
                self._places[step] = Record(facts, self.body(step))
            self._path, self._end = path, 0

    def flush(self) -> None:
        """Write the weights in memory to the file; any process can then read them, but they are not synced.

        Raises OSError.
        """
        with self._lock:
            waiting = [(step, place) for step, place in self._places.items() if isinstance(place, Record)]
            if self._path is None or not waiting:
                return
            entries = append(self._path, [record for _, record in waiting], at=self._end)
            self._end = entries[-1].end
            self._places.update(zip((step for step, _ in waiting), entries, strict=True))

    def follow(self, last: int | None = None) -> None:
        """Read what another process has appended since the last call; if it rewrote the file, read all.

        Args:
            last: newest step to read; later records of the file are ignored.

        Raises:
            OSError: the file cannot be read.
        """
        if self._path is None or not self._path.exists():
            return
        with self._lock:
            if self._followed is not None and not stands(self._path, self._followed):
                self._places, self._end = {}, 0
            known = {one.step: one for one in self.snapshots}
            for entry in scan(self._path, self._end):
                try:
                    facts = msgspec.json.decode(entry.facts, type=_Facts)
                except (ValueError, RecursionError):
                    break
                sizes = [size for _, shape in facts.tensors for size in shape]
                n_numbers = sum(prod(shape) for _, shape in facts.tensors)
                if facts.step < 0 or min(sizes, default=0) < 1 or 4 * n_numbers != entry.nbytes:
                    break  # not the weights of a step: a file can hold anything
                if last is not None and facts.step > last:
                    break
                self.tensors, self._end, self._followed = facts.tensors, entry.end, entry
                before = known.get(facts.step)
                if before is None or before.interventions != facts.interventions:
                    known[facts.step] = Snapshot(
                        step=facts.step, interventions=facts.interventions, source=self
                    )
                self._places[facts.step] = entry
            self.snapshots = tuple(known[step] for step in sorted(self._places))

"""The frames of a run in order: what was recorded of each step, bounded in memory however long the run is."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import pairwise
from typing import Any, overload

from transformer.evaluation import Evaluation
from transformer.recording.chunk import Chunk, joined
from transformer.recording.frame import Frame, Measurement, Output, Outputs, Probe

MEMORY_LIMIT = 32 * 2**20
"""Bytes that the frames of one run take."""
BESIDE = 6_000
"""About so many bytes a record takes beside the numbers of its maps."""
DENSE = 64
"""So many of the newest steps stay whatever is thinned: moments are looked for among them."""
FILLED = 0.7
"""Of a limit, after thinning: it is seldom done."""
SPARSE = 32
"""What costs more than maps stays once in so many steps, or in so many of those that stay."""
_BUILT = 32
"""Frames that are at hand: several panels of a page show the same."""
NOTHING_WRITTEN = Output(text="", stopped=True, right=False, pieces=(), ids=())

Recorded = Chunk | Measurement | Outputs | Evaluation
Numbers = Callable[[int], tuple[float, float | None]]
"""From a step to (seconds of training, loss)."""


class Frames(Sequence[Frame]):
    """What was recorded of a run, oldest first. Immutable; a frame is put together when it is asked for.

    Args:
        records: in the order in which they were made.
        numbers: tells seconds and loss of a step.
        aim: which score tells what a head is to find.
        generation: counts how often something of the past was taken away; what was only added to keeps it.
    """

    def __init__(
        self,
        records: Iterable[Recorded] = (),
        *,
        numbers: Numbers = lambda step: (0.0, None),
        aim: str = "mirror",
        generation: int = 0,
    ) -> None:
        self.records: tuple[Recorded, ...] = ()
        """All of it, in the order in which it was made."""
        self.generation, self._numbers, self._aim = generation, numbers, aim
        self._every = 1  # so many steps older ones were thinned to
        self._chunks: dict[str, tuple[Chunk, ...]] = {}  # of each word, in order of step
        self._measured: dict[int, Measurement] = {}
        self._written: dict[int, Outputs] = {}
        self._evaluated: dict[int, Evaluation] = {}
        self._built: dict[int, Frame] = {}
        self.steps: tuple[int, ...] = ()
        """The steps of all frames, ascending."""
        self._add(tuple(records))

    # As a sequence.

    def __len__(self) -> int:
        return len(self.steps)

    @overload
    def __getitem__(self, i: int) -> Frame: ...
    @overload
    def __getitem__(self, i: slice) -> list[Frame]: ...
    def __getitem__(self, i: int | slice) -> Frame | list[Frame]:
        if isinstance(i, slice):
            return [self._frame(step) for step in self.steps[i]]
        return self._frame(self.steps[i])

    def of_step(self, step: int) -> Frame:
        """The frame of one of `steps`."""
        return self._frame(step)

    @property
    def words(self) -> tuple[str, ...]:
        """The tracked words, in the order in which they came."""
        return tuple(self._chunks)

    def chunks_of(self, text: str) -> tuple[Chunk, ...]:
        """What was recorded of one word, in order of step."""
        return self._chunks.get(text, ())

    def steps_of(self, text: str) -> tuple[int, ...]:
        """The steps of the frames that show one word."""
        return tuple(step for chunk in self.chunks_of(text) for step in chunk.steps)

    def place_of(self, text: str, step: int) -> tuple[Chunk, int] | None:
        """The chunk that has a word at a step, and where in it; None where that was not recorded."""
        return _find(self._chunks.get(text, ()), step)

    def measured_at(self, step: int) -> Measurement | None:
        """The newest measurement up to a step; the first of all where that is later."""
        found: Measurement | None = _newest(self._measured, step)
        return found

    def evaluated_at(self, step: int) -> Evaluation | None:
        """The newest evaluation up to a step; the first of all where that is later."""
        found: Evaluation | None = _newest(self._evaluated, step)
        return found

    def written_at(self, step: int) -> Outputs | None:
        """The newest outputs up to a step; the first of all where that is later."""
        found: Outputs | None = _newest(self._written, step)
        return found

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """All measurements, in order of step."""
        return tuple(self._measured[step] for step in sorted(self._measured))

    @property
    def changes(self) -> tuple[int, ...]:
        """The steps at which something else than maps is new: scores, outputs, held-out words, or what is
        taken away."""
        chunks = next(iter(self._chunks.values()), ())
        taken = {
            later.steps[0] for one, later in pairwise(chunks) if later.interventions != one.interventions
        }
        return tuple(sorted({*self._measured, *self._written, *self._evaluated, *taken}))

    @property
    def nbytes(self) -> int:
        """Memory of what was recorded."""
        chunks = [chunk for chunks in self._chunks.values() for chunk in chunks]
        few = len(chunks) + len(self._measured) + len(self._written) + len(self._evaluated)
        return sum(chunk.nbytes for chunk in chunks) + BESIDE * few

    # Others like it.

    def extended(self, records: Sequence[Recorded]) -> Frames:
        """With what has been recorded since, or of the past of a word that came later."""
        return self._like(records, self)

    def without(self, text: str) -> Frames:
        """Without one word."""
        kept = [one for one in self.records if not isinstance(one, Chunk) or one.word.text != text]
        return self._like(kept, None)

    def with_numbers(self, numbers: Numbers) -> Frames:
        """The same with another table of seconds and losses."""
        made = self._like((), self)
        made._numbers, made._built = numbers, {}
        return made

    def thinned(self, protected: Set[int], limit: int) -> Frames:
        """Within the limit, evenly, and with room for more: of all but the newest steps one in so many stays.

        Args:
            protected: steps that stay, beside the first and the last.
        """
        if self.nbytes <= limit:
            return self
        dense = min(DENSE, int(FILLED * limit / 4 * len(self.steps) / self.nbytes))
        every = self._every
        found = self._sparser(every, dense, protected)
        while found.nbytes > FILLED * limit and every <= self.steps[-1]:
            every *= 2
            found = self._sparser(every, dense, protected)
        found._every = every
        return found

    def _sparser(self, every: int, dense: int, protected: Set[int]) -> Frames:
        stay = thinned_steps(self.steps, every) | {*self.steps[len(self.steps) - dense :], *protected}
        kept: list[Recorded] = []
        dear: tuple[Mapping[int, Recorded], ...] = self._measured, self._written, self._evaluated
        for few in dear:
            sparse: dict[int, int] = {}  # the first of each stretch
            for step in sorted(few):
                sparse.setdefault(step // (SPARSE * every), step)
            kept += [one for step, one in sorted(few.items()) if step in {*sparse.values()} | stay]
        for chunks in self._chunks.values():
            runs: list[list[Chunk]] = []
            for chunk in chunks:
                inside = [i for i, step in enumerate(chunk.steps) if step in stay]
                if not inside:
                    continue
                part = chunk.at(inside)
                if runs and part.continues(runs[-1][0]) and sum(len(one.steps) for one in runs[-1]) < DENSE:
                    runs[-1].append(part)
                else:
                    runs.append([part])
            kept += [joined(run) for run in runs]
        return self._like(kept, None)

    def _like(self, records: Sequence[Recorded], upon: Frames | None) -> Frames:
        made = Frames(
            numbers=self._numbers,
            aim=self._aim,
            generation=self.generation + (upon is None),
        )
        made._every = self._every
        if upon is not None:
            made.records, made.steps = upon.records, upon.steps
            made._chunks, made._measured = dict(upon._chunks), dict(upon._measured)
            made._written, made._evaluated = dict(upon._written), dict(upon._evaluated)
            made._built = dict(upon._built)
        made._add(tuple(records))
        return made

    # What is inside.

    def _add(self, records: tuple[Recorded, ...]) -> None:
        self.records += records
        new: set[int] = set()
        for one in records:
            if isinstance(one, Measurement):
                self._measured[one.step] = one
            elif isinstance(one, Outputs):
                self._written[one.step] = one
            elif isinstance(one, Evaluation):
                self._evaluated[one.step] = one
            else:
                self._chunks[one.word.text] = _placed(self._chunks.get(one.word.text, ()), one)
                new.update(one.steps)
        if new:
            past = self.steps and min(new) <= self.steps[-1]
            self.steps = tuple(sorted({*self.steps, *new})) if past else (*self.steps, *sorted(new))
        first = min([*new, *(one.step for one in records if not isinstance(one, Chunk))], default=0)
        self._built = {step: frame for step, frame in self._built.items() if step < first}

    def _frame(self, step: int) -> Frame:
        frame = self._built.get(step)
        if frame is None:
            frame = self._made(step)
            if len(self._built) >= _BUILT:
                self._built = dict(list(self._built.items())[-_BUILT // 2 :])
            self._built[step] = frame
        return frame

    def _made(self, step: int) -> Frame:
        measurement, evaluation = self.measured_at(step), self.evaluated_at(step)
        assert measurement is not None
        assert evaluation is not None
        places = (_find(chunks, step) for chunks in self._chunks.values())
        found = [place for place in places if place is not None]
        seconds, loss = self._numbers(step)
        return Frame(
            step=step,
            seconds=seconds,
            loss=loss,
            evaluation=evaluation,
            measurement=measurement,
            probes=tuple(_probe(chunk, i, self.written_at(step)) for chunk, i in found),
            axes=found[0][0].axes,
            maps=tuple(chunk.weights(i) for chunk, i in found),
            aim=self._aim,
            interventions=found[0][0].interventions,
        )


def _probe(chunk: Chunk, i: int, newest: Outputs | None) -> Probe:
    """What was recorded of a word at one step.

    Args:
        newest: the outputs of that step, or the newest before it; a word that came later is not among them.
    """
    word, step, drawn_at = chunk.word, chunk.steps[i], chunk.drawn_at
    output = None if newest is None or newest.step > step else newest.by_word.get(word.text)
    written = output or NOTHING_WRITTEN
    return Probe(
        **{name: getattr(word, name) for name in word.__dataclass_fields__},
        predicted=chunk.predictions(i),
        output=written.text,
        output_step=None if output is None or newest is None else newest.step,
        stopped=written.stopped,
        right=written.right,
        pieces=written.pieces,
        drawn_at=drawn_at if drawn_at is not None and drawn_at <= step else None,
        looked_up_to=min(step, chunk.looked_up_to),
    )


def thinned_steps(steps: Sequence[int], every: int) -> set[int]:
    """Of ascending steps the multiples of a number, the first and the last: the same each time it is done."""
    return {step for step in steps if step % every == 0} | {*steps[:1], *steps[-1:]}


def nearest_step(steps: Sequence[int], step: int) -> int | None:
    """Of ascending steps the one nearest to a step; among equals the earlier. None where there is none."""
    if not steps:
        return None
    place = bisect_right(steps, step)
    return min(steps[max(0, place - 1) : place + 1], key=lambda one: abs(one - step))


def _newest(by_step: dict[int, Any], step: int) -> Any:
    """What was made last up to a step; the first of all where that is later."""
    steps = [at for at in by_step if at <= step]
    return by_step[max(steps)] if steps else by_step[min(by_step)] if by_step else None


def _placed(chunks: tuple[Chunk, ...], new: Chunk) -> tuple[Chunk, ...]:
    """Chunks of a word with a new one at its place; where both have a step, the new one's stays."""
    if not chunks or chunks[-1].steps[-1] < new.steps[0]:
        return (*chunks, new)
    trimmed = [_less(chunk, new) for chunk in chunks]
    every = [*(chunk for chunk in trimmed if chunk is not None), new]
    return tuple(sorted(every, key=lambda chunk: chunk.steps[0]))


def _less(chunk: Chunk, new: Chunk) -> Chunk | None:
    """A chunk without the steps that a new one has."""
    if chunk.steps[-1] < new.steps[0] or chunk.steps[0] > new.steps[-1]:
        return chunk
    left = [i for i, step in enumerate(chunk.steps) if step not in set(new.steps)]
    return chunk.at(left) if left else None


def _find(chunks: tuple[Chunk, ...], step: int) -> tuple[Chunk, int] | None:
    """The chunk that has this step, and where in it."""
    place = bisect_right(chunks, step, key=lambda chunk: chunk.steps[0])
    having = (chunk for chunk in reversed(chunks[:place]) if step in chunk.steps)
    return next(((chunk, chunk.steps.index(step)) for chunk in having), None)

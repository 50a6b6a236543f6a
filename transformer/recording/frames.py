"""The frames of a run in order: what was recorded of each step, bounded in memory however long the run is."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence, Set
from copy import copy
from itertools import pairwise
from typing import Any, TypeVar, overload

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
NOT_EVALUATED = Evaluation(step=0, right=0, total=0, loss=0.0, free_loss=0.0, token_accuracy=0.0)
"""Of a model of the user's own, which has no held-out words here."""
NOTHING_WRITTEN = Output(text="", stopped=True, right=False, pieces=(), ids=())

Recorded = Chunk | Measurement | Outputs | Evaluation
Numbers = Callable[[int], tuple[float, float | None]]
"""From a step to (seconds of training, loss)."""
Costly = TypeVar("Costly", Measurement, Outputs, Evaluation)
"""What costs more than maps, and so is not there for every step."""


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
        self.steps: tuple[int, ...] = ()
        """The steps of all frames, ascending."""
        self.generation, self._numbers, self._aim = generation, numbers, aim
        self._every = 1  # so many steps older ones were thinned to
        self._chunks: dict[str, tuple[Chunk, ...]] = {}  # of each word, in order of step
        self._costly: dict[type, dict[int, Any]] = {Measurement: {}, Outputs: {}, Evaluation: {}}  # by step
        self._built: dict[int, Frame] = {}
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
            return [self.of_step(step) for step in self.steps[i]]
        return self.of_step(self.steps[i])

    def of_step(self, step: int) -> Frame:
        """The frame of one of `steps`."""
        frame = self._built.get(step)
        if frame is None:
            frame = self._made(step)
            if len(self._built) >= _BUILT:
                self._built = dict(list(self._built.items())[-_BUILT // 2 :])
            self._built[step] = frame
        return frame

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
        chunks = self.chunks_of(text)
        begun = chunks[: bisect_right(chunks, step, key=lambda chunk: chunk.steps[0])]
        having = (chunk for chunk in reversed(begun) if step in chunk.steps)
        return next(((chunk, chunk.steps.index(step)) for chunk in having), None)

    def measured_at(self, step: int) -> Measurement | None:
        """The newest measurement up to a step; the first of all where that is later."""
        return self._newest(Measurement, step)

    def evaluated_at(self, step: int) -> Evaluation | None:
        """The newest evaluation up to a step; the first of all where that is later."""
        return self._newest(Evaluation, step)

    def written_at(self, step: int) -> Outputs | None:
        """The newest outputs up to a step; the first of all where that is later."""
        return self._newest(Outputs, step)

    def _newest(self, kind: type[Costly], step: int) -> Costly | None:
        by_step: dict[int, Costly] = self._costly[kind]
        nearest = max((at for at in by_step if at <= step), default=min(by_step, default=None))
        return None if nearest is None else by_step[nearest]

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """All measurements, in order of step."""
        return tuple(one for _, one in sorted(self._costly[Measurement].items()))

    @property
    def changes(self) -> tuple[int, ...]:
        """The steps at which something else than maps is new: scores, outputs, held-out words, or what is
        taken away."""
        chunks = next(iter(self._chunks.values()), ())
        taken = {
            later.steps[0] for one, later in pairwise(chunks) if later.interventions != one.interventions
        }
        return tuple(sorted(taken.union(*self._costly.values())))

    @property
    def nbytes(self) -> int:
        """Memory of what was recorded."""
        chunks = [chunk for chunks in self._chunks.values() for chunk in chunks]
        n_records = len(chunks) + sum(map(len, self._costly.values()))
        return sum(chunk.nbytes for chunk in chunks) + BESIDE * n_records

    # Others like it.

    def extended(self, records: Sequence[Recorded], numbers: Numbers | None = None) -> Frames:
        """With what has been recorded since, or of the past of a word that came later.

        Args:
            numbers: another table of seconds and losses.
        """
        made = copy(self)
        made._chunks, made._built = dict(self._chunks), dict(self._built)
        made._costly = {kind: dict(by_step) for kind, by_step in self._costly.items()}
        if numbers is not None:
            made._numbers, made._built = numbers, {}
        made._add(tuple(records))
        return made

    def without(self, text: str) -> Frames:
        """Without one word."""
        kept = [one for one in self.records if not isinstance(one, Chunk) or one.word.text != text]
        return self._reduced(kept, self._every)

    def until(self, step: int) -> Frames:
        """Up to a step."""
        kept: list[Recorded] = []
        for one in self.records:
            if not isinstance(one, Chunk):
                kept += [one] if one.step <= step else []
            elif inside := [i for i, at in enumerate(one.steps) if at <= step]:
                kept.append(one.at(inside))
        return self._reduced(kept, self._every)

    def thinned(self, protected: Set[int], limit: int) -> Frames:
        """Within the limit, evenly, and with room for more: of all but the newest steps one in so many stays.

        Args:
            protected: steps that stay, beside the first and the last.
        """
        if self.nbytes <= limit:
            return self
        dense = min(DENSE, int(FILLED * limit / 4 * len(self.steps) / self.nbytes))
        always = {*self.steps[len(self.steps) - dense :], *protected}
        every = self._every
        found = self._thinned_to(every, always)
        while found.nbytes > FILLED * limit and every <= self.steps[-1]:
            every *= 2
            found = self._thinned_to(every, always)
        return found

    def _thinned_to(self, every: int, always: Set[int]) -> Frames:
        """Of all steps one in so many, and those that always stay."""
        stay = thinned_steps(self.steps, every) | always
        kept: list[Recorded] = []
        for by_step in self._costly.values():
            first: dict[int, int] = {}  # step among those that share one
            for step in sorted(by_step):
                first.setdefault(step // (SPARSE * every), step)
            kept += [by_step[step] for step in sorted(by_step) if step in {*first.values()} | stay]
        for chunks in self._chunks.values():
            series: list[list[Chunk]] = []
            for chunk in chunks:
                inside = [i for i, step in enumerate(chunk.steps) if step in stay]
                if not inside:
                    continue
                part, newest = chunk.at(inside), series[-1] if series else []
                if newest and part.continues(newest[0]) and sum(len(one.steps) for one in newest) < DENSE:
                    newest.append(part)
                else:
                    series.append([part])
            kept += [joined(some) for some in series]
        return self._reduced(kept, every)

    def _reduced(self, records: Sequence[Recorded], every: int) -> Frames:
        made = Frames(records, numbers=self._numbers, aim=self._aim, generation=self.generation + 1)
        made._every = every
        return made

    # What is inside.

    def _add(self, records: tuple[Recorded, ...]) -> None:
        """Only while it is made."""
        self.records += records
        new: set[int] = set()
        for one in records:
            if isinstance(one, Chunk):
                self._chunks[one.word.text] = _placed(self.chunks_of(one.word.text), one)
                new.update(one.steps)
            else:
                self._costly[type(one)][one.step] = one
        if new:
            past = self.steps and min(new) <= self.steps[-1]
            self.steps = tuple(sorted({*self.steps, *new})) if past else (*self.steps, *sorted(new))
        first = min([*new, *(one.step for one in records if not isinstance(one, Chunk))], default=0)
        self._built = {step: frame for step, frame in self._built.items() if step < first}

    def _made(self, step: int) -> Frame:
        measurement, evaluation = self.measured_at(step), self.evaluated_at(step)
        assert measurement is not None
        places = (self.place_of(word, step) for word in self._chunks)
        found = [place for place in places if place is not None]
        seconds, loss = self._numbers(step)
        return Frame(
            step=step,
            seconds=seconds,
            loss=loss,
            evaluation=evaluation or NOT_EVALUATED,
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
    return min(steps, key=lambda one: (abs(one - step), one), default=None)


def _placed(chunks: tuple[Chunk, ...], new: Chunk) -> tuple[Chunk, ...]:
    """Chunks of a word with a new one at its place; where both have a step, the new one's stays."""
    if not chunks or chunks[-1].steps[-1] < new.steps[0]:
        return (*chunks, new)
    every = [new]
    for chunk in chunks:
        left = [i for i, step in enumerate(chunk.steps) if step not in new.steps]
        if left:
            every.append(chunk if len(left) == len(chunk.steps) else chunk.at(left))
    return tuple(sorted(every, key=lambda chunk: chunk.steps[0]))

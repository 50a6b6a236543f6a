"""The frames of a run in order: what was recorded of each step, thinned to fit into a limited memory."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence, Set
from copy import copy
from itertools import groupby, pairwise
from typing import Any, TypeVar, overload

from transformer.recording.chunk import Chunk, facts_of, together
from transformer.recording.frame import (
    Ablations,
    Frame,
    Measurement,
    Output,
    Outputs,
    RecordedWord,
    Word,
)
from transformer.shared.evaluation import Evaluation

MEMORY_LIMIT = 32 * 2**20
"""Maximum bytes of the frames of one run, approximately."""
BESIDE = 6_000
"""Approximate bytes of a record in addition to the numbers of its maps."""
DENSE = 64
"""Number of newest steps that thinning keeps, but at most a quarter of the steps for which there is room:
moments are looked for among them. Also the maximum number of steps in a chunk that thinning joins."""
FILLED = 0.7
"""Share of a limit that is still filled after thinning; the free rest makes thinning rare."""
SPARSE = 32
"""Besides those of the frames that stay, thinning keeps one measurement, one evaluation and so on for about
this many frames."""
_BUILT = 32
"""Maximum number of cached frames; several panels of a page show the same frames."""
NOT_EVALUATED = Evaluation(step=0, right=0, total=0, loss=0.0, free_loss=0.0, token_accuracy=0.0)
"""The evaluation of an own model, which has no held-out examples here."""
NOTHING_WRITTEN = Output(text="", stopped=True, right=False, pieces=(), ids=())

Measured = Measurement | Outputs | Evaluation | Ablations
"""Records that cost more than maps, and so are made less often."""
Recorded = Chunk | Measured
Numbers = Callable[[int], tuple[float, float | None]]
"""Function from a step to (seconds of training, loss)."""
Costly = TypeVar("Costly", Measurement, Outputs, Evaluation, Ablations)


class Recording(Sequence[Frame]):
    """The recording of a run, oldest frame first. Immutable; a frame is built when it is accessed.

    Args:
        records: in the order in which they were made.
        numbers: returns seconds and loss of a step.
        target_score: the score of the task, as in `Frame`.
        generation: increases whenever records are removed; adding records does not change it.
    """

    def __init__(
        self,
        records: Iterable[Recorded] = (),
        *,
        numbers: Numbers = lambda step: (0.0, None),
        target_score: str = "mirror",
        generation: int = 0,
    ) -> None:
        self.n_added = 0
        """Number of records added so far, including those that others have replaced."""
        self.steps: tuple[int, ...] = ()
        """The steps of all frames, ascending."""
        self.generation, self._numbers, self._target_score = generation, numbers, target_score
        self._chunks: dict[str, tuple[Chunk, ...]] = {}  # of each word, in order of step
        kinds: tuple[type, ...] = Measurement, Outputs, Evaluation, Ablations
        self._costly: dict[type, dict[int, Any]] = {kind: {} for kind in kinds}  # by step
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
        """The frame of a step, which must be one of `steps`."""
        frame = self._built.get(step)
        if frame is None:
            frame = self._made(step)
            if len(self._built) >= _BUILT:
                self._built = dict(list(self._built.items())[-_BUILT // 2 :])
            self._built[step] = frame
        return frame

    @property
    def words(self) -> tuple[str, ...]:
        """The tracked words, in the order in which they were added."""
        return tuple(self._chunks)

    def chunks_of(self, text: str) -> tuple[Chunk, ...]:
        """The chunks of one word, in order of step."""
        return self._chunks.get(text, ())

    def steps_of(self, text: str) -> tuple[int, ...]:
        """The steps of the frames that show one word."""
        return tuple(step for chunk in self.chunks_of(text) for step in chunk.steps)

    def place_of(self, text: str, step: int) -> tuple[Chunk, int] | None:
        """The chunk with a word at a step, and the index of the step in it; None if not recorded."""
        chunks = self.chunks_of(text)
        begun = bisect_right(chunks, step, key=lambda chunk: chunk.steps[0])
        chunk = chunks[begun - 1] if begun else None
        return (chunk, chunk.steps.index(step)) if chunk is not None and step in chunk.steps else None

    def measured_at(self, step: int) -> Measurement | None:
        """The newest measurement up to a step, or the first one if all are later; None without any."""
        return self._newest(Measurement, step)

    def evaluated_at(self, step: int) -> Evaluation | None:
        """The newest evaluation up to a step, or the first one if all are later; None without any."""
        return self._newest(Evaluation, step)

    def written_at(self, step: int) -> Outputs | None:
        """The newest outputs up to a step, or the first ones if all are later; None without any."""
        return self._newest(Outputs, step)

    def ablated_at(self, step: int) -> Ablations | None:
        """The newest ablations up to a step; None if there are none."""
        newest = self._newest(Ablations, step)
        return None if newest is None or newest.step > step else newest

    def _newest(self, kind: type[Costly], step: int) -> Costly | None:
        by_step: dict[int, Costly] = self._costly[kind]
        nearest = max((at for at in by_step if at <= step), default=min(by_step, default=None))
        return None if nearest is None else by_step[nearest]

    @property
    def measured(self) -> tuple[Measured, ...]:
        """All that was measured: measurements, then outputs, evaluations, ablations."""
        return tuple(one for by_step in self._costly.values() for one in by_step.values())

    @property
    def records(self) -> tuple[Recorded, ...]:
        """All records: what was measured, then the chunks of each word."""
        return (*self.measured, *(chunk for chunks in self._chunks.values() for chunk in chunks))

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """All measurements, in order of step."""
        return tuple(one for _, one in sorted(self._costly[Measurement].items()))

    @property
    def ablations(self) -> tuple[Ablations, ...]:
        """All ablations, in order of step."""
        return tuple(one for _, one in sorted(self._costly[Ablations].items()))

    @property
    def changes(self) -> tuple[int, ...]:
        """The steps with new scores, outputs, evaluations or ablations, or with changed interventions."""
        chunks = next(iter(self._chunks.values()), ())
        taken = {
            later.steps[0] for one, later in pairwise(chunks) if later.interventions != one.interventions
        }
        return tuple(sorted(taken.union(*self._costly.values())))

    @property
    def nbytes(self) -> int:
        """Approximate bytes of all records."""
        chunks = [chunk for chunks in self._chunks.values() for chunk in chunks]
        n_records = len(chunks) + sum(map(len, self._costly.values()))
        return sum(chunk.nbytes for chunk in chunks) + BESIDE * n_records

    # Derived frames.

    def extended(self, records: Sequence[Recorded], numbers: Numbers | None = None) -> Recording:
        """These frames with further records: newer ones, or the past of a word that was added later.

        Maps and measurements of a step replace those that it has already.

        Args:
            numbers: gives seconds and loss of a step from now on; None keeps the present function.
        """
        made = copy(self)
        made._chunks = dict(self._chunks)
        # A loss that was still on the device may be known by now.
        made._built = {step: frame for step, frame in self._built.items() if frame.loss is not None}
        made._costly = {kind: dict(by_step) for kind, by_step in self._costly.items()}
        if numbers is not None:
            made._numbers, made._built = numbers, {}
        made._add(tuple(records))
        return made

    def without(self, text: str) -> Recording:
        """These frames without one word."""
        return self._reduced(
            record for record in self.records if not isinstance(record, Chunk) or record.word.text != text
        )

    def until(self, step: int) -> Recording:
        """These frames up to a step."""
        return self._reduced(early for record in self.records if (early := up_to(record, step)) is not None)

    def thinned(self, protected: Set[int], limit: int) -> Recording:
        """These frames, thinned to about `FILLED` of the limit if they exceed it.

        Args:
            protected: steps that stay, as far as there is room.
            limit: in bytes, as counted by `nbytes`.
        """
        if self.nbytes <= limit:
            return self
        room = int(FILLED * limit * len(self.steps) / self.nbytes)
        stay = steps_to_keep(self.steps, room + 2 + len(protected), protected)
        apart = SPARSE * (self.steps[-1] // len(stay) + 1)
        kept: list[Recorded] = []
        for by_step in self._costly.values():
            first: dict[int, int] = {}  # first step in each interval of `apart` steps
            for step in sorted(by_step):
                first.setdefault(step // apart, step)
            kept += [by_step[step] for step in sorted(by_step) if step in {*first.values()} | stay]
        for chunks in self._chunks.values():
            parts = (chunk.only(stay.__contains__) for chunk in chunks)
            kept += together((part for part in parts if part is not None), DENSE)
        return self._reduced(kept)

    def _reduced(self, records: Iterable[Recorded]) -> Recording:
        return Recording(
            records, numbers=self._numbers, target_score=self._target_score, generation=self.generation + 1
        )

    # Internal.

    def _add(self, records: tuple[Recorded, ...]) -> None:
        """Add records; called only before the object is published."""
        self.n_added += len(records)
        new: set[int] = set()
        for record in records:
            if isinstance(record, Chunk):
                self._chunks[record.word.text] = _placed(self.chunks_of(record.word.text), record)
                new.update(record.steps)
            else:
                self._costly[type(record)][record.step] = record
        if new:
            past = self.steps and min(new) <= self.steps[-1]
            self.steps = tuple(sorted({*self.steps, *new})) if past else (*self.steps, *sorted(new))
        first = min([*new, *(record.step for record in records if not isinstance(record, Chunk))], default=0)
        self._built = {step: frame for step, frame in self._built.items() if step < first}

    def _made(self, step: int) -> Frame:
        measurement, evaluation = self.measured_at(step), self.evaluated_at(step)
        assert measurement is not None
        places = (self.place_of(word, step) for word in self._chunks)
        made = [place for place in places if place is not None]
        seconds, loss = self._numbers(step)
        return Frame(
            step=step,
            seconds=seconds,
            loss=loss,
            evaluation=evaluation or NOT_EVALUATED,
            measurement=measurement,
            ablations=self.ablated_at(step),
            words=tuple(_recorded_word(chunk, i, self.written_at(step)) for chunk, i in made),
            axes=made[0][0].axes,
            maps=tuple(chunk.weights(i) for chunk, i in made),
            target_score=self._target_score,
            interventions=made[0][0].interventions,
        )


def _recorded_word(chunk: Chunk, i: int, newest: Outputs | None) -> RecordedWord:
    """The recording of a word at one step.

    Args:
        newest: the outputs that `written_at` gives for the step; they may lack a word that was added later.
    """
    word, step, drawn_at = chunk.word, chunk.steps[i], chunk.drawn_at
    output = None if newest is None or newest.step > step else newest.by_word.get(word.text)
    written = output or NOTHING_WRITTEN
    return RecordedWord(
        **facts_of(Word, word),
        predicted=chunk.predictions(i),
        output=written.text,
        output_step=None if output is None or newest is None else newest.step,
        stopped=written.stopped,
        right=written.right,
        pieces=written.pieces,
        drawn_at=drawn_at if drawn_at is not None and drawn_at <= step else None,
        looked_up_to=min(step, chunk.looked_up_to),
    )


def up_to(record: Recorded, step: int) -> Recorded | None:
    """A record without what is later than a step; None if all of it is later."""
    if isinstance(record, Chunk):
        return record.only(lambda at: at <= step)
    return record if record.step <= step else None


def steps_to_keep(steps: Sequence[int], room: int, protected: Collection[int] = ()) -> set[int]:
    """Choose up to `room` of some ascending steps: the multiples of the lowest power of 2 that fit.

    Also kept are the first step, the newest steps (`DENSE` or a quarter of the room, whichever is less, but
    at least one), and the protected steps, the newest first, as far as there is room.
    """
    if len(steps) <= room:
        return {*steps}
    always = {steps[0], *steps[len(steps) - max(1, min(DENSE, room // 4)) :]}
    always.update(sorted({*protected} & {*steps}, reverse=True)[: max(0, room - len(always))])
    every = 1
    while len(stay := {step for step in steps if step % every == 0} | always) > room and every <= steps[-1]:
        every *= 2
    return stay


def nearest_step(steps: Sequence[int], step: int) -> int | None:
    """The nearest of ascending steps, the earlier of two equally near; None if there are no steps."""
    return min(steps, key=lambda one: (abs(one - step), one), default=None)


def _placed(chunks: tuple[Chunk, ...], new: Chunk) -> tuple[Chunk, ...]:
    """Insert a new chunk into the chunks of a word, which follow each other; it replaces steps in common."""
    before = bisect_left(chunks, new.steps[0], key=lambda chunk: chunk.steps[-1])
    after = bisect_right(chunks, new.steps[-1], key=lambda chunk: chunk.steps[0])
    of = {step: chunk for chunk in (*chunks[before:after], new) for step in chunk.steps}
    parts = (chunk.only({*steps}.__contains__) for chunk, steps in groupby(sorted(of), of.__getitem__))
    return (*chunks[:before], *(part for part in parts if part is not None), *chunks[after:])

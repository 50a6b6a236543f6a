"""What a run records of its model while it trains: maps of every step, and, less often, what costs more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch

from transformer.decoding import GREEDY, Decoding, Written, write
from transformer.errors import InputError
from transformer.insight.scores import clearest_head, head_scores
from transformer.model.transformer import PAD_ID, Transformer
from transformer.recording.chunk import Chunk, coded, may_look
from transformer.recording.developer import Developer, Ring, axes_of, stacked
from transformer.recording.drawn import Drawn
from transformer.recording.frame import Array, Axes, Measurement, Output, Outputs, Word, reading_sites
from transformer.recording.tape import record
from transformer.recording.weights import Snapshot, Tensors, Weights
from transformer.tasks import Batch, Question, Task

MAPS_BYTES = 256 * 2**20
"""The maps of steps that are developed together take at most about so much."""
N_SCORED_WORDS = 64
"""Held-out examples on which head scores are measured; words have at least three letters."""


class Scorer:
    """Measures every head of a model on fixed held-out words.

    Args:
        task: has the words and their answers.
    """

    def __init__(self, task: Task) -> None:
        self._task, letters = task, task.same_length
        self._words = [w for w in task.held_out() if not letters or len(w) >= 3][:N_SCORED_WORDS]
        pairs = [task.pair(word) for word in self._words]
        read = task.src_tokenizer.encode(self._words)
        written = task.tgt_tokenizer.encode([pair.target for pair in pairs if pair is not None])
        self._lengths = tuple(len(ids) - 2 for ids in read)
        self._answers = None if letters else tuple(len(ids) - 2 for ids in written)
        links = [task.links(word) for word in self._words]
        self._links = tuple(one or () for one in links) if task.aim == "gold" else None
        self._tensors: dict[bool, tuple[torch.Tensor, torch.Tensor]] = {}

    def scores(self, model: Transformer, sites: Sequence[str] = ()) -> dict[str, dict[str, Array]]:
        """Every score of every head, (H,) each, by site and name.

        Args:
            model: on one device; in eval mode afterwards.
            sites: to be measured; by default all.
        """
        if model.training:
            model.eval()  # the next training step sets train mode again
        with record(model) as tape:
            model(*self._batch(filled=not model.masked("padding"), device=model.to_logits.weight.device))
        every = axes_of(model)
        reading = reading_sites(every)
        return {
            site: head_scores(
                tape.weights[site],
                every[site].kind,
                self._lengths,
                causal=every[site].causal,
                answers=self._answers,
                links=self._links if site in reading else None,
            )
            for site in sites or every
        }

    def _batch(self, *, filled: bool, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        """The words as the model reads them: the same each time."""
        if filled not in self._tensors:
            batch = self._task.encode(self._words, filled=filled)
            src, tgt = torch.from_numpy(batch.src), torch.from_numpy(batch.tgt_in)
            self._tensors[filled] = src.to(device), tgt.to(device)
        return self._tensors[filled]


@dataclass(frozen=True)
class _Group:
    """Words that go through the model in one batch."""

    batch: Batch
    words: tuple[Word, ...]


class Recorder:
    """Records one model; for the thread that trains it. Draws nothing, and changes nothing that is learned.

    Args:
        model: the one that trains. Its weights are copied; only `measure` and `write` send words through it.
        task: knows the right answers.
        decoding: how the outputs are looked for.
    """

    def __init__(self, model: Transformer, task: Task, decoding: Decoding = GREEDY) -> None:
        self._model, self._task, self._decoding = model, task, decoding
        self._device = model.to_logits.weight.device
        self._ring = Ring(model)
        self._developer = Developer(model.config, self._device)
        self._scorer = Scorer(task)
        self._questions: list[Question] = []
        self._outputs: dict[str, Output] = {}
        self._written_at = 0
        self._sure: tuple[int, set[str]] = -1, set()  # words whose rows all predicted right, at which step
        self._clearest: tuple[str, int] | None = None
        self._groups: list[_Group] | None = None
        self.drawn = Drawn()
        """What training has drawn; told by who trains."""

    @property
    def tensors(self) -> Tensors:
        """Name and shape of each parameter, in the order in which weights are copied."""
        return self._developer.tensors

    def resume(self, measured: Measurement | None, written: Outputs | None, seed: int, step: int) -> None:
        """Stand where a recorder stood that has made these last, after so many steps of training."""
        if measured is not None:
            self._clearest = measured.clearest
        if written is not None:
            self._outputs, self._written_at = dict(written.by_word), written.step
        for k in range(step):
            if self.drawn.steps == k:
                self.drawn.note(k + 1, [pair.source for pair in self._task.pairs(seed, k)])

    # Which words.

    def add(self, question: Question) -> None:
        """Record this word too from the next development on; measure, if its answer is not known."""
        if question not in self._questions:
            self._questions.append(question)
            self._groups = None

    def remove(self, question: Question) -> None:
        """Record this word no longer."""
        self._questions.remove(question)
        self._outputs.pop(question.text, None)
        self._groups = None

    # Copying and developing.

    @property
    def pending(self) -> int:
        """Steps that were copied and not developed."""
        return len(self._ring.steps)

    @property
    def full(self) -> bool:
        """Whether the pending steps must be developed before another can be copied."""
        return self._ring.full

    def copy(self, step: int) -> None:
        """Copy the weights of this step, to be developed later."""
        self._ring.copy(step)

    def develop(self, weights: Weights | None = None, *, finite: bool = False) -> list[Chunk]:
        """The maps of all pending steps, a chunk a word.

        Args:
            weights: where the copied weights are kept.
            finite: leave out steps at which a parameter is no number.

        Raises:
            FloatingPointError: an attention weight is no number.
        """
        steps, rows = self._ring.waiting()
        if finite:
            kept = rows.isfinite().all(dim=1)
            steps, rows = [step for step, ok in zip(steps, kept.tolist(), strict=True) if ok], rows[kept]
        if not steps:
            self._ring.clear()
            return []
        self._intervene()
        chunks = self._developed(steps, rows, self._grouped())
        if weights is not None:
            copied = {step: row.tobytes() for step, row in zip(steps, rows.cpu().numpy(), strict=True)}
            weights.append(copied, self._model.interventions, self.tensors)
        self._ring.clear()  # not before: where a weight is no number, the others can be developed yet
        order = {question.text: i for i, question in enumerate(self._questions)}  # however they are grouped
        chunks.sort(key=lambda chunk: (chunk.steps[0], order[chunk.word.text]))
        last = [chunk for chunk in chunks if chunk.steps[-1] == steps[-1]]
        self._sure = steps[-1], {chunk.word.text for chunk in last if _predicts_right(chunk)}
        return chunks

    def past(self, question: Question, snapshots: Sequence[Snapshot], weights: Weights) -> list[Chunk]:
        """The maps of one word at earlier steps; what is no longer kept is passed over.

        Args:
            snapshots: in order of step; as many as fit into one pass.
        """
        chunks: list[Chunk] = []
        for taken, some in groupby(snapshots, key=lambda one: one.interventions):
            bodies = {}
            for one in some:
                with suppress(InputError):  # thinned meanwhile
                    bodies[one.step] = weights.body(one.step)
            if bodies:
                self._developer.intervene(taken, self._task.src_tokenizer.id_of)
                rows = stacked([*bodies.values()], self._device)
                group = self._group_of([question])  # as its masks were then
                chunks += self._developed([*bodies], rows, [group])
        self._intervene()
        return chunks

    def _intervene(self) -> None:
        if self._developer.model.interventions != self._model.interventions:
            self._groups = None  # whether words have [PAD] beside them is for the masks to say
        self._developer.intervene(self._model.interventions, self._task.src_tokenizer.id_of)

    def _developed(self, steps: Sequence[int], rows: torch.Tensor, groups: Sequence[_Group]) -> list[Chunk]:
        """As many steps at once as fit into memory."""
        axes, heads = self._developer.axes, self._model.config.n_heads
        most = max(_cells(group.batch, axes) for group in groups)
        n = max(1, MAPS_BYTES // (4 * heads * most))
        return [
            chunk
            for at in range(0, len(steps), n)
            for chunk in self._together(steps[at : at + n], rows[at : at + n], groups)
        ]

    def _together(self, steps: Sequence[int], rows: torch.Tensor, groups: Sequence[_Group]) -> list[Chunk]:
        chunks, axes, taken = [], self._developer.axes, self._developer.model.interventions
        for group in groups:
            guesses, maps = self._developer.develop(rows, group.batch.src, group.batch.tgt_in)
            for i, word in enumerate(group.words):
                n_rows = len(word.expected)
                codes = {}
                for site, one in axes.items():
                    every = maps[site][:, i]
                    may = may_look(word, one, taken, site, every.shape[1])
                    codes[site] = coded(every[:, :, : may.shape[1], : may.shape[2]], may)
                ids, places = np.unique(guesses[:, i, :n_rows], return_inverse=True)
                chunks.append(
                    Chunk(
                        word=word,
                        axes=axes,
                        interventions=taken,
                        steps=tuple(steps),
                        drawn_at=self.drawn.first_step(word.text),
                        looked_up_to=self.drawn.steps,
                        vocabulary=self._task.tgt_tokenizer.tokens(ids.tolist()),
                        predicted=places.reshape(len(steps), n_rows).astype(np.uint16),
                        maps=codes,
                    )
                )
        return chunks

    # The words as batches.

    def _grouped(self) -> list[_Group]:
        """Which words the model is asked in one batch.

        All at once; but a model that sees its padding knows no other length than that of training, so then a
        longer word, which would lengthen the others, has a batch of its own.
        """
        if self._groups is None:
            if self._model.masked("padding"):
                together = [self._questions]
            else:
                short = [question for question in self._questions if not question.too_long]
                together = [short, *([question] for question in self._questions if question.too_long)]
            self._groups = [self._group_of(some) for some in together if some]
        return self._groups

    def _group_of(self, questions: Sequence[Question]) -> _Group:
        task, tokenizer, hidden = (
            self._task,
            self._task.tgt_tokenizer,
            self._developer.model.masked("padding"),
        )
        own = [
            list(self._outputs[question.text].ids) if question.text in self._outputs else []
            for question in questions
        ]
        batch = task.encode([question.text for question in questions], filled=not hidden, own=own)
        words = []
        for i, question in enumerate(questions):
            # Where [PAD] is not hidden it is looked at, and belongs on the maps.
            n_src, n_tgt = (
                int((ids[i] != PAD_ID).sum()) if hidden else ids.shape[1] for ids in (batch.src, batch.tgt_in)
            )
            known = question.answer is not None
            answer = batch.answers[i][batch.answers[i] != PAD_ID].tolist()[:-1]
            words.append(
                Word(
                    text=question.text,
                    answer=question.answer,
                    written_at=None if known else self._written_at,
                    src_tokens=task.src_tokenizer.tokens(batch.src[i, :n_src].tolist()),
                    tgt_tokens=tokenizer.tokens(batch.tgt_in[i, :n_tgt].tolist()),
                    expected=expected_tokens(task, batch.tgt_out[i, :n_tgt].tolist()),
                    held_out=question.held_out,
                    too_long=question.too_long,
                    too_short=question.too_short,
                    wanted=tokenizer.pieces(answer) if known else (),
                    n_read=task.n_tokens(question.text),
                    links=task.links(question.text),
                )
            )
        return _Group(batch, tuple(words))

    # What costs more.

    def measure(self, step: int) -> Measurement:
        """Scores of all heads as they are now."""
        return self._measurement(step, self._model)

    def measure_past(self, step: int, weights: Weights) -> Measurement:
        """Scores of all heads as they were at a step whose weights are kept; nothing may be pending.

        Raises:
            InputError: they are not.
        """
        self._intervene()
        (row,) = stacked([weights.body(step)], self._device)
        return self._measurement(step, self._developer.load(row))

    def _measurement(self, step: int, model: Transformer) -> Measurement:
        scores = self._scorer.scores(model)
        clearest, _ = clearest_head(
            {site: scores[site][self._task.aim] for site in reading_sites(axes_of(model))}, self._clearest
        )
        if model is self._model:
            self._clearest = clearest
        return Measurement(step=step, head_scores=scores, clearest=clearest)

    def write(self, step: int) -> Outputs:
        """What the model writes to each word by itself now.

        Nothing may be pending: maps of words whose answer is not known run over this from now on.
        """
        sure = self._sure[1] if self._sure[0] == step and self._foresees else set()
        self._outputs, self._written_at = self._wrote(sure), step
        self._groups = None
        return Outputs(step=step, by_word=dict(self._outputs))

    def row(self) -> bytes:
        """The weights as they are now, as they are kept."""
        parts = (
            tensor.detach().float().cpu().numpy().tobytes() for tensor in self._model.state_dict().values()
        )
        return b"".join(parts)

    @property
    def _foresees(self) -> bool:
        """Whether a word whose rows all predict right would be written right: greedily, each row reads the
        same then, unless rows read ahead."""
        model = self._model
        return self._decoding.width == 1 and (model.masked("causal") or model.writes_at_once)

    def _wrote(self, sure: Set[str]) -> dict[str, Output]:
        """What the model writes to each word.

        Args:
            sure: words that it writes right, as is known already.
        """
        found: dict[str, Output] = {}
        hidden, task = self._model.masked("padding"), self._task
        asked = [question for question in self._questions if question.text not in sure]
        known = [question for question in self._questions if question.text in sure]
        short = [q for q in asked if hidden or not q.too_long]
        alone = [[q] for q in asked if not hidden and q.too_long]
        for questions in filter(None, (short, known, *alone)):
            batch = task.encode([question.text for question in questions], filled=not hidden)
            if questions is known:
                outputs = [row[row != PAD_ID].tolist() for row in batch.answers]
            else:
                written = _written(self._model, task, questions, batch, self._decoding)
                lengths = written.lengths.tolist()
                outputs = [written.tokens[i, :n].tolist() for i, n in enumerate(lengths)]
            for i, (question, ids) in enumerate(zip(questions, outputs, strict=True)):
                if question.answer is not None:
                    # Padding makes room for longer words; each may write three letters too many.
                    ids = ids[: int((batch.answers[i] != PAD_ID).sum()) + 3]
                found[question.text] = self._output(question, batch, ids)
        return {question.text: found[question.text] for question in self._questions}

    def _output(self, question: Question, batch: Batch, ids: list[int]) -> Output:
        """What was written, from its tokens."""
        tokenizer = self._task.tgt_tokenizer
        text, stopped = tokenizer.text(ids)
        own = ids[:-1] if stopped else ids
        return Output(
            text=text,
            stopped=stopped,
            right=question.answer is not None and stopped and self._task.accepts(question.text, text),
            pieces=tokenizer.pieces(own),
            ids=tuple(_fitting(self._model, batch, own)),
        )


def _cells(batch: Batch, axes: Mapping[str, Axes]) -> int:
    """Of all maps of one head over a batch, at every site."""
    sizes = {"src": batch.src.shape[1], "tgt": batch.tgt_in.shape[1], "seq": batch.tgt_in.shape[1]}
    return len(batch.src) * sum(sizes[one.query] * sizes[one.key] for one in axes.values())


def _predicts_right(chunk: Chunk) -> bool:
    """Whether at its last step each row predicts what it is to write, the right answer being known."""
    pairs = zip(chunk.predictions(-1), chunk.word.expected, strict=True)
    return chunk.word.answer is not None and all(was == is_to for was, is_to in pairs if is_to)


def answered(
    model: Transformer, task: Task, questions: Sequence[Question], decoding: Decoding = GREEDY
) -> tuple[Batch, Written]:
    """Questions as a batch with their answers, and what the model writes; it is in eval mode from then on.

    Where nobody knows the right answer, the model's own output stands for it.
    """
    filled, tokenizer = not model.masked("padding"), task.tgt_tokenizer
    texts = [question.text for question in questions]
    batch = task.encode(texts, filled=filled)
    written = _written(model, task, questions, batch, decoding)
    if any(question.answer is None for question in questions):
        own = []
        for i in range(len(questions)):
            ids = written.tokens[i, : int(written.lengths[i])].tolist()
            own.append(_fitting(model, batch, [one for one in ids if one != tokenizer.eos_id]))
        batch = task.encode(texts, filled=filled, own=own)
    return batch, written


def _written(
    model: Transformer, task: Task, questions: Sequence[Question], batch: Batch, decoding: Decoding
) -> Written:
    if model.training:
        model.eval()  # the next training step sets train mode again
    return write(model, batch, task.tgt_tokenizer.eos_id, _room(batch, questions), decoding=decoding)


def _room(batch: Batch, questions: Sequence[Question]) -> int:
    """Most tokens to write: an answer that nobody knows may be longer than its question, but has an end."""
    unknown = any(question.answer is None for question in questions)
    return int(max(batch.answers.shape[1], batch.src.shape[1] if unknown else 0)) + 3


def _fitting(model: Transformer, batch: Batch, ids: Sequence[int]) -> list[int]:
    """Of an output the tokens that can be read again as an answer."""
    most = model.config.max_len - batch.prompt.shape[1]
    return [token for token in ids if token != PAD_ID][:most]


def expected_tokens(task: Task, labels: Sequence[int]) -> tuple[str, ...]:
    """What each position is to write, by its label; empty where that is nothing."""
    tokens = task.tgt_tokenizer.tokens(labels)
    return tuple("" if label == PAD_ID else token for label, token in zip(labels, tokens, strict=True))

"""Ask the model of any step: a separate model holds its snapshot, so that training is never disturbed."""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import torch

from transformer.asking.answers import Answer, LengthReport, Reading, as_written, merged_readings
from transformer.config import RunConfig
from transformer.decoding.beam import Decoding
from transformer.decoding.spelling import spell, write
from transformer.decoding.tree import Beams, beams_of
from transformer.errors import InputError
from transformer.model.transformer import PAD_ID, Transformer
from transformer.recording.activations import record
from transformer.recording.frame import Array
from transformer.recording.scorer import Scorer
from transformer.recording.weights import Snapshot
from transformer.shared.bounded import BoundedCache
from transformer.shared.interventions import NO_INTERVENTIONS, Interventions, check_interventions, open_cells
from transformer.tasks import Batch, Question, task_of

QUESTION_CACHE = BoundedCache(256 * 2**20)
"""Cache of what is made to answer questions: models, traces, changes by a step, pictures. All visitors share
it."""
KEPT_TREES = 32
"""Maximum number of beam searches that are kept for one `SnapshotModel`, whatever their size."""
WORDS_PER_LENGTH = 25
"""Maximum number of words asked of each length in the report by length and place."""


def model_of(config: RunConfig, snapshot: Snapshot) -> Transformer:
    """A new model with the weights of a snapshot, in eval mode and without interventions.

    Raises:
        InputError: the weights do not fit the model, or are not finite.
    """
    return loaded(Transformer(config.model), snapshot)


def loaded(model: Transformer, snapshot: Snapshot) -> Transformer:
    """The same model with the weights of a snapshot, in eval mode. Raises InputError, as `model_of` does."""
    try:
        model.load_state_dict({name: torch.tensor(w) for name, w in snapshot.weights.items()})
    except (RuntimeError, TypeError) as error:  # from a file: other names, shapes or dtypes
        why = str(error).splitlines()[-1].strip()
        raise InputError(f"The weights of step {snapshot.step:,} do not fit this model ({why}).") from error
    if not all(torch.isfinite(weights).all() for weights in model.parameters()):
        raise InputError(diverged(snapshot.step))
    return model.eval()


def diverged(step: int) -> str:
    """The message for a model whose weights or results are not finite."""
    return (
        f"The numbers of the model of step {step:,} are not finite: the training has diverged. Choose an "
        "earlier step, or train again with a lower learning rate."
    )


class SnapshotModel:
    """The model of one snapshot, optionally with interventions. Safe to use from any thread.

    Args:
        config: the run's, with what its task determines.
        snapshot: the step and its weights.
        interventions: replace those of the snapshot. `answer` checks blocked cells: they must leave an open
            cell in every row of a word.

    Raises:
        InputError: the weights do not fit the model or are not finite, a head that is switched off or a mask
            does not exist, or the task cannot be made.
    """

    def __init__(self, config: RunConfig, snapshot: Snapshot, interventions: Interventions) -> None:
        self.step, self.interventions = snapshot.step, interventions
        self.task = task_of(config)
        self._train, self._decoding = config.train, Decoding.of(config.train)
        self._beams = BoundedCache(KEPT_TREES)
        self._lock = threading.Lock()
        self._model = model_of(config, snapshot)
        unblocked = replace(interventions, blocked=())
        check_interventions(unblocked, self._model.axes(), config.model.n_heads, (), ())
        self._model.intervene(interventions, self.task.token_id)
        self._axes = self._model.axes()

    @property
    def nbytes(self) -> int:
        """Memory of the model's weights, in bytes."""
        return sum(tensor.nbytes for tensor in self._model.state_dict().values())

    def answer(self, text: str) -> Answer:
        """Let the model spell the answer to a word, and record its attention.

        Raises:
            InputError: the word cannot be asked, or an intervention leaves a row without an open cell, or
                blocks cells of a site or head that does not exist.
        """
        question = self.task.question(text)
        seen = not self._model.masked("padding")
        batch, tokenizer = self.task.encode([question.text], filled=seen), self.task.tgt_tokenizer
        answer = batch.answers[0]
        right, has_answer = answer[answer != PAD_ID].tolist(), question.answer is not None
        with self._lock:
            written = write(
                self._model, batch, tokenizer.eos_id, _room(question, batch), decoding=self._decoding
            )
            ids = written.tokens[0, : int(written.lengths[0])].tolist()
            output, stopped = tokenizer.text(ids)
            forced = None
            if has_answer:  # first: it refuses a row without an open cell
                forced = self._read(batch.src, batch.tgt_in, _places(batch.tgt_out[0] != tokenizer.pad_id))
            free = self._read_own(batch, ids[:-1] if stopped else ids)
            if self._decoding.width > 1:  # a beam need not have the likeliest token at each place
                free = as_written(free, tokenizer.tokens(ids))
        return Answer(
            step=self.step,
            question=question,
            expected=tokenizer.tokens(right if has_answer else ids),
            forced=forced or free,
            free=free,
            output=output,
            stopped=stopped,
            accepted=has_answer and self.task.accepts(question.text, output),
            pieces=tokenizer.pieces(ids[:-1] if stopped else ids),
            n_read=self.task.n_tokens(question.text),
            links=self.task.links(question.text),
            interventions=self.interventions,
        )

    def beams(self, text: str, width: int, length_penalty: float) -> Beams:
        """Let the model search for the answer to a word with `width` beams; the result is cached.

        Raises:
            InputError: the word cannot be asked, or the width or the penalty is beyond its limits.
        """
        replace(self._train, beam_width=width, length_penalty=length_penalty)  # checks the limits
        question = self.task.question(text)
        batch = self.task.encode([question.text], filled=not self._model.masked("padding"))
        room, decoding = _room(question, batch), Decoding(width, length_penalty)

        def search() -> Beams:
            with self._lock:
                return beams_of(self._model, self.task, question, batch, room, decoding, step=self.step)

        return self._beams.get((question.text, decoding), search, lambda _: 1)

    @cached_property
    def held_out(self) -> dict[str, tuple[str, bool]]:
        """The output for each held-out word of the live curve, and whether it is right."""
        words = self.task.live_words()
        with self._lock:
            result = spell(self._model, self.task, words, decoding=self._decoding)
        return dict(zip(words, zip(result.outputs, result.exact, strict=True), strict=True))

    @property
    def exact(self) -> tuple[int, int]:
        """(right, asked) held-out words."""
        return sum(right for _, right in self.held_out.values()), len(self.held_out)

    @cached_property
    def head_scores(self) -> dict[str, dict[str, Array]]:
        """Every score of every head, (H,) each, by site and name, on the words that frames are scored on."""
        with self._lock:
            return Scorer(self.task).scores(self._model)

    @cached_property
    def by_length(self) -> LengthReport:
        """Accuracy on fixed words by length and place; in tasks on letters also for untrained lengths."""
        lengths = self.task.corpus.report_lengths()
        words = [self.task.corpus.words_of_length(n, WORDS_PER_LENGTH) for n in lengths]
        counts = [self._right_by_place(some) for some in words]
        share = np.full((len(lengths), max(len(places) for places, _ in counts)), np.nan)
        for row, (places, _) in zip(share, counts, strict=True):
            row[: len(places)] = places
        exact = np.array([whole for _, whole in counts])
        return LengthReport(lengths=lengths, share=share, exact=exact, asked=tuple(map(len, words)))

    def _right_by_place(self, words: Sequence[str]) -> tuple[Array, float]:
        """The share of words right at each place, of those that have it, and the share that is exact."""
        if not words:
            return np.zeros(0), math.nan
        with self._lock:
            result = spell(self._model, self.task, words, decoding=self._decoding)
        # The last token of each answer is [EOS], which does not count as a place.
        inside = result.real & result.real.roll(-1, dims=1)
        inside[:, -1] = False
        n_words = inside.sum(dim=0)
        right = (result.right & inside).sum(dim=0).double() / n_words
        return right[n_words > 0].numpy(), float(np.mean(result.exact))

    def _read_own(self, batch: Batch, letters: list[int]) -> Reading:
        """The word read with the model's own output as input, each row as when its token was written."""
        if self._model.writes_at_once:
            return self._read(batch.src, batch.tgt_in, _places(batch.tgt_out[0] != PAD_ID))
        n, own = batch.prompt.shape[1], np.array([letters], dtype=np.int64)
        tgt = np.concatenate([batch.prompt, own], axis=1)
        # The last token of an output without [EOS] was never read, and may be beyond max_len.
        tgt = tgt[:, : self._model.config.max_len]
        src = batch.src if self._model.config.topology == "encoder-decoder" else tgt
        places = tuple(range(n - 1, tgt.shape[1]))
        if self._model.masked("causal"):  # then later tokens change nothing
            return self._read(src, tgt, places)
        return merged_readings([self._read(src, tgt[:, : i + 1], (*places[: i + 2 - n],)) for i in places])

    def _read(self, src: Array, tgt: Array, writing: tuple[int, ...]) -> Reading:
        """One pass over one word, (1, S) and (1, T)."""
        tokenizer = self.task.tgt_tokenizer
        src_tokens = self.task.src_tokenizer.tokens(src[0].tolist())
        tgt_tokens = tokenizer.tokens(tgt[0].tolist())
        model = self._model.config
        check_interventions(
            self.interventions, self._axes, model.n_heads, src_tokens, tgt_tokens, masks=model.masks
        )
        with record(self._model) as cache:
            logits = self._model(torch.from_numpy(src), torch.from_numpy(tgt))[0]
        reading = Reading(
            src_tokens=src_tokens,
            tgt_tokens=tgt_tokens,
            writing=writing,
            probabilities=logits.softmax(dim=-1).numpy(),
            predicted=tokenizer.tokens(logits.argmax(dim=-1).tolist()),
            axes=self._axes,
            maps={},
        )
        for site, axes in self._axes.items():
            rows, keys = reading.tokens(axes.query), reading.tokens(axes.key)
            blocks = self.interventions.blocks_at(site)
            may = open_cells(
                blocks, rows, keys, causal=axes.causal, padding=axes.padding, n_heads=model.n_heads
            )
            reading.maps[site] = np.where(may, cache.weights[site][0], np.float32("nan"))
        return reading


def _room(question: Question, batch: Batch) -> int:
    """Most tokens to write: 3 more than the right answer has, or the question if the answer is not known."""
    has_answer = question.answer is not None
    return (int((batch.answers[0] != PAD_ID).sum()) if has_answer else batch.src.shape[1]) + 3


def _places(writes: Array) -> tuple[int, ...]:
    """The indices at which an array (T,) is true."""
    return tuple(np.flatnonzero(writes).tolist())


def snapshot_model(
    config: RunConfig, snapshot: Snapshot, interventions: Interventions = NO_INTERVENTIONS
) -> SnapshotModel:
    """The model of a snapshot, cached in `QUESTION_CACHE`."""
    key = "asked", config, weakref.ref(snapshot), interventions  # weak: it keeps all weights of its run
    return QUESTION_CACHE.get(
        key, lambda: SnapshotModel(config, snapshot, interventions), lambda made: made.nbytes
    )

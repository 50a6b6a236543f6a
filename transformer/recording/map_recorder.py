"""Record a model while it trains: maps of as many steps as the time for recording allows and, less often,
scores and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import groupby

import numpy as np
import torch

from transformer.decoding.beam import GREEDY, Decoding
from transformer.errors import InputError
from transformer.insight.scores import clearest_head
from transformer.model.transformer import Transformer
from transformer.recording.chunk import Chunk, allowed_cells, coded
from transformer.recording.frame import Array, Measurement, Outputs, Word
from transformer.recording.map_computer import MapComputer, WeightBuffer, stacked
from transformer.recording.scorer import Scorer
from transformer.recording.weights import Snapshot, Tensors, Weights
from transformer.recording.words import (
    DrawnWords,
    WordBatch,
    in_batches,
    mean_batch,
    outputs_of,
    word_batch,
)
from transformer.shared.attention_info import reading_sites
from transformer.tasks import Question, Task

MAPS_BYTES = 256 * 2**20
"""Approximate limit in bytes of the maps that are computed together."""
UNWATCHED, WATCHED = 0.06, 0.10
"""Target shares of the training time for recording, without and with viewers."""
TOLERANCE = 1.5
"""Recording becomes rarer if it takes more than this times its target share: on a busy machine, measured
times are inexact."""
KNOWN_SECONDS = 1.0
"""Seconds of recording to measure before the recording interval is changed."""
MOST_APART = 64
"""Maximum recording interval, in steps."""
FADING = 0.9
"""Decay of the moving averages of times, per computation and per training step."""


class MapRecorder:
    """Records one model in the thread that trains it. Draws no random numbers and does not affect training.

    Args:
        model: the model that trains. Its weights are copied; only `measure` and `write` run words through it,
            and leave it in eval mode.
        task: provides the right answers.
        decoding: the decoding method of the outputs.
    """

    def __init__(self, model: Transformer, task: Task, decoding: Decoding = GREEDY) -> None:
        self._model, self._task, self._decoding = model, task, decoding
        self._device = model.to_logits.weight.device
        self.buffer = WeightBuffer(model)
        """Copies of the weights of pending steps: those whose maps are not computed yet."""
        self._computer = MapComputer(model.config, self._device)
        self._scorer = Scorer(task)
        self._questions: list[Question] = []
        self._written = Outputs(step=0, by_word={})  # the newest
        self._known_right: tuple[int, set[str]] = -1, set()  # (step, words predicted right there)
        self._clearest: tuple[str, int] | None = None
        self._batches: list[WordBatch] | None = None  # of the tracked words; None if they must be rebuilt
        self.drawn = DrawnWords()
        """The questions that training has drawn; filled by the owner of this object, and by `draw_again`."""

    @property
    def tensors(self) -> Tensors:
        """Name and shape of each parameter, in the order in which weights are copied."""
        return self._computer.tensors

    def resume(self, measured: Measurement | None, written: Outputs | None) -> None:
        """Restore the state of a saved run from its last measurement and outputs; None if it has none."""
        if measured is not None:
            self._clearest = measured.clearest
        if written is not None:
            self._written = written

    def draw_again(self, seed: int, step: int, most: int) -> None:
        """Draw again the next `most` batches, up to that of `step`, whose words are not remembered."""
        for k in range(self.drawn.steps, min(step, self.drawn.steps + most)):
            self.drawn.note(k + 1, [pair.source for pair in self._task.pairs(seed, k)])

    # Tracked words.

    def add(self, question: Question) -> None:
        """Record this word too from the next computation on; if its answer is unknown, call `write` first."""
        if question not in self._questions:
            self._questions.append(question)
            self._batches = None

    def remove(self, question: Question) -> None:
        """Stop recording this word."""
        self._questions.remove(question)
        self._batches = None

    # Computing.

    def compute(self, weights: Weights | None = None, *, finite: bool = False) -> list[Chunk]:
        """Compute the maps of all pending steps: a chunk per word, or several if memory limits a pass.

        Args:
            weights: the store to which the copied weights are appended; None discards them.
            finite: leave out steps at which a parameter is NaN or infinite.

        Raises:
            FloatingPointError: an attention weight is NaN or infinite.
        """
        steps, rows = self.buffer.waiting()
        if finite:
            kept = rows.isfinite().all(dim=1)
            steps, rows = [step for step, ok in zip(steps, kept.tolist(), strict=True) if ok], rows[kept]
        if not steps:
            self.buffer.clear()
            return []
        self._intervene()
        if self._batches is None:
            groups = in_batches(self._asked, hidden=self._hidden)
            groups += [[question] for question in self._questions if question.words]
            self._batches = [self._batch_of(questions) for questions in groups]
        chunks = self._computed(steps, rows, self._batches)
        if weights is not None:
            copied = {step: row.tobytes() for step, row in zip(steps, rows.cpu().numpy(), strict=True)}
            weights.append(copied, self._model.interventions, self.tensors)
        self.buffer.clear()  # not after an error: then the maps of finite steps can still be computed
        order = {question.text: i for i, question in enumerate(self._questions)}  # not that of the batches
        chunks.sort(key=lambda chunk: (chunk.steps[0], order[chunk.word.text]))
        last = [chunk for chunk in chunks if chunk.steps[-1] == steps[-1]]
        self._known_right = steps[-1], {chunk.word.text for chunk in last if _predicts_right(chunk)}
        return chunks

    def past(self, question: Question, snapshots: Sequence[Snapshot], weights: Weights) -> list[Chunk]:
        """The maps of one word at earlier steps; steps whose weights are no longer kept are skipped.

        Args:
            snapshots: in order of step; their weights are all in memory at once.
            weights: the store of these weights.

        Raises:
            FloatingPointError: an attention weight is NaN or infinite.
        """
        chunks: list[Chunk] = []
        for taken, some in groupby(snapshots, key=lambda one: one.interventions):
            bodies = {}
            for one in some:
                with suppress(InputError):  # thinned meanwhile
                    bodies[one.step] = weights.body(one.step)
            if bodies:
                self._computer.intervene(taken, self._task.token_id)
                rows = stacked([*bodies.values()], self._device)
                chunks += self._computed([*bodies], rows, [self._batch_of([question])])
        self._intervene()
        return chunks

    def _intervene(self) -> None:
        """Apply the interventions of the training model to its copy."""
        if self._computer.model.interventions != self._model.interventions:
            self._batches = None  # their padding depends on the masks
        self._computer.intervene(self._model.interventions, self._task.token_id)

    @property
    def _hidden(self) -> bool:
        """Whether the copy of the model masks padding."""
        return self._computer.model.masked("padding")

    @property
    def _asked(self) -> list[Question]:
        """The tracked words without mean maps."""
        return [question for question in self._questions if not question.words]

    def _batch_of(self, questions: Sequence[Question]) -> WordBatch:
        if questions[0].words:
            return mean_batch(self._task, questions[0], hidden=self._hidden)
        written = self._written
        return word_batch(self._task, questions, written.by_word, written.step, hidden=self._hidden)

    def _computed(
        self, steps: Sequence[int], rows: torch.Tensor, batches: Sequence[WordBatch]
    ) -> list[Chunk]:
        """Compute the maps of steps, as many steps at once as `MAPS_BYTES` allows, but at least one."""
        n_cells = max(batch.n_cells(self._computer.axes) for batch in batches)
        n = max(1, MAPS_BYTES // (4 * self._model.config.n_heads * n_cells))
        chunks = []
        for at in range(0, len(steps), n):
            for one in batches:
                guesses, maps = self._computer.compute(rows[at : at + n], one.batch.src, one.batch.tgt_in)
                if one.words[0].n_words:  # a mean map, which predicts no token
                    guesses = np.zeros_like(guesses[:, :1])
                    maps = {site: weights.mean(axis=1, keepdims=True) for site, weights in maps.items()}
                for i, word in enumerate(one.words):
                    of_word = {site: weights[:, i] for site, weights in maps.items()}
                    chunks.append(self._chunk(word, steps[at : at + n], guesses[:, i], of_word))
        return chunks

    def _chunk(self, word: Word, steps: Sequence[int], guesses: Array, maps: Mapping[str, Array]) -> Chunk:
        """The computed maps of one word.

        Args:
            guesses: (N, T) ids of the most probable tokens.
            maps: (N, H, Q, K) for each site, including masked padding.
        """
        axes, taken = self._computer.axes, self._computer.model.interventions
        codes = {}
        for site, weights in maps.items():
            may = allowed_cells(word, axes[site], taken, site, weights.shape[1])
            codes[site] = coded(weights[:, :, : may.shape[1], : may.shape[2]], may)
        n_rows = len(word.expected)
        ids, places = np.unique(guesses[:, :n_rows], return_inverse=True)
        return Chunk(
            word=word,
            axes=axes,
            interventions=taken,
            steps=tuple(steps),
            drawn_at=self.drawn.first_step(word.text),
            looked_up_to=self.drawn.steps,
            vocabulary=("",) if word.n_words else self._task.tgt_tokenizer.tokens(ids.tolist()),
            predicted=places.reshape(len(steps), n_rows).astype(np.uint16),
            maps=codes,
        )

    # Scores and outputs, which cost more than maps.

    def measure(self, step: int) -> Measurement:
        """Measure the scores of all heads with the current weights."""
        measured = self._measurement(step, self._model)
        self._clearest = measured.clearest
        return measured

    def measure_past(self, step: int, weights: Weights) -> Measurement:
        """Measure the scores of all heads with the kept weights of a step, and the present interventions.

        Raises:
            InputError: the weights of this step are not kept.
        """
        self._intervene()
        (row,) = stacked([weights.body(step)], self._device)
        return self._measurement(step, self._computer.load(row))

    def _measurement(self, step: int, model: Transformer) -> Measurement:
        scores = self._scorer.scores(model)
        of_target = {site: scores[site][self._task.target_score] for site in reading_sites(model.axes())}
        clearest, _ = clearest_head(of_target, self._clearest)
        return Measurement(step=step, head_scores=scores, clearest=clearest)

    def write(self, step: int) -> Outputs:
        """Write the free-running output for each word, mean maps left out, with the current weights.

        Call `compute` before if earlier steps are pending: from now on, the maps of words with an unknown
        answer run over these outputs.
        """
        # If all rows of a word predict right, greedy decoding writes the right answer, because each row then
        # reads the same tokens as in the map; this does not hold if rows read ahead.
        model = self._model
        foreseen = self._decoding.width == 1 and (model.masked("causal") or model.writes_at_once)
        known_right = self._known_right[1] if foreseen and self._known_right[0] == step else set()
        by_word = outputs_of(model, self._task, self._asked, self._decoding, known_right)
        self._written, self._batches = Outputs(step=step, by_word=by_word), None
        return self._written

    def row(self) -> bytes:
        """The current weights as bytes, in the format of `Weights`."""
        tensors = self._model.state_dict().values()
        return b"".join(tensor.detach().float().cpu().numpy().tobytes() for tensor in tensors)


def _predicts_right(chunk: Chunk) -> bool:
    """Whether the right answer is known and, at the last step, each row that writes predicts its token."""
    pairs = zip(chunk.predictions(-1), chunk.word.expected, strict=True)
    return chunk.word.answer is not None and all(was == is_to for was, is_to in pairs if is_to)


class FrameScheduler:
    """Sets the recording interval `every` in steps: 1, unless recording every step costs too much.

    Args:
        every: the initial interval.
    """

    def __init__(self, every: int = 1) -> None:
        self.every = every
        self._recording = 0.0  # total seconds of recording
        self._lately = 0.0, 0.0  # seconds of recording and steps recorded, as decaying sums
        self._a_step = 0.0  # seconds of a training step, a moving average

    def trained(self, seconds: float) -> None:
        """Note the seconds that a training step took."""
        self._a_step = FADING * self._a_step + (1 - FADING) * seconds if self._a_step else seconds

    def recorded(self, n: int, seconds: float, *, watched: bool) -> None:
        """Note the seconds of recording, in which the maps of `n` steps were computed, and adapt `every`."""
        self._recording += seconds
        fading = FADING if n else 1.0
        self._lately = fading * self._lately[0] + seconds, fading * self._lately[1] + n
        if not n or self._recording < KNOWN_SECONDS or not self._a_step:
            return
        a_frame = self._lately[0] / self._lately[1]
        share, allowed = a_frame / (self.every * self._a_step), WATCHED if watched else UNWATCHED
        if share > TOLERANCE * allowed:
            self.every = min(MOST_APART, 2 * self.every)
        elif self.every > 1 and 2 * share < TOLERANCE * allowed:  # twice as often costs twice as much at most
            self.every //= 2

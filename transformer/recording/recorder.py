"""Making frames: one look at the model from the inside, over the probes and over fixed held-out words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import torch

from transformer.decoding import GREEDY, Decoding, Written, write
from transformer.insight.scores import clearest_head, head_scores
from transformer.model.transformer import PAD_ID, Transformer
from transformer.recording.drawn import Drawn
from transformer.recording.frame import Array, Axes, Frame, Probe, reading_sites
from transformer.recording.tape import record
from transformer.tasks import Batch, Question, Task

N_SCORED_WORDS = 64
"""Held-out examples on which head scores are measured; words have at least three letters."""


def axes_of(model: Transformer) -> dict[str, Axes]:
    """Every site of a model, in the order of the forward pass, and what its axes and masks are now."""
    return {
        site.name: Axes(
            query=site.query, key=site.key, writes=site.writes, causal=site.causal, padding=site.padding
        )
        for site in model.sites()
    }


class Recorder:
    """Makes the frames of one model. Draws nothing, so that recording never changes what is learned.

    Args:
        model: looked at only while `frame` runs, by the thread that calls it.
        task: knows the right answers.
        decoding: how the outputs are looked for.
    """

    def __init__(self, model: Transformer, task: Task, decoding: Decoding = GREEDY) -> None:
        self.model, self.task, self.decoding = model, task, decoding
        self.questions: list[Question] = []
        self.drawn = Drawn()
        """What training has drawn; told by who trains."""
        self._clearest: tuple[str, int] | None = None
        letters = task.same_length
        self._scored = [w for w in task.held_out() if not letters or len(w) >= 3][:N_SCORED_WORDS]
        pairs = [task.pair(word) for word in self._scored]
        read = task.src_tokenizer.encode(self._scored)
        written = task.tgt_tokenizer.encode([pair.target for pair in pairs if pair is not None])
        self._scored_lengths = tuple(len(ids) - 2 for ids in read)
        self._scored_answers = None if letters else tuple(len(ids) - 2 for ids in written)
        links = [task.links(word) for word in self._scored]
        self._scored_links = tuple(one or () for one in links) if task.aim == "gold" else None
        self._scored_ids: dict[bool, tuple[torch.Tensor, torch.Tensor]] = {}

    def add(self, question: Question) -> None:
        """Record this word in every frame from now on."""
        if question not in self.questions:
            self.questions.append(question)

    def resume(self, newest: Frame | None, seed: int, step: int) -> None:
        """Stand where a recorder stood that has made this frame, after so many steps of training."""
        self._clearest = newest.clearest if newest is not None else None
        for k in range(step):
            if self.drawn.steps == k:
                self.drawn.note(k + 1, [pair.source for pair in self.task.pairs(seed, k)])

    def frame(
        self,
        *,
        step: int,
        seconds: float,
        loss: float | None,
        exact: tuple[int, int] | None,
        exact_step: int,
        by_length: Mapping[int, tuple[int, int]] = MappingProxyType({}),
        held_out_loss: float | None = None,
        free_loss: float | None = None,
        token_accuracy: float | None = None,
        bleu: float | None = None,
        chrf: float | None = None,
        samples: tuple[tuple[str, str], ...] = (),
    ) -> Frame:
        """Everything there is to see now; the arguments are what the frame says of itself."""
        self.model.eval()  # the next training step sets train mode again
        scores, axes = self.head_scores(), axes_of(self.model)
        aimed = {site: scores[site][self.task.aim] for site in reading_sites(axes)}
        self._clearest, _ = clearest_head(aimed, self._clearest)
        probes, maps = self._probes()
        return Frame(
            step=step,
            seconds=seconds,
            loss=loss,
            exact=exact,
            exact_step=exact_step,
            probes=probes,
            axes=axes,
            maps=maps,
            head_scores=scores,
            clearest=self._clearest,
            aim=self.task.aim,
            by_length=by_length,
            held_out_loss=held_out_loss,
            free_loss=free_loss,
            token_accuracy=token_accuracy,
            bleu=bleu,
            chrf=chrf,
            samples=samples,
            interventions=self.model.interventions,
        )

    def _tensor(self, ids: Array) -> torch.Tensor:
        return torch.from_numpy(ids).to(self.model.to_logits.weight.device)

    def head_scores(self) -> dict[str, dict[str, Array]]:
        """Every score of every head, (H,) each, by site and name."""
        with record(self.model) as tape:
            self.model(*self._scored_tensors(filled=not self.model.masked("padding")))
        every, weights = axes_of(self.model), tape.weights
        reading = reading_sites(every)
        return {
            site: head_scores(
                weights[site],
                axes.kind,
                self._scored_lengths,
                causal=axes.causal,
                answers=self._scored_answers,
                links=self._scored_links if site in reading else None,
            )
            for site, axes in every.items()
        }

    def _scored_tensors(self, *, filled: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """The scored words as the model reads them: the same at every frame."""
        if filled not in self._scored_ids:
            batch = self.task.encode(self._scored, filled=filled)
            self._scored_ids[filled] = self._tensor(batch.src), self._tensor(batch.tgt_in)
        return self._scored_ids[filled]

    def _together(self) -> list[list[int]]:
        """Which probes the model is asked in one batch.

        All at once; but a model that sees its padding knows no other length than that of training, so then a
        longer word, which would lengthen the others, has a batch of its own.
        """
        every = range(len(self.questions))
        if self.model.masked("padding"):
            return [list(every)]
        short = [i for i in every if not self.questions[i].too_long]
        return [some for some in (short, *([i] for i in every if self.questions[i].too_long)) if some]

    def _probes(self) -> tuple[tuple[Probe, ...], dict[str, Array]]:
        """Each question's tokens, outputs and maps: teacher-forced maps, free-running outputs."""
        asked: dict[int, tuple[Probe, dict[str, Array]]] = {}
        for places in self._together():
            asked.update(zip(places, self._ask([self.questions[i] for i in places]), strict=True))
        found = [asked[i] for i in range(len(self.questions))]
        sites = found[0][1] if found else ()
        return tuple(probe for probe, _ in found), {
            site: _stacked([maps[site] for _, maps in found]) for site in sites
        }

    def _ask(self, questions: Sequence[Question]) -> list[tuple[Probe, dict[str, Array]]]:
        """Each of these questions, asked in one batch, with its maps: site to (H, Q, K) float16."""
        model, task, tokenizer = self.model, self.task, self.task.tgt_tokenizer
        hidden = model.masked("padding")
        batch = task.encode([question.text for question in questions], filled=not hidden)
        known, written = all(question.answer is not None for question in questions), None
        if known:
            guesses, maps = self._read(batch)
            written = self._repeated(batch, guesses)
        if written is None:
            batch, written = answered(model, task, questions, self.decoding)
        if not known:
            guesses, maps = self._read(batch)
        found = []
        for i, question in enumerate(questions):
            # Where [PAD] is not hidden it is looked at, and belongs on the maps.
            n_src, n_tgt = (
                int((ids[i] != PAD_ID).sum()) if hidden else ids.shape[1] for ids in (batch.src, batch.tgt_in)
            )
            # Padding makes room for longer words; a word of its own may write three letters too many.
            n_written = min(int(written.lengths[i]), int((batch.answers[i] != PAD_ID).sum()) + 3)
            ids = written.tokens[i, :n_written].tolist()
            output, stopped = tokenizer.text(ids)
            labels = batch.tgt_out[i, :n_tgt].tolist()
            answer = batch.answers[i][batch.answers[i] != PAD_ID].tolist()[:-1]
            known = question.answer is not None
            probe = Probe(
                text=question.text,
                answer=question.answer,
                output=output,
                stopped=stopped,
                src_tokens=task.src_tokenizer.tokens(batch.src[i, :n_src].tolist()),
                tgt_tokens=tokenizer.tokens(batch.tgt_in[i, :n_tgt].tolist()),
                expected=expected_tokens(task, labels),
                predicted=tokenizer.tokens(guesses[i, :n_tgt].tolist()),
                held_out=question.held_out,
                too_long=question.too_long,
                too_short=question.too_short,
                drawn_at=self.drawn.first_step(question.text),
                looked_up_to=self.drawn.steps,
                right=known and stopped and task.accepts(question.text, output),
                pieces=tokenizer.pieces(ids[:-1] if stopped else ids),
                wanted=tokenizer.pieces(answer) if known else (),
                n_read=task.n_tokens(question.text),
                links=task.links(question.text),
            )
            found.append((probe, {site: weights[i].astype(np.float16) for site, weights in maps.items()}))
        return found

    def _read(self, batch: Batch) -> tuple[Array, dict[str, Array]]:
        """One pass over a batch: the likeliest tokens, (B, T), and the weights of each site."""
        with record(self.model) as tape:
            guesses = self.model(self._tensor(batch.src), self._tensor(batch.tgt_in)).argmax(-1)
        return guesses.cpu().numpy(), tape.weights

    def _repeated(self, batch: Batch, guesses: Array) -> Written | None:
        """What the model writes by itself where it is right at every position of the right answers.

        Each token that it writes greedily is then the one that it was given here, so it need not be asked
        again, token by token. None where a token is wrong, or where this does not follow.
        """
        labels = batch.tgt_out
        if self.decoding.width > 1 or not self.model.can_keep or (guesses != labels)[labels != PAD_ID].any():
            return None
        return Written(torch.from_numpy(labels), torch.from_numpy((labels != PAD_ID).sum(axis=1)))


def answered(
    model: Transformer, task: Task, questions: Sequence[Question], decoding: Decoding = GREEDY
) -> tuple[Batch, Written]:
    """Questions as a batch with their answers, and what the model writes; it is in eval mode from then on.

    Where nobody knows the right answer, the model's own output stands for it.
    """
    filled, tokenizer = not model.masked("padding"), task.tgt_tokenizer
    texts = [question.text for question in questions]
    batch = task.encode(texts, filled=filled)
    if model.training:
        model.eval()  # the next training step sets train mode again
    unknown = [i for i, question in enumerate(questions) if question.answer is None]
    # An answer that nobody knows may be longer than its question, but not without end.
    room = max(batch.answers.shape[1], batch.src.shape[1] if unknown else 0) + 3
    written = write(model, batch, tokenizer.eos_id, room, decoding=decoding)
    if unknown:
        most = model.config.max_len - batch.prompt.shape[1]
        own: list[list[int]] = [[]] * len(texts)
        for i in unknown:
            ids = written.tokens[i, : int(written.lengths[i])].tolist()
            own[i] = [token for token in ids if token not in (tokenizer.eos_id, PAD_ID)][:most]
        batch = task.encode(texts, filled=filled, own=own)
    return batch, written


def _stacked(maps: Sequence[Array]) -> Array:
    """Maps (H, Q, K) of several batches as one (P, H, Q, K), with nothing behind the smaller ones."""
    sizes = tuple(max(size) for size in zip(*(one.shape for one in maps), strict=True))
    together = np.zeros((len(maps), *sizes), dtype=np.float16)
    for i, one in enumerate(maps):
        together[i, :, : one.shape[1], : one.shape[2]] = one
    return together


def expected_tokens(task: Task, labels: Sequence[int]) -> tuple[str, ...]:
    """What each position is to write, by its label; empty where that is nothing."""
    tokens = task.tgt_tokenizer.tokens(labels)
    return tuple("" if label == PAD_ID else token for label, token in zip(labels, tokens, strict=True))

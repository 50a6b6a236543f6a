"""The scores of every head, on a fixed set of words."""

from __future__ import annotations

import numpy as np
import torch

from transformer.insight.origin import LEAST_WORDS, origin_scores
from transformer.insight.scores import head_scores
from transformer.model.transformer import Transformer
from transformer.recording.activations import record
from transformer.recording.frame import Array
from transformer.shared.attention_info import reading_sites
from transformer.tasks import Batch, Task
from transformer.tasks.task import N_EQUAL_WORDS
from transformer.tasks.unknown import mostly_known

N_SCORED_WORDS = 64
"""Maximum number of held-out examples for head scores: those with mostly known tokens and, in tasks whose
answers are as long as their questions, with 3 letters or more."""


class Scorer:
    """Measures every head of a model on fixed held-out words.

    If no held-out word has mostly known tokens, all scores are 0: they would only measure attention to [UNK].

    Args:
        task: provides the words and their answers.
    """

    def __init__(self, task: Task) -> None:
        self._task, letters = task, task.corpus.same_length
        words = [word for word in task.held_out() if not letters or len(word) >= 3]
        scored = mostly_known(task, words, N_SCORED_WORDS)
        self._any_known, self._words = bool(scored), scored or words[:1]
        pairs = [task.pair(word) for word in self._words]
        read = task.src_tokenizer.encode(self._words)
        written = task.tgt_tokenizer.encode([pair.target for pair in pairs if pair is not None])
        self._lengths = tuple(len(ids) - 2 for ids in read)
        self._answers = None if letters else tuple(len(ids) - 2 for ids in written)
        links = [task.links(word) for word in self._words]
        self._links = tuple(link or () for link in links) if task.target_score == "gold" else None
        self._equal = _of_one_length(task)
        self._equal_sides: dict[bool, dict[str, Array]] = {}
        of = task.tgt_tokenizer
        self._special = of.pad_id, of.sos_id, of.eos_id, of.unk_id, of.sep_id
        self._tokens = {
            side: [[None if id_ < 0 else id_ for id_ in row] for row in ids.tolist()]
            for side, ids in self._sides(task.encode(self._words)).items()
        }
        """Ids of each word by the side of an axis; None for [PAD] and other special tokens."""
        self._tensors: dict[tuple[bool, bool], tuple[torch.Tensor, torch.Tensor]] = {}

    def scores(self, model: Transformer) -> dict[str, dict[str, Array]]:
        """Every score of every head, (H,) each, by site and name. Leaves the model in eval mode."""
        if model.training:
            model.eval()  # the next training step sets train mode again
        with record(model) as cache:
            model(*self._batch(filled=not model.masked("padding"), device=model.to_logits.weight.device))
        origin = self._origin(model)
        every = model.axes()
        reading = reading_sites(every)
        scores = {
            site: head_scores(
                cache.weights[site],
                axes.kind,
                self._lengths,
                causal=axes.causal,
                answers=self._answers,
                links=self._links if site in reading else None,
                tokens=self._tokens[axes.query] if axes.query == axes.key else None,
            )
            | origin.get(site, {})
            for site, axes in every.items()
        }
        if self._any_known:
            return scores
        return {site: {name: np.zeros_like(row) for name, row in of.items()} for site, of in scores.items()}

    def _origin(self, model: Transformer) -> dict[str, dict[str, Array]]:
        """The scores place and token of each head by site, on words of one length; empty if too few."""
        if len(self._equal) < LEAST_WORDS:
            return {}
        filled = not model.masked("padding")
        with record(model) as cache:
            model(*self._batch(filled=filled, device=model.to_logits.weight.device, equal=True))
        if filled not in self._equal_sides:
            self._equal_sides[filled] = self._sides(self._task.encode(self._equal, filled=filled))
        sides, origins = self._equal_sides[filled], {}
        for site, axes in model.axes().items():
            weights = np.array(cache.weights[site])
            if axes.causal:
                weights[..., np.triu(np.ones(weights.shape[2:], dtype=bool), 1)] = np.nan
            origins[site] = origin_scores(weights, sides[axes.query], sides[axes.key])
        return origins

    def _sides(self, batch: Batch) -> dict[str, Array]:
        """(B, T) ids by the side of an axis; -1 for special tokens."""
        side_tokens = {"src": batch.src, "tgt": batch.tgt_in, "seq": batch.tgt_in}
        return {side: np.where(np.isin(ids, self._special), -1, ids) for side, ids in side_tokens.items()}

    def _batch(
        self, *, filled: bool, device: torch.device, equal: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """src and tgt_in of the scored words, cached; `equal`: of those of one length."""
        key = filled, equal
        if key not in self._tensors:
            batch = self._task.encode(self._equal if equal else self._words, filled=filled)
            src, tgt = torch.from_numpy(batch.src), torch.from_numpy(batch.tgt_in)
            self._tensors[key] = src.to(device), tgt.to(device)
        return self._tensors[key]


def _of_one_length(task: Task) -> list[str]:
    """Up to `N_EQUAL_WORDS` held-out examples whose questions have the most frequent length, in tokens; their
    answers may differ in length."""
    words = task.held_out()
    sizes: dict[int, list[str]] = {}
    for word, question in zip(words, task.src_tokenizer.encode(words), strict=True):
        sizes.setdefault(len(question), []).append(word)
    return max(sizes.values(), key=len, default=[])[:N_EQUAL_WORDS]

"""A model with given token probabilities, and simple reference searches."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from transformer.decoding.greedy import Written
from transformer.model.transformer import Transformer
from transformer.tasks import Batch

EOS = 2


class ScriptedModel:
    """A model whose next-token probabilities are a function of (question, tokens written so far).

    Args:
        most: maximum number of positions.
    """

    writes_at_once = supports_kv_cache = False
    encoder: tuple[()] = ()

    def __init__(self, says: Callable[[int, tuple[int, ...]], list[float]], most: int = 50) -> None:
        self.says, self.config = says, SimpleNamespace(max_len=most)
        self.to_logits = torch.nn.Linear(1, 1)
        self.passes = 0

    def decode(self, memory: None, src: torch.Tensor, tgt: torch.Tensor) -> torch.Tensor:
        self.passes += 1
        rows = [
            [self.says(int(question[0]), tuple(ids[1 : t + 1])) for t in range(len(ids))]
            for question, ids in zip(src, tgt.tolist(), strict=True)
        ]
        return torch.tensor(rows, dtype=torch.float64).log().float()

    def asked(self, n: int) -> Batch:
        """Return a batch of the questions 0 to n - 1."""
        ids, nothing = np.arange(n)[:, None], np.zeros((n, 0), dtype=np.int64)
        return Batch(ids, nothing, nothing, nothing, np.ones((n, 1), dtype=np.int64))

    def log_probability(self, question: int, tokens: tuple[int, ...]) -> float:
        """Return the log probability of these tokens, one after the other."""
        return sum(math.log(self.says(question, tokens[:i])[token]) for i, token in enumerate(tokens))


def penalty(n: int, alpha: float) -> float:
    return ((5 + n) / 6) ** alpha


def best_of_all(model: ScriptedModel, question: int, size: int, most: int, alpha: float) -> tuple[int, ...]:
    """Return the best-scoring of all sequences of at most `most` tokens that end with [EOS]."""
    others = [token for token in range(size) if token != EOS]
    every = [(*begun, EOS) for n in range(most) for begun in itertools.product(others, repeat=n)]
    return max(every, key=lambda ids: model.log_probability(question, ids) / penalty(len(ids), alpha))


def by_hand(
    model: ScriptedModel, question: int, size: int, most: int, width: int, alpha: float
) -> tuple[tuple[int, ...], list[list[tuple[int, ...]]]]:
    """Run beam search on a list of sequences; return the answer and the beam after each token."""
    opened, finished, levels = [()], [], []
    for _ in range(most):
        every = [(*begun, token) for begun in opened for token in range(size)]
        every = sorted(every, key=lambda ids: -model.log_probability(question, ids))[:width]
        levels.append(every)
        finished += [ids for ids in every if ids[-1] == EOS]
        opened = [ids for ids in every if ids[-1] != EOS]
        scores = [model.log_probability(question, ids) / penalty(len(ids), alpha) for ids in finished]
        hopes = [model.log_probability(question, ids) / penalty(most, alpha) for ids in opened]
        if not hopes or (scores and max(scores) >= max(hopes)):
            break
    return (finished[scores.index(max(scores))] if finished else opened[0]), levels


def at_random(size: int, seed: int) -> Callable[[int, tuple[int, ...]], list[float]]:
    """Return a function with random probabilities for each prefix, the same on every call."""
    known: dict[tuple[int, ...], list[float]] = {}

    def says(question: int, tokens: tuple[int, ...]) -> list[float]:
        key = (question, *tokens)
        if key not in known:
            known[key] = np.random.default_rng([seed, *key]).dirichlet(np.full(size, 0.6)).tolist()
        return known[key]

    return says


def probabilities_from(
    table: dict[tuple[int, ...], dict[int, float]],
) -> Callable[[int, tuple[int, ...]], list[float]]:
    """Return a lookup of next-token probabilities by prefix; after a prefix without an entry comes [EOS]."""
    return lambda _question, tokens: [table.get(tokens, {EOS: 1.0}).get(token, 0.0) for token in range(7)]


def unpadded(written: Written) -> list[list[int]]:
    """Return the written tokens as lists of different lengths, and assert that only padding follows."""
    found = []
    for row, n in zip(written.tokens.tolist(), written.lengths.tolist(), strict=True):
        assert not any(row[n:])
        found.append(row[:n])
    return found


@torch.no_grad()
def without_output_bias(model: Transformer) -> Transformer:
    """Put a model in eval mode with an output bias of zero, so that its tokens depend on what it reads."""
    model.eval().to_logits.bias.zero_()
    return model


@pytest.fixture
def scripted() -> SimpleNamespace:
    """The model with given probabilities, and the reference searches."""
    return SimpleNamespace(Model=ScriptedModel, best_of_all=best_of_all, by_hand=by_hand, at_random=at_random)

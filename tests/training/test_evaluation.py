"""Counting right words, against a comparison of texts one by one."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from transformer import decoding
from transformer.decoding import exact_words, letters_right
from transformer.training.evaluation import evaluate
from transformer.training.state import TrainState


def written_alone(state, word):
    """What the model writes for one word without padding, by whole forward passes: (text, stopped)."""
    tokenizer = state.task.tgt_tokenizer
    src = torch.tensor(state.task.src_tokenizer.encode([word]))
    tgt = torch.tensor([[tokenizer.sos_id]])
    for _ in range(len(word) + 1):
        newest = state.model(src, tgt)[:, -1].argmax(-1, keepdim=True)
        tgt = torch.cat([tgt, newest], dim=1)
    return tokenizer.text(tgt[0, 1:].tolist())


def test_exact_counts_equal_a_comparison_of_texts(half_trained):
    words = half_trained.task.held_out()[:120] + ["a", "to"]
    half_trained.model.eval()
    by_hand = [written_alone(half_trained, word) == (word[::-1], True) for word in words]
    assert 5 < sum(by_hand) < len(words) - 5, "the model must be neither perfect nor ignorant"
    assert exact_words(half_trained.model, half_trained.task, words) == by_hand
    result = evaluate(half_trained, words, ["cat", "frog"])
    assert (result.right, result.total) == (sum(by_hand), len(words))
    assert result.exact == sum(by_hand) / len(words)
    assert list(result.by_length) == sorted({len(word) for word in words})
    for length, counted in result.by_length.items():
        of_length = [right for word, right in zip(words, by_hand, strict=True) if len(word) == length]
        assert counted == (sum(of_length), len(of_length))
    assert result.everyday == (
        sum(written_alone(half_trained, word) == (word[::-1], True) for word in ("cat", "frog")),
        2,
    )


@pytest.mark.parametrize(
    ("outputs", "right"),
    [
        (
            [["t", "a", "c", "[EOS]"], ["x", "o", "[EOS]", "o"]],
            [True, True],
        ),  # what follows [EOS] means nothing
        ([["t", "a", "c", "c"], ["x", "o", "[EOS]", "[EOS]"]], [False, True]),  # all letters, but no stop
        ([["t", "a", "[EOS]"], ["x", "o", "[EOS]"]], [False, True]),  # all stopped before the longest answer
        ([["t", "a", "t", "[EOS]"], ["x", "[EOS]", "o", "o"]], [False, False]),
        ([["t", "a", "c", "[EOS]"], ["x", "o", "o", "[EOS]"]], [True, False]),  # a letter too many
        ([["[EOS]"], ["[EOS]"]], [False, False]),
        # An [EOS] too early: the right letters behind it are not written.
        ([["t", "[EOS]", "c", "[EOS]"], ["[EOS]", "o", "[EOS]", "o"]], [False, False]),
    ],
)
def test_a_word_is_right_to_the_last_letter_and_stops(tiny, monkeypatch, outputs, right):
    state = TrainState.begin(tiny())
    ids = {token: i for i, token in enumerate(state.task.tgt_tokenizer.tokens(range(30)))}
    written = torch.tensor([[ids[token] for token in row] for row in outputs])
    monkeypatch.setattr(decoding, "greedy", lambda *_: written)
    assert exact_words(state.model, state.task, ["cat", "ox"]) == right
    letters, real = letters_right(state.model, state.task, ["cat", "ox"])
    assert real.tolist() == [[True] * 4, [True] * 3 + [False]]
    for row, word, found in zip(outputs, ["cat", "ox"], letters.tolist(), strict=True):
        row = row[: row.index("[EOS]") + 1] if "[EOS]" in row else row
        answer = [*word[::-1], "[EOS]"]
        by_hand = [i < len(row) and i < len(answer) and row[i] == answer[i] for i in range(4)]
        assert found == by_hand


def test_the_held_out_loss_and_token_accuracy_are_those_of_each_word_alone(half_trained):
    words = ["cab", "dizz", "q", "to"]
    half_trained.model.eval()
    total, hits, n = 0.0, 0, 0
    for word in words:
        src, tgt_in, labels = half_trained.to_device(half_trained.task.encode([word]))
        probabilities = half_trained.model(src, tgt_in)[0].detach().double().softmax(-1)
        total -= float(probabilities[torch.arange(len(word) + 1), labels[0]].log().sum())
        hits += int((probabilities.argmax(-1) == labels[0]).sum())
        n += len(word) + 1
    result = evaluate(half_trained, words)
    assert result.loss == pytest.approx(total / n, rel=1e-5)
    assert result.token_accuracy == hits / n
    assert result.everyday is None
    assert result.step == half_trained.step


@pytest.mark.parametrize("training", [True, False])
def test_evaluating_draws_nothing_and_leaves_the_mode_as_it_was(tiny, training):
    state = TrainState.begin(tiny(dropout=0.5))
    state.model.train(training)
    before = torch.get_rng_state(), state.dropout.get_state(), np.random.get_state()[1].copy()
    weights = copy.deepcopy(state.model.state_dict())
    first, again = (evaluate(state, ["cat", "ox"], ["dog"]) for _ in range(2))
    assert first == again
    assert torch.equal(torch.get_rng_state(), before[0])
    assert torch.equal(state.dropout.get_state(), before[1])
    assert np.array_equal(np.random.get_state()[1], before[2])
    assert all(m.training == training for m in state.model.modules())
    for name, weight in state.model.state_dict().items():
        assert torch.equal(weight, weights[name])

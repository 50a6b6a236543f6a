"""Counts of right words, compared with texts checked one by one."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.conftest import LIVE
from transformer.decoding import spelling
from transformer.decoding.beam import Decoding
from transformer.decoding.greedy import Written
from transformer.decoding.spelling import spell
from transformer.training.evaluation import evaluate
from transformer.training.loop import train
from transformer.training.state import TrainState


def written_alone(state, word):
    """Return the output for one word without padding, by full forward passes: (text, stopped)."""
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
    assert spell(half_trained.model, half_trained.task, words).exact == by_hand
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


def test_an_evaluation_of_all_held_out_words_also_counts_the_words_of_every_evaluation(half_trained):
    words = half_trained.task.held_out()
    more, as_always = evaluate(half_trained, words), evaluate(half_trained, words[:LIVE])
    assert as_always.live is None
    assert more.live == (as_always.right, as_always.total) == (as_always.right, LIVE)
    assert more.right > as_always.right > 0


@pytest.mark.parametrize(
    ("outputs", "right"),
    [
        (
            [["t", "a", "c", "[EOS]"], ["x", "o", "[EOS]", "[PAD]"]],
            [True, True],
        ),
        ([["t", "a", "c", "c"], ["x", "o", "[EOS]", "[PAD]"]], [False, True]),  # all letters, but no stop
        ([["t", "a", "[EOS]"], ["x", "o", "[EOS]"]], [False, True]),  # all stopped before the longest answer
        ([["t", "a", "t", "[EOS]"], ["x", "[EOS]", "[PAD]", "[PAD]"]], [False, False]),
        ([["t", "a", "c", "[EOS]"], ["x", "o", "o", "[EOS]"]], [True, False]),  # a letter too many
        ([["[EOS]"], ["[EOS]"]], [False, False]),
    ],
)
def test_a_word_is_right_only_if_every_letter_is_right_and_it_stops(tiny, monkeypatch, outputs, right):
    state = TrainState.begin(tiny())
    ids = {token: i for i, token in enumerate(state.task.tgt_tokenizer.tokens(range(30)))}
    written = torch.tensor([[ids[token] for token in row] for row in outputs])
    losses = torch.tensor([[0.5, 1.0, 2.0, 0.25], [4.0, 0.125, 8.0, 99.0]])  # the last one is of padding
    lengths = (written != 0).sum(1)
    monkeypatch.setattr(spelling, "greedy", lambda *_, compare: Written(written, lengths, losses))
    spelled = spell(state.model, state.task, ["cat", "ox"])
    assert spelled.exact == right
    assert spelled.real.tolist() == [[True] * 4, [True] * 3 + [False]]
    assert spelled.loss == pytest.approx((0.5 + 1.0 + 2.0 + 0.25 + 4.0 + 0.125 + 8.0) / 7)
    for row, word, found in zip(outputs, ["cat", "ox"], spelled.right.tolist(), strict=True):
        answer = [*word[::-1], "[EOS]"]
        by_hand = [i < len(row) and i < len(answer) and row[i] == answer[i] for i in range(4)]
        assert found == by_hand


def test_tokens_after_an_eos_are_not_right(tiny, monkeypatch):
    """The model writes t, [EOS], c, [EOS] for "cat": only the t counts."""
    state = TrainState.begin(tiny())
    ids = [state.task.tgt_tokenizer.id_of(token) for token in ("t", "[EOS]", "c", "[EOS]")]

    def decode(memory, src, tgt, cache):
        return torch.nn.functional.one_hot(torch.tensor(2 * [[ids[tgt.size(1) - 1]]]), 30).float()

    monkeypatch.setattr(state.model, "decode", decode)
    spelling = spell(state.model, state.task, ["cat", "ox"])
    assert spelling.right.tolist() == [[True, False, False, False], [False] * 4]
    assert spelling.exact == [False, False]


def test_the_held_out_loss_and_token_accuracy_equal_those_of_words_evaluated_one_by_one(half_trained):
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


def free_running_losses(state, word):
    """Yield the loss of each token of one word, given the output that the model has written so far."""
    src, tgt = torch.tensor(state.task.src_tokenizer.encode([word])), torch.tensor([[1]])
    for letter in [*word[::-1], "[EOS]"]:
        probabilities = state.model(src, tgt)[0, -1].detach().double().softmax(-1)
        yield -float(probabilities[state.task.tgt_tokenizer.id_of(letter)].log())
        tgt = torch.cat([tgt, probabilities.argmax().view(1, 1)], dim=1)


def test_the_free_running_loss_equals_that_of_a_loop_over_the_model_s_own_output(half_trained):
    words = ["cab", "dizz", "q", "to", "banana"]
    half_trained.model.eval()
    by_hand = [loss for word in words for loss in free_running_losses(half_trained, word)]
    result = evaluate(half_trained, words)
    assert len(by_hand) == sum(len(word) + 1 for word in words)
    assert result.free_loss == pytest.approx(sum(by_hand) / len(by_hand), rel=1e-4)
    assert abs(result.free_loss - result.loss) > 0.01, "the two must differ to be told apart"


def test_both_losses_of_an_encoder_alone_are_equal_since_it_reads_no_output(tiny):
    state = TrainState.begin(tiny(topology="encoder-only"))
    result = evaluate(state, ["cab", "d", "zebra"])
    assert result.free_loss == pytest.approx(result.loss, rel=1e-5)


@pytest.mark.parametrize("topology", ["encoder-only", "decoder-only"])
@pytest.mark.parametrize("causal", [True, False])
def test_an_evaluation_of_one_stack_equals_that_of_words_evaluated_one_by_one(tiny, fill, topology, causal):
    """Words of at most three letters, so that an almost random model gets some of them right."""
    config = tiny(topology=topology, causal_mask=causal, max_letters=3, batch_size=32, learning_rate=0.02)
    state = TrainState.begin(config.with_changes(steps=60))
    for _ in train(state):
        pass
    words = [a + b for a in "abcdef" for b in "abcdef"] + list("abcdefgh") + ["abc"]
    result = evaluate(state, words)
    each = [evaluate(state, [word]) for word in words]
    n = [len(word) + 1 for word in words]
    assert result.right > 0 or not causal
    assert result.right == sum(one.right for one in each)
    for name in ("loss", "free_loss", "token_accuracy"):
        values = [getattr(one, name) for one in each]
        assert getattr(result, name) == pytest.approx(np.average(values, weights=n), rel=1e-4)


@pytest.mark.parametrize("training", [True, False])
def test_evaluating_draws_no_random_numbers_and_leaves_the_mode_unchanged(tiny, training):
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


def test_a_run_with_beam_search_is_evaluated_with_it(half_trained):
    """Outputs come from beam search; losses still come from greedy outputs, so that runs are comparable."""
    held_out = [pair.source for pair in half_trained.task.corpus.held_out()]
    words, everyday = held_out[:60], held_out[60:160]
    config = half_trained.config.with_changes(decoding="beam", beam_width=5, length_penalty=0.4)
    beams = evaluate(replace(half_trained, config=config), words, everyday)
    greedy = evaluate(half_trained, words)
    as_set = {"decoding": Decoding(5, 0.4)}
    assert beams.right == sum(spell(half_trained.model, half_trained.task, words, **as_set).exact)
    outputs = spell(half_trained.model, half_trained.task, everyday, **as_set)
    assert beams.everyday == (sum(outputs.exact), 100)
    assert beams.right != greedy.right
    assert sum(outputs.exact) != sum(spell(half_trained.model, half_trained.task, everyday).exact)
    assert (beams.loss, beams.free_loss) == (greedy.loss, greedy.free_loss)

"""Greedy decoding, token by token, compared with full forward passes."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from tests.decoding.conftest import unpadded, without_output_bias
from transformer.decoding.greedy import greedy
from transformer.model.transformer import PAD_ID, Transformer
from transformer.shared.interventions import Interventions
from transformer.training.state import TrainState

SOS, EOS = 1, 2
LENGTHS = [6, 2, 5, 3]


@pytest.fixture
def src(sentences, tiny_model):
    return sentences(LENGTHS, tiny_model.src_vocab_size, seed=3)


def greedy_without_cache(model, src, max_tokens):
    """Decode greedily without a KV cache."""
    tgt = torch.full((len(src), 1), SOS)
    for _ in range(max_tokens):
        tgt = torch.cat([tgt, model(src, tgt)[:, -1].argmax(-1, keepdim=True)], dim=1)
        if all(EOS in row for row in tgt.tolist()):
            break
    return tgt[:, 1:]


@torch.no_grad()
@pytest.mark.parametrize(("seed", "causal"), [(0, True), (1, True), (2, True), (3, True), (0, False)])
def test_greedy_decoding_equals_a_loop_without_a_kv_cache(
    tiny_model, fill, sentences, batch_of, seed, causal
):
    """Without the causal mask there is no cache: everything is read again for each token."""
    config = replace(tiny_model, causal_mask=causal)
    model = fill(Transformer(config), deviation=0.3 + 0.1 * seed).eval()
    model.to_logits.bias[PAD_ID] += 4.0
    src = sentences(LENGTHS, tiny_model.src_vocab_size, seed=seed)
    written = greedy(model, batch_of(src), EOS, 10)
    assert len(set(map(tuple, written.tokens.tolist()))) > 1
    assert (written.tokens == PAD_ID).any()
    assert unpadded(written) == cut(greedy_without_cache(model, src, 10))
    assert written.losses is None


def cut(tokens):
    """Return each row of (B, W) up to its first [EOS]."""
    return [row[: row.index(EOS) + 1] if EOS in row else row for row in tokens.tolist()]


def test_writing_stops_when_every_sequence_has_ended_and_not_earlier(model, src, monkeypatch, batch_of):
    ends = iter([[2, 5, 5, 5], [5, 5, 2, 5], [5, 2, 5, 5], [6, 6, 6, 2], [7, 7, 7, 7]])

    def decode(memory, src, tgt, cache):
        return torch.nn.functional.one_hot(torch.tensor(next(ends)), 17)[:, None]

    monkeypatch.setattr(model, "decode", decode)
    written = greedy(model, batch_of(src), EOS, 5)
    assert written.tokens.tolist() == [[2, 0, 0, 0], [5, 5, 2, 0], [5, 2, 0, 0], [5, 5, 5, 2]]
    assert written.lengths.tolist() == [1, 3, 2, 4]


@pytest.mark.parametrize(("most", "written"), [(3, 3), (50, 11)], ids=["limit", "positions"])
def test_writing_ends_at_the_limit_or_at_the_last_position(model, src, batch_of, most, written):
    """The last token needs no position: nothing reads it."""
    with torch.no_grad():
        model.to_logits.bias[EOS] = -1e9
    assert model.config.max_len == 11
    assert greedy(model, batch_of(src), EOS, most).lengths.tolist() == [written] * 4


# Losses of the right answer's tokens while the model reads its own output.


@torch.no_grad()
@pytest.mark.parametrize("topology", ["encoder-decoder", "decoder-only", "encoder-only"])
@pytest.mark.parametrize("causal", [True, False])
def test_free_running_losses_measure_the_right_tokens_given_the_model_s_own_output(
    tiny, fill, topology, causal
):
    """Reference: one word at a time, one pass per token, continued after an [EOS] that the model writes."""
    state = TrainState.begin(tiny(topology=topology, causal_mask=causal))
    model, task = fill(state.model).eval(), state.task
    model.to_logits.bias[EOS] += 4.0
    words = ["cab", "d", "zebra", "ox"]
    batch = task.encode(words)
    written = greedy(model, batch, EOS, 6, compare=True)
    assert written.losses.shape == batch.answers.shape == (4, 6)
    ended_early = 0
    for i, word in enumerate(words):
        alone = task.encode([word])
        src, tgt = torch.from_numpy(alone.src), torch.from_numpy(alone.prompt)
        for t, right in enumerate(alone.answers[0].tolist()):
            if topology == "encoder-only":
                logits = model(src)[0, t + 1]
            else:
                logits = model(tgt if topology == "decoder-only" else src, tgt)[0, -1]
            expected = -math.log(float(logits.double().softmax(-1)[right]))
            assert float(written.losses[i, t]) == pytest.approx(expected, abs=1e-4)
            tgt = torch.cat([tgt, logits.argmax().view(1, 1)], dim=1)
        ended_early += int(written.lengths[i]) <= len(word)
    assert ended_early, "an [EOS] of the model's own must come too early somewhere"
    assert unpadded(written) == unpadded(greedy(model, batch, EOS, 6))


# Question and answer in one sequence.


def one_by_one(model, task, word, most):
    """Decode greedily in one sequence, with a whole pass for each token."""
    ids = [1, *(task.src_tokenizer.id_of(letter) for letter in word), task.src_tokenizer.sep_id]
    written = []
    while EOS not in written and len(written) < most:
        written.append(
            int(model(torch.tensor([ids + written]), torch.tensor([ids + written]))[0, -1].argmax())
        )
    return written


@torch.no_grad()
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_words_of_different_lengths_in_one_batch_are_written_like_each_word_alone(tiny, fill, seed, causal):
    """Each answer begins after its own [SEP], and the padding after shorter words is never attended to."""
    state = TrainState.begin(tiny(topology="decoder-only", causal_mask=causal, max_letters=5))
    model = fill(state.model, deviation=0.3 + 0.1 * seed).eval()
    words = ["cab", "d", "zebra", "ox", "abcdefghij"]  # the last is of the maximum length, 2 * max_letters
    found = unpadded(greedy(model, state.task.encode(words), EOS, 7))
    assert found == [one_by_one(model, state.task, word, 7) for word in words]
    assert len(set(map(tuple, found))) > 2
    model.to_logits.bias[EOS] = -1e9
    found = unpadded(greedy(model, state.task.encode(words), EOS, 14))
    assert found == [one_by_one(model, state.task, word, 14) for word in words]
    assert [len(row) for row in found] == [14] * len(words)


# An encoder alone.


@torch.no_grad()
def test_an_encoder_alone_writes_one_token_for_each_token_read_except_sos(tiny, fill):
    state = TrainState.begin(tiny(topology="encoder-only"))
    model = fill(state.model).eval()
    words = ["cab", "d", "zebra", "ox"]
    model.to_logits.bias[EOS] = -1e9
    batch = state.task.encode(words)
    found = unpadded(greedy(model, batch, EOS, 2))
    assert [len(row) for row in found] == [4, 2, 6, 3]
    guesses = model(torch.from_numpy(batch.src)).argmax(-1)
    assert found == [guesses[i, 1 : len(word) + 2].tolist() for i, word in enumerate(words)]


@torch.no_grad()
def test_a_switched_mask_changes_what_is_written(tiny_model, fill, src, batch_of):
    model = without_output_bias(fill(Transformer(tiny_model), deviation=0.9))
    before = unpadded(greedy(model, batch_of(src), EOS, 8))
    model.intervene(Interventions(masks=(("causal", False),)), int)
    after = unpadded(greedy(model, batch_of(src), EOS, 8))
    assert after == cut(greedy_without_cache(model, src, 8))
    assert after != before

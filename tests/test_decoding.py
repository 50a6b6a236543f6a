"""Writing token by token with kept keys and values, against whole forward passes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from transformer.decoding import greedy
from transformer.model.transformer import PAD_ID, LayerMemory, Transformer

SOS, EOS = 1, 2
LENGTHS = [6, 2, 5, 3]


@pytest.fixture
def src(sentences, tiny_model):
    return sentences(LENGTHS, tiny_model.src_vocab_size, seed=3)


def by_whole_passes(model, src, max_tokens):
    """Greedy search that keeps nothing."""
    tgt = torch.full((len(src), 1), SOS)
    for _ in range(max_tokens):
        tgt = torch.cat([tgt, model(src, tgt)[:, -1].argmax(-1, keepdim=True)], dim=1)
        if all(EOS in row for row in tgt.tolist()):
            break
    return tgt[:, 1:]


@torch.no_grad()
@pytest.mark.parametrize("positions", ["sinusoid", "learned", "none"])
def test_kept_keys_and_values_give_the_uncached_numbers_at_every_position(
    tiny_model, fill, src, sentences, positions
):
    model = fill(Transformer(replace(tiny_model, positions=positions))).eval()
    tgt = sentences([9] * len(src), tiny_model.tgt_vocab_size, seed=4)
    tgt[0, 3] = tgt[2, 5] = PAD_ID  # an untrained model may write [PAD]; nothing looks at it
    whole = model(src, tgt)
    memory, kept = model.encode(src), [LayerMemory() for _ in model.decoder]
    for t in range(tgt.size(1)):
        ours = model.decode_next(memory, src, tgt[:, : t + 1], kept)
        torch.testing.assert_close(ours, whole[:, t], atol=1e-5, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize("seed", range(4))
def test_greedy_equals_a_loop_without_kept_keys_and_values(tiny_model, fill, sentences, seed):
    model = fill(Transformer(tiny_model), deviation=0.3 + 0.1 * seed).eval()
    with torch.no_grad():
        model.to_logits.bias[PAD_ID] += 4.0
    src = sentences(LENGTHS, tiny_model.src_vocab_size, seed=seed)
    written = greedy(model, src, SOS, EOS, 10)
    assert len(set(map(tuple, written.tolist()))) > 1
    assert (written == PAD_ID).any()
    assert torch.equal(written, by_whole_passes(model, src, 10))


def test_a_model_writes_the_same_with_and_without_padding_beside_it(half_trained):
    half_trained.model.eval()
    words = ["cat", "q", "frog", "ox"]
    together = greedy(half_trained.model, torch.from_numpy(half_trained.task.encode(words).src), SOS, EOS, 5)
    for word, row in zip(words, together.tolist(), strict=True):
        alone = greedy(
            half_trained.model, torch.from_numpy(half_trained.task.encode([word]).src), SOS, EOS, 5
        )
        text = half_trained.task.tgt_tokenizer.text
        assert text(row) == text(alone[0].tolist())


def test_writing_stops_when_every_sequence_has_ended_and_no_earlier(model, src, monkeypatch):
    ends = iter([[2, 5, 5, 5], [5, 5, 2, 5], [5, 2, 5, 5], [6, 6, 6, 2], [7, 7, 7, 7]])

    def decode_next(memory, src, tgt, kept):
        return torch.nn.functional.one_hot(torch.tensor(next(ends)), 17)

    monkeypatch.setattr(model, "decode_next", decode_next)
    written = greedy(model, src, SOS, EOS, 5)
    assert written.T.tolist() == [[2, 5, 5, 5], [5, 5, 2, 5], [5, 2, 5, 5], [6, 6, 6, 2]]


def test_writing_breaks_off_at_the_limit(model, src):
    with torch.no_grad():
        model.to_logits.bias[EOS] = -1e9
    assert greedy(model, src, SOS, EOS, 3).shape == (4, 3)

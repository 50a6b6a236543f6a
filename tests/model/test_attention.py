"""Attention, compared with PyTorch's and with arithmetic in plain loops."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from transformer.config import ModelConfig
from transformer.model.attention import (
    KVCache,
    MultiHeadAttention,
    attend,
    causal_mask,
    fused_attend,
    padding_mask,
)

B, H, Q, S, K = 2, 3, 4, 5, 6  # all different, so that a swapped axis is detected
D = H * K
REAL = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], dtype=torch.bool)  # (B, S), padding at the end
PATHS = [pytest.param(frozenset(), id="fused"), pytest.param(frozenset({"weights"}), id="explicit")]


@pytest.fixture
def qkv():
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(B, H, n, K, generator=generator) for n in (Q, S, S)]


@pytest.fixture
def ours(fill):
    return fill(MultiHeadAttention(ModelConfig(d_model=D, n_heads=H)))


@pytest.fixture
def theirs(ours):
    """PyTorch's multi-head attention with the same weights."""
    made = nn.MultiheadAttention(D, H, batch_first=True)
    parts = (ours.to_query, ours.to_key, ours.to_value)
    with torch.no_grad():
        made.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        made.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
        made.out_proj.weight.copy_(ours.to_output.weight)
        made.out_proj.bias.copy_(ours.to_output.bias)
    return made


def written_out(query, key, value, mask, scale):
    """Compute equation 1 of the paper in plain loops, one number at a time."""
    weights = torch.zeros(B, H, Q, S, dtype=torch.float64)
    mixed = torch.zeros(B, H, Q, K, dtype=torch.float64)
    for b, h, i in torch.cartesian_prod(torch.arange(B), torch.arange(H), torch.arange(Q)).tolist():
        allowed = [j for j in range(S) if mask[b, 0, i, j]]
        scores = {j: sum((query[b, h, i] * key[b, h, j]).tolist()) * scale for j in allowed}
        total = sum(math.exp(score) for score in scores.values())
        for j, score in scores.items():
            weights[b, h, i, j] = math.exp(score) / total
            mixed[b, h, i] += weights[b, h, i, j] * value[b, h, j]
    return mixed.float(), weights.float()


def patchy_mask():
    """Return a mask (B, 1, Q, S) with padding, some blocked cells and one fully blocked row."""
    mask = REAL[:, None, None, :].repeat(1, 1, Q, 1)
    mask[0, 0, 1, 3] = mask[1, 0, 0, 1] = False
    mask[1, 0, 2] = False
    return mask


def test_both_paths_equal_equation_1(qkv):
    mask, scale = patchy_mask(), 0.37
    mixed, weights = written_out(*qkv, mask, scale)
    ours, our_weights = attend(*qkv, mask, scale)
    torch.testing.assert_close(our_weights, weights, atol=1e-6, rtol=0)
    torch.testing.assert_close(ours, mixed, atol=1e-5, rtol=0)
    torch.testing.assert_close(fused_attend(*qkv, mask, scale), mixed, atol=1e-5, rtol=0)


def test_without_a_mask_every_column_is_attended_to(qkv):
    mixed, weights = attend(*qkv, None, 0.5)
    everything = torch.ones(B, 1, Q, S, dtype=torch.bool)
    torch.testing.assert_close(weights, written_out(*qkv, everything, 0.5)[1], atol=1e-6, rtol=0)
    torch.testing.assert_close(fused_attend(*qkv, None, 0.5), mixed, atol=1e-5, rtol=0)


@pytest.mark.parametrize("path", PATHS)
def test_a_fully_blocked_row_gives_zeros_and_finite_gradients(qkv, path):
    """The gradients of the other rows are those of a loss without the blocked row."""
    tensors = [tensor.clone().requires_grad_() for tensor in qkv]
    run = (lambda *a: attend(*a)[0]) if path else fused_attend
    mixed = run(*tensors, patchy_mask(), 0.4)
    assert torch.equal(mixed[1, :, 2], torch.zeros(H, K))
    mixed.square().sum().backward()
    for tensor in tensors:
        assert tensor.grad.isfinite().all()
    assert torch.equal(tensors[0].grad[1, :, 2], torch.zeros(H, K))

    others = [tensor.clone().requires_grad_() for tensor in qkv]
    open_mask = patchy_mask()
    open_mask[1, 0, 2] = True
    mixed = attend(*others, open_mask, 0.4)[0]
    (mixed.square().sum() - mixed[1, :, 2].square().sum()).backward()
    for tensor, other in zip(tensors, others, strict=True):
        torch.testing.assert_close(tensor.grad, other.grad, atol=1e-5, rtol=0)


def test_with_the_fill_of_minus_a_billion_a_fully_blocked_row_attends_evenly_to_all_columns(qkv):
    """The row's gradient is that of the mean of the values; every other row is as with -inf."""
    tensors = [tensor.clone().requires_grad_() for tensor in qkv]
    mixed, weights = attend(*tensors, patchy_mask(), 0.4, fill="-1e9")
    usual, usual_weights = attend(*qkv, patchy_mask(), 0.4)
    torch.testing.assert_close(weights[1, :, 2], torch.full((H, S), 1 / S))
    torch.testing.assert_close(mixed[1, :, 2], qkv[2][1].mean(dim=1), atol=1e-6, rtol=0)
    others = torch.ones(B, Q, dtype=torch.bool)
    others[1, 2] = False
    for ours, theirs in ((mixed, usual), (weights, usual_weights)):
        assert torch.equal(ours.transpose(1, 2)[others], theirs.transpose(1, 2)[others])
    mixed[1, :, 2].sum().backward()
    assert torch.equal(tensors[2].grad[1], torch.full((H, S, K), 1 / S))
    assert not tensors[2].grad[0].any()
    assert not tensors[1].grad.any()


@pytest.mark.parametrize("fill_with", ["-inf", "-1e9"])
def test_the_mask_fill_is_the_same_in_training_and_in_a_recording(fill, fill_with):
    attention = fill(MultiHeadAttention(ModelConfig(d_model=D, n_heads=H, mask_fill=fill_with)))
    x = torch.randn(B, Q, D, generator=torch.Generator().manual_seed(9))
    mask = torch.ones(B, 1, Q, Q, dtype=torch.bool).tril()
    mask[1, 0, 2] = False
    trained = attention(x, mask=mask)
    attention.recording = frozenset({"weights"})
    torch.testing.assert_close(trained, attention(x, mask=mask), atol=1e-5, rtol=0)
    row = attention.recorded["weights"][1, :, 2]
    expected = torch.zeros(H, Q) if fill_with == "-inf" else torch.full((H, Q), 1 / Q)
    torch.testing.assert_close(row, expected)


@pytest.mark.parametrize("path", PATHS)
def test_cross_attention_with_padding_equals_pytorch(ours, theirs, path):
    generator = torch.Generator().manual_seed(2)
    x, memory = torch.randn(B, Q, D, generator=generator), torch.randn(B, S, D, generator=generator)
    expected, weights = theirs(
        x, memory, memory, key_padding_mask=~REAL, need_weights=True, average_attn_weights=False
    )
    ours.recording = path
    torch.testing.assert_close(ours(x, memory, REAL[:, None, None, :]), expected, atol=1e-5, rtol=0)
    if path:
        torch.testing.assert_close(ours.recorded["weights"], weights, atol=1e-5, rtol=0)
    else:
        assert not ours.recorded


def test_cached_keys_and_values_give_the_rows_of_the_whole_pass(ours):
    x = torch.randn(B, Q, D, generator=torch.Generator().manual_seed(5))
    memory = torch.randn(B, S, D, generator=torch.Generator().manual_seed(6))
    whole_self, whole_cross = ours(x, mask=causal_mask(Q)), ours(x, memory, REAL[:, None, None, :])
    own, cross = KVCache(), KVCache()
    for i in range(Q):
        row = x[:, i : i + 1]
        torch.testing.assert_close(ours(row, cache=own)[:, 0], whole_self[:, i], atol=1e-5, rtol=0)
        assert own.key.shape == own.value.shape == (B, H, i + 1, K)
        result = ours(row, memory, REAL[:, None, None, :], cache=cross)
        torch.testing.assert_close(result[:, 0], whole_cross[:, i], atol=1e-5, rtol=0)
        assert cross.key.shape == (B, H, S, K)


def test_dropout_acts_on_the_applied_weights_and_not_on_the_recorded_ones(fill):
    config = ModelConfig(d_model=D, n_heads=H, dropout=0.5, dropout_on=("attention_weights",))
    attention = fill(MultiHeadAttention(config)).train()
    attention.dropout.generator = torch.Generator().manual_seed(7)
    attention.recording = frozenset({"weights"})
    x = torch.randn(B, Q, D, generator=torch.Generator().manual_seed(8))
    dropped = attention(x)
    shown = attention.recorded["weights"]
    torch.testing.assert_close(shown.sum(-1), torch.ones(B, H, Q), atol=1e-5, rtol=0)

    kept = torch.rand(B, H, Q, Q, generator=torch.Generator().manual_seed(7)) >= 0.5
    value = attention.to_value(x).view(B, Q, H, K).transpose(1, 2)
    by_hand = (shown * kept * 2.0) @ value  # (B, H, Q, K)
    expected = attention.to_output(by_hand.transpose(1, 2).reshape(B, Q, D))
    torch.testing.assert_close(dropped, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("length", [1, 2, 7])
def test_the_causal_mask_lets_a_row_attend_only_to_itself_and_to_earlier_columns(length):
    mask = causal_mask(length)
    assert mask.dtype == torch.bool
    assert mask.tolist() == [[column <= row for column in range(length)] for row in range(length)]


def test_the_padding_mask_blocks_padding_in_every_row_and_nothing_else():
    tokens = torch.tensor([[1, 7, 2, 9], [1, 2, 9, 9], [9, 1, 9, 2]])
    mask = padding_mask(tokens, 9)
    assert mask.shape == (3, 1, 1, 4)
    expected = [[True, True, True, False], [True, True, False, False], [False, True, False, True]]
    assert mask[:, 0, 0].tolist() == expected

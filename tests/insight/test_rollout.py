"""Attention rollout, compared with a small case computed by hand and with a sum over all paths."""

from __future__ import annotations

import numpy as np
import pytest

from transformer.insight.rollout import pooled, rollout

H, S, T = 3, 5, 4  # all different, so that swapped axes are detected


def attention(rng, rows, columns, causal=False):
    """Return random weights (H, rows, columns) whose rows sum to 1; if causal, NaN after the diagonal."""
    weights = rng.random((H, rows, columns)) * (np.tri(rows, columns) if causal else 1)
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.where(np.tri(rows, columns, dtype=bool) | (not causal), weights, np.nan)


@pytest.fixture
def maps():
    """The maps of three encoder and two decoder layers, for a word of five source and four target tokens."""
    rng = np.random.default_rng(0)
    found = {f"encoder.{i}": attention(rng, S, S) for i in range(3)}
    for i in range(2):
        found[f"decoder.{i}.self"] = attention(rng, T, T, causal=True)
        found[f"decoder.{i}.cross"] = attention(rng, T, S)
    return found


def test_each_attention_keeps_half_and_mixes_half():
    """Half stays; the other half is swapped or, in the decoder's self-attention, from the first token."""
    swap = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    first = np.array([[[1.0, np.nan], [1.0, 0.0]]])  # every row attends to the first token
    one = {"encoder.0": swap, "decoder.0.self": first, "decoder.0.cross": swap}
    # After self-attention the rows hold (1, 0) and (0.5, 0.5) of the target tokens. Cross-attention halves
    # these shares and adds half of the encoder's other row, which is (0.5, 0.5).
    rolled = rollout(one)
    assert rolled["encoder"].tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert rolled["decoder"].tolist() == [[0.5, 0.0], [0.25, 0.25]]
    assert rolled["cross"].tolist() == [[0.25, 0.25], [0.25, 0.25]]


def test_rollout_equals_a_sum_over_all_paths_in_any_order_of_the_maps(maps):
    """A path leads from a position back to a token: at every attention half the weight stays, half jumps."""

    def encoder(layer, position, token):
        if layer < 0:
            return float(position == token)
        jumps = np.mean([head[position] for head in maps[f"encoder.{layer}"]], axis=0)
        went = sum(jumps[k] * encoder(layer - 1, k, token) for k in range(S))
        return 0.5 * encoder(layer - 1, position, token) + 0.5 * went

    def decoder(layer, position, side, token):
        if layer < 0:
            return float(side == "tgt" and position == token)
        own, cross = maps[f"decoder.{layer}.self"], maps[f"decoder.{layer}.cross"]
        stays = 0.5 * decoder(layer - 1, position, side, token)
        for k in range(position + 1):
            stays += 0.5 * own[:, position, k].mean() * decoder(layer - 1, k, side, token)
        if side == "tgt":
            return 0.5 * stays
        went = sum(cross[:, position, k].mean() * encoder(2, k, token) for k in range(S))
        return 0.5 * stays + 0.5 * went

    rolled = rollout(dict(sorted(maps.items(), reverse=True)))
    assert rolled.keys() == {"encoder", "decoder", "cross"}
    for i in range(S):
        assert rolled["encoder"][i] == pytest.approx([encoder(2, i, j) for j in range(S)])
    for i in range(T):
        assert rolled["cross"][i] == pytest.approx([decoder(1, i, "src", j) for j in range(S)])
        assert rolled["decoder"][i] == pytest.approx([decoder(1, i, "tgt", j) for j in range(T)])


@pytest.mark.parametrize(
    ("names", "kind", "causal"),
    [
        (["encoder.0", "encoder.1", "encoder.2"], "encoder", False),
        (["decoder.0.self", "decoder.1.self"], "sequence", True),
        ([f"encoder.{i}" for i in range(11)], "encoder", False),
    ],
)
def test_rollout_of_one_stack_equals_the_product_of_its_layers(names, kind, causal):
    """A layer is half the identity plus half its mean attention; the rollout is the product of all layers."""
    rng = np.random.default_rng(1)
    maps = {name: attention(rng, S, S, causal) for name in names}
    expected = np.eye(S)
    for name in names:
        jumps = np.mean([np.where(np.isnan(head), 0.0, head) for head in maps[name]], axis=0)
        expected = (np.eye(S) / 2 + jumps / 2) @ expected
    for order in (names, names[::-1]):
        rolled = rollout({name: maps[name] for name in order})
        assert list(rolled) == [kind]
        assert rolled[kind] == pytest.approx(expected)
        assert rolled[kind].sum(axis=-1) == pytest.approx(np.ones(S))


def test_heads_are_pooled_by_their_mean_or_maximum_and_blocked_cells_stay_blocked(maps):
    heads = maps["decoder.0.self"]
    for how, by_hand in (("mean", lambda w: sum(w) / len(w)), ("max", max)):
        one = pooled(heads, how)
        assert one.shape == (T, T)
        assert np.isnan(one[np.triu_indices(T, 1)]).all()
        for i in range(T):
            for j in range(i + 1):
                assert one[i, j] == pytest.approx(by_hand([float(heads[h, i, j]) for h in range(H)]))

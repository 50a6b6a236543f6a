"""Switched-off heads and blocked cells, compared with models whose weights are changed by hand."""

from __future__ import annotations

import copy

import pytest
import torch

from tests.model.ids import id_of
from transformer.model.stack_layers import LayerKVCache
from transformer.recording.activations import record
from transformer.shared.interventions import NO_INTERVENTIONS, Block, Interventions

SOS = 1
K = 4  # width of a head: 12 over 3 heads
SITES = ["encoder.0", "decoder.0.self", "decoder.0.cross", "decoder.1.self", "decoder.1.cross"]
SRC_LENGTHS, TGT_LENGTHS = [7, 3, 5, 6], [5, 4, 6, 2]
SEVERAL = Interventions(
    ablated=(("decoder.0.cross", 1), ("decoder.1.self", 2), ("encoder.0", 0)),
    blocked=(
        Block(site="encoder.0", head=1, row=2, column=0),
        Block(site="decoder.0.self", row=3, column=1),
        Block(site="decoder.0.self", head=0, token="9"),
        Block(site="decoder.0.cross", token="7"),
        Block(site="decoder.1.cross", head=2, row=1),
        Block(site="decoder.1.self", head=1, column=0, row=4),
    ),
)


@pytest.fixture
def ids(sentences, tiny_model):
    """Sources (4, 7) and targets (4, 6) of different lengths; each target begins with [SOS]."""
    src = sentences(SRC_LENGTHS, tiny_model.src_vocab_size, seed=5)
    tgt = sentences(TGT_LENGTHS, tiny_model.tgt_vocab_size, seed=6)
    tgt[:, 0] = SOS
    return src, tgt


def real_rows(lengths):
    """Return a mask (B, longest), False at padding."""
    return torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


def site(model, name):
    return model.attentions()[name]


def with_zeroed_columns(model, heads):
    """Return a copy in which the output-projection columns of the given heads are zero."""
    changed = copy.deepcopy(model)
    with torch.no_grad():
        for name, head in heads:
            site(changed, name).to_output.weight[:, K * head : K * (head + 1)] = 0.0
    return changed


@torch.no_grad()
@pytest.mark.parametrize(
    "heads",
    [
        *[[(name, i % 3)] for i, name in enumerate(SITES)],
        [("decoder.0.cross", 0), ("decoder.0.cross", 2)],
        [("decoder.1.cross", head) for head in range(3)],
        [(name, head) for name in SITES for head in range(3) if (name, head) != ("decoder.1.cross", 1)],
    ],
    ids=str,
)
def test_a_switched_off_head_acts_as_if_its_columns_of_the_output_projection_were_zero(model, ids, heads):
    whole = model(*ids)
    expected = with_zeroed_columns(model, heads)(*ids)
    weights = copy.deepcopy(model.state_dict())
    model.intervene(Interventions(ablated=tuple(heads)), id_of)
    torch.testing.assert_close(model(*ids), expected, atol=1e-5, rtol=0)
    assert (model(*ids) - whole)[real_rows(TGT_LENGTHS)].abs().max() > 1e-3
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, weights[name])


@torch.no_grad()
def test_a_switched_off_head_still_records_its_weights(model, ids):
    with record(model) as whole:
        model(*ids)
    model.intervene(Interventions(ablated=(("encoder.0", 1),)), id_of)
    with record(model) as cache:
        model(*ids)
    assert (cache.weights["encoder.0"] == whole.weights["encoder.0"]).all()
    assert (cache.weights["decoder.0.cross"] != whole.weights["decoder.0.cross"]).any()


@torch.no_grad()
@pytest.mark.parametrize("name", ["encoder.0", "decoder.0.self"])
@pytest.mark.parametrize("head", [1, None])
def test_a_blocked_cell_is_exactly_0_its_row_is_renormalised_and_other_rows_stay(model, ids, name, head):
    """In the first layer of a stack the scores stay: the row's other weights are divided by their sum."""
    with record(model) as whole:
        model(*ids)
    row, column = 3, 2
    model.intervene(Interventions(blocked=(Block(site=name, head=head, row=row, column=column),)), id_of)
    with record(model) as cache:
        model(*ids)
    before, after = (torch.from_numpy(t.weights[name]) for t in (whole, cache))
    lengths = SRC_LENGTHS if name == "encoder.0" else TGT_LENGTHS
    heads = [head] if head is not None else [0, 1, 2]
    expected = before.clone()
    expected[:, heads, row, column] = 0.0
    expected /= expected.sum(dim=-1, keepdim=True).clamp_min(1e-30)
    torch.testing.assert_close(after, expected, atol=1e-6, rtol=0)
    assert (after[:, heads, row, column] == 0).all()
    assert (before[:, heads, row, column][torch.tensor(lengths) > column] > 0).all()
    torch.testing.assert_close(after.sum(-1), torch.ones(after.shape[:-1]), atol=1e-6, rtol=0)
    untouched = torch.ones(after.shape[1:3], dtype=torch.bool)
    untouched[heads, row] = False
    assert torch.equal(after[:, untouched], before[:, untouched])


@torch.no_grad()
def test_a_cell_is_blocked_at_its_place_and_a_token_wherever_it_occurs_and_nothing_else(model, ids):
    """The token is 7 in the sources and 9 in the targets, at different places; some sequences lack it."""
    src, tgt = ids
    src[0, 1], src[0, 4], src[2, 3], tgt[1, 1], tgt[2, 4] = 7, 7, 7, 9, 9
    src[1, :3], src[3, :6] = torch.tensor([3, 4, 5]), torch.tensor([3, 4, 5, 6, 8, 3])
    model.intervene(
        Interventions(
            blocked=(
                Block(site="decoder.0.cross", head=2, token="x"),
                Block(site="decoder.0.self", token="x"),
                Block(site="encoder.0", head=0, token="x"),
                Block(site="decoder.1.self", head=1, column=0, row=4),
                Block(site="decoder.1.cross", head=2, row=1),
            )
        ),
        lambda token, side: {"src": 7, "tgt": 9}[side],
    )
    with record(model) as cache:
        model(src, tgt)
    causal = torch.ones(6, 6).tril().bool()
    masks = {
        "encoder.0": _mask(src, src, {7}, heads=[0]),
        "decoder.0.self": _mask(tgt, tgt, {9}, heads=[0, 1, 2]) & causal,
        "decoder.0.cross": _mask(tgt, src, {7}, heads=[2]),
        "decoder.1.self": _mask(tgt, tgt, set(), heads=[]) & causal,
        "decoder.1.cross": _mask(tgt, src, set(), heads=[]),
    }
    masks["decoder.1.self"][:, 1, 4, 0] = False
    masks["decoder.1.cross"][:, 2, 1] = False
    for name, mask in masks.items():
        assert torch.equal(torch.from_numpy(cache.weights[name]) > 0, mask), name


def _mask(queries, keys, blocked, heads):
    """Return a mask (B, H, Q, K), False at padding and, in the given heads, at blocked tokens."""
    mask = torch.zeros(len(keys), 3, queries.size(1), keys.size(1), dtype=torch.bool)
    for b, h, q, k in torch.cartesian_prod(*map(torch.arange, mask.shape)).tolist():
        mask[b, h, q, k] = keys[b, k] != 0 and not (h in heads and int(keys[b, k]) in blocked)
    return mask


@torch.no_grad()
def test_the_fused_and_the_recorded_path_give_the_same_numbers(model, ids):
    model.intervene(SEVERAL, id_of)
    fused = model(*ids)
    with record(model):
        explicit = model(*ids)
    torch.testing.assert_close(fused, explicit, atol=1e-5, rtol=0)


@torch.no_grad()
def test_decoding_token_by_token_equals_a_pass_over_the_whole_target(model, ids):
    src, tgt = ids
    tgt = torch.where(tgt == 0, 9, tgt)  # no padding
    tgt[:, 2] = torch.tensor([9, 4, 9, 5])
    model.intervene(SEVERAL, id_of)
    whole = model(src, tgt)
    memory, kept = model.encode(src), [LayerKVCache() for _ in model.decoder]
    for t in range(tgt.size(1)):
        ours = model.decode(memory, src, tgt[:, : t + 1], cache=kept)[:, -1]
        torch.testing.assert_close(ours, whole[:, t], atol=1e-5, rtol=0)


@torch.no_grad()
def test_removing_all_interventions_restores_the_same_numbers(model, ids):
    before = model(*ids)
    model.intervene(SEVERAL, id_of)
    assert not torch.equal(model(*ids), before)
    assert model.interventions == SEVERAL
    model.intervene(NO_INTERVENTIONS, id_of)
    assert torch.equal(model(*ids), before)
    assert model.interventions == NO_INTERVENTIONS


@torch.no_grad()
def test_a_new_intervention_replaces_the_old_one(model, ids):
    model.intervene(SEVERAL, id_of)
    only = Interventions(ablated=(("decoder.1.cross", 0),))
    model.intervene(only, id_of)
    expected = with_zeroed_columns(model, [("decoder.1.cross", 0)])
    expected.intervene(NO_INTERVENTIONS, id_of)
    torch.testing.assert_close(model(*ids), expected(*ids), atol=1e-5, rtol=0)


def test_a_switched_off_head_gets_no_gradient_and_the_other_heads_do(model, ids):
    model.intervene(Interventions(ablated=(("decoder.0.cross", 1),)), id_of)
    model(*ids).square().sum().backward()
    attention = site(model, "decoder.0.cross")
    for name, rows in (("to_query", 0), ("to_key", 0), ("to_value", 0), ("to_output", 1)):
        slices = getattr(attention, name).weight.grad.split(K, dim=rows)
        assert not slices[1].any(), name
        assert slices[0].abs().min() > 0, name
        assert slices[2].abs().min() > 0, name


def test_a_fully_blocked_row_leaves_logits_and_gradients_finite(model, ids):
    """The pages refuse this block for the word on the screen, but a batch may contain other words."""
    model.intervene(Interventions(blocked=(Block(site="decoder.0.self", row=0, column=0),)), id_of)
    logits = model(*ids)
    logits.sum().backward()
    assert logits.isfinite().all()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)

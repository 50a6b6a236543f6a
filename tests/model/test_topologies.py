"""One stack alone, and masks that are off: against PyTorch's encoder, and against properties."""

from __future__ import annotations

import math
from dataclasses import asdict, replace

import pytest
import torch
from torch import nn

from transformer.interventions import NOTHING, Interventions
from transformer.model.attention import MultiHeadAttention
from transformer.model.layers import sinusoid
from transformer.model.transformer import Transformer
from transformer.recording.tape import record

LENGTHS = [6, 3, 5, 1]  # B = 4, the longest 6
ALONE = ["encoder-only", "decoder-only"]
ALL = ["encoder-decoder", *ALONE]
MASKS = [(causal, padding) for causal in (True, False) for padding in (True, False)]


@pytest.fixture
def build(tiny_model, fill):
    """The tiny model of a topology in eval mode, with nothing left at zero or one."""

    def make(topology, **settings):
        return fill(Transformer(replace(tiny_model, topology=topology, **settings))).eval()

    return make


@pytest.fixture
def ids(sentences, tiny_model):
    """Ids that every vocabulary has, (4, 6), as question and as target."""
    return sentences(LENGTHS, tiny_model.src_vocab_size, seed=1)


def pytorch_stack(layers, last_norm, config):
    """nn.TransformerEncoder with the weights of one stack, its parameters found by place."""
    one = nn.TransformerEncoderLayer(
        config.d_model, config.n_heads, config.d_ff, dropout=0.0, batch_first=True, norm_first=True
    )
    twin = nn.TransformerEncoder(one, len(layers), nn.LayerNorm(config.d_model), enable_nested_tensor=False)
    with torch.no_grad():
        for theirs, ours in zip(twin.layers, layers, strict=True):
            parts = [ours.attention.to_query, ours.attention.to_key, ours.attention.to_value]
            theirs.self_attn.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
            theirs.self_attn.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
            pairs = (
                (theirs.self_attn.out_proj, ours.attention.to_output),
                (theirs.norm1, ours.attention_residual.norm),
                (theirs.norm2, ours.feed_forward_residual.norm),
                (theirs.linear1, ours.feed_forward.widen),
                (theirs.linear2, ours.feed_forward.narrow),
            )
            for their_part, our_part in pairs:
                their_part.load_state_dict(our_part.state_dict())
    twin.norm.load_state_dict(last_norm.state_dict())
    return twin.train()  # in eval mode PyTorch takes a path of its own that empties padded rows


@pytest.mark.parametrize(("causal", "padding"), MASKS)
@pytest.mark.parametrize("topology", ALONE)
def test_one_stack_alone_equals_pytorch_whichever_masks_are_on(build, ids, topology, causal, padding):
    model = build(topology, causal_mask=causal, padding_mask=padding, n_encoder_layers=3)
    decodes = topology == "decoder-only"
    table = model.tgt_embedding if decodes else model.src_embedding
    layers, last_norm = (
        (model.decoder, model.decoder_norm) if decodes else (model.encoder, model.encoder_norm)
    )
    assert len(layers) == (2 if decodes else 3)
    stream = pytorch_stack(layers, last_norm, model.config)(
        table.weight[ids] * math.sqrt(12) + sinusoid(6, 12),
        mask=torch.ones(6, 6).triu(1).bool() if causal else None,
        src_key_padding_mask=ids == 0 if padding else None,
    )
    expected = stream @ model.to_logits.weight.T + model.to_logits.bias
    result = model(ids, ids)
    assert result.shape == (4, 6, 17)
    torch.testing.assert_close(result, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("topology", ALL)
def test_a_word_alone_gives_the_logits_that_it_gives_in_a_padded_batch(build, ids, topology):
    model = build(topology)
    wider = nn.functional.pad(ids, (0, 2))
    together = model(wider, wider)
    for row, n in enumerate(LENGTHS):
        alone = model(ids[row : row + 1, :n], ids[row : row + 1, :n])[0]
        torch.testing.assert_close(together[row, :n], alone, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("topology", ALL)
def test_without_the_padding_mask_the_padding_is_felt(build, ids, topology):
    model = build(topology, padding_mask=False, causal_mask=False)
    together, wider = model(ids, ids), nn.functional.pad(ids, (0, 2))
    assert (model(wider, wider)[:, :6] - together).abs().amax(dim=-1).min() > 1e-3


@pytest.mark.parametrize("topology", ALL)
@pytest.mark.parametrize("causal", [True, False, None])
def test_no_position_reads_ahead_where_the_causal_mask_is_on_and_every_one_where_not(
    build, ids, topology, causal
):
    model = build(topology, causal_mask=causal)
    hidden = topology != "encoder-only" if causal is None else causal
    ids = torch.where(ids == 0, 7, ids)
    before = model(ids, ids)
    for t in range(1, 6):
        changed = ids.clone()
        changed[:, t:] = changed[:, t:] % 12 + 1
        after = model(ids if topology == "encoder-decoder" else changed, changed)
        earlier = (after[:, :t] != before[:, :t]).any(dim=-1)
        assert not earlier.any() if hidden else earlier.all()
        assert (after[:, t] != before[:, t]).any(dim=-1).all()


def test_the_causal_mask_leaves_the_encoder_of_two_stacks_alone(build, ids):
    one, other = (build("encoder-decoder", causal_mask=causal).encode(ids) for causal in (True, False))
    assert torch.equal(one, other)


@pytest.mark.parametrize(("causal", "padding"), MASKS)
@pytest.mark.parametrize("topology", ALL)
def test_training_s_fused_path_and_the_recorded_one_give_the_same_numbers(
    build, ids, topology, causal, padding
):
    model = build(topology, causal_mask=causal, padding_mask=padding)
    fused = model(ids, ids)
    with record(model) as tape:
        explicit = model(ids, ids)
    torch.testing.assert_close(fused, explicit, atol=1e-5, rtol=0)
    for site, axes in model.axes().items():
        weights = torch.from_numpy(tape.weights[site])
        allowed = torch.ones(4, 3, 6, 6, dtype=torch.bool)
        if axes.causal:
            allowed &= torch.ones(6, 6).tril().bool()
        if axes.padding:
            allowed &= (ids != 0)[:, None, None]
        assert torch.equal(weights > 0, allowed), site
        torch.testing.assert_close(weights.sum(-1), torch.ones(4, 3, 6), atol=1e-5, rtol=0)


AXES = {
    "encoder-only": {f"encoder.{i}": ("src", "src", True, False, True) for i in range(2)},
    "decoder-only": {f"decoder.{i}.self": ("seq", "seq", True, True, True) for i in range(2)},
    "encoder-decoder": {
        "encoder.0": ("src", "src", False, False, True),
        "encoder.1": ("src", "src", False, False, True),
        "decoder.0.self": ("tgt", "tgt", True, True, True),
        "decoder.0.cross": ("tgt", "src", True, False, True),
        "decoder.1.self": ("tgt", "tgt", True, True, True),
        "decoder.1.cross": ("tgt", "src", True, False, True),
    },
}


@pytest.mark.parametrize("topology", AXES)
def test_every_attention_has_a_name_and_says_what_its_axes_are(build, topology):
    model = build(topology, n_encoder_layers=2)
    axes = {site: tuple(asdict(one).values())[:-1] for site, one in model.axes().items()}
    assert axes == AXES[topology]
    modules = [module for module in model.modules() if isinstance(module, MultiHeadAttention)]
    assert [*map(id, model.attentions().values())] == [*map(id, modules)]
    assert [*model.attentions()] == [*axes]
    open_model = build(topology, causal_mask=topology == "encoder-only", padding_mask=False)
    causal = topology == "encoder-only"
    assert {(one.causal, one.padding) for one in open_model.axes().values()} == {(causal, False)}


@torch.no_grad()
@pytest.mark.parametrize("mask", ["causal", "padding"])
@pytest.mark.parametrize("topology", ALL)
def test_a_mask_that_is_switched_gives_the_numbers_of_a_model_built_so(build, ids, topology, mask):
    """From its default to the other state and back again."""
    model = build(topology)
    default = topology != "encoder-only" or mask == "padding"
    before = model(ids, ids)
    axes = model.axes()
    model.intervene(Interventions(masks=((mask, not default),)), int)
    other = build(topology, **{f"{mask}_mask": not default})
    assert torch.equal(model(ids, ids), other(ids, ids))
    assert not torch.allclose(model(ids, ids), before, atol=1e-3)
    assert model.axes() == other.axes()
    assert model.masked(mask) == (not default)
    model.intervene(NOTHING, int)
    assert torch.equal(model(ids, ids), before)
    assert model.axes() == axes


@torch.no_grad()
@pytest.mark.parametrize("topology", ALL)
def test_what_fills_blocked_scores_changes_nothing_where_every_row_has_something_left(build, ids, topology):
    one, other = (build(topology, mask_fill=fill)(ids, ids) for fill in ("-inf", "-1e9"))
    torch.testing.assert_close(one[ids != 0], other[ids != 0], atol=1e-5, rtol=0)


def test_one_stack_has_no_parameters_of_the_other(build, tiny_model):
    D, F, S, T = 12, 10, 13, 17
    layer, norm = 4 * (D * D + D) + 2 * D * F + F + D + 2 * 2 * D, 2 * D
    by_hand = {"encoder-only": S * D + 1 * layer + norm, "decoder-only": T * D + 2 * layer + norm}
    for topology, numbers in by_hand.items():
        model = build(topology)
        assert sum(p.numel() for p in model.parameters()) == numbers + D * T + T
        absent = "decoder" if topology == "encoder-only" else "encoder"
        assert not [name for name in model.state_dict() if name.startswith(absent)]
        sizes = {"n_encoder_layers": 5} if topology == "decoder-only" else {"n_decoder_layers": 5}
        assert build(topology, **sizes).state_dict().keys() == model.state_dict().keys()
    one_table = build("decoder-only", embedding_tables="one")  # there is only one, of whatever size
    assert one_table.state_dict().keys() == build("decoder-only").state_dict().keys()


@pytest.mark.parametrize(
    ("topology", "scale", "scaled"),
    [
        ("encoder-only", "none", False),
        ("encoder-only", "encoder", True),
        ("encoder-only", "both", True),
        ("decoder-only", "none", False),
        ("decoder-only", "encoder", True),
        ("decoder-only", "both", True),
    ],
)
def test_embeddings_are_scaled_where_the_setting_names_their_stack(build, ids, topology, scale, scaled):
    """A scaled model is one whose table is sqrt(d_model) times as large."""
    model, plain = build(topology, embedding_scale=scale), build(topology, embedding_scale="none")
    if scaled:
        table = plain.src_embedding if topology == "encoder-only" else plain.tgt_embedding
        with torch.no_grad():
            table.weight.mul_(math.sqrt(12))
    torch.testing.assert_close(model(ids, ids), plain(ids, ids), atol=1e-5, rtol=0)


@pytest.mark.parametrize("topology", ALONE)
def test_the_padding_row_of_one_stack_is_zero_and_gets_no_gradient(tiny_model, ids, topology):
    model = Transformer(replace(tiny_model, topology=topology, padding_row=True, padding_mask=False))
    model(ids, ids).square().sum().backward()
    table = model.src_embedding if topology == "encoder-only" else model.tgt_embedding
    assert torch.equal(table.weight[0], torch.zeros(12))
    assert torch.equal(table.weight.grad[0], torch.zeros(12))
    assert (table.weight.grad[ids[0, 0]] != 0).any()


def test_an_encoder_alone_reads_no_target_and_a_decoder_needs_one(build, ids):
    model = build("encoder-only")
    assert torch.equal(model(ids), model(ids, ids + 1))
    assert model.writes_at_once
    for topology in ("encoder-decoder", "decoder-only"):
        assert not build(topology).writes_at_once
        with pytest.raises(ValueError, match=r"^This topology needs the target so far\.$"):
            build(topology)(ids)
    decoder = build("decoder-only")
    assert torch.equal(decoder(ids, ids), decoder(ids * 0, ids))


def test_only_what_is_never_read_differently_later_is_kept_in_decoding(build):
    assert build("encoder-decoder").supports_kv_cache
    assert build("encoder-decoder", padding_mask=False).supports_kv_cache
    assert not build("encoder-decoder", causal_mask=False).supports_kv_cache
    assert not build("encoder-only").supports_kv_cache
    assert not build("decoder-only").supports_kv_cache

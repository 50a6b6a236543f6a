"""Single stacks and switched-off masks, compared with PyTorch's encoder and checked by their properties."""

from __future__ import annotations

import math
from dataclasses import asdict, replace

import pytest
import torch
from torch import nn

from tests.model.articles import D, H, encoder_layers, future_mask, layer_norm, part, to_logits, waves
from tests.model.ids import id_of
from transformer.model.attention import MultiHeadAttention
from transformer.model.transformer import Transformer
from transformer.recording.activations import record
from transformer.shared.interventions import NO_INTERVENTIONS, Interventions

LENGTHS = [6, 3, 5, 1]  # B = 4, the longest 6
ALONE = ["encoder-only", "decoder-only"]
ALL = ["encoder-decoder", *ALONE]
MASKS = [(causal, padding) for causal in (True, False) for padding in (True, False)]


@pytest.fixture
def build(tiny_model, fill):
    """Return the tiny model of a topology in eval mode, with random numbers in every parameter."""

    def make(topology, **settings):
        return fill(Transformer(replace(tiny_model, topology=topology, **settings))).eval()

    return make


@pytest.fixture
def ids(sentences, tiny_model):
    """Ids (4, 6) that both vocabularies have, to use as source and as target."""
    return sentences(LENGTHS, tiny_model.src_vocab_size, seed=1)


@pytest.mark.parametrize(("causal", "padding"), MASKS)
@pytest.mark.parametrize("topology", ALONE)
def test_one_stack_alone_equals_pytorch_whichever_masks_are_on(build, ids, topology, causal, padding):
    model = build(topology, causal_mask=causal, padding_mask=padding, n_encoder_layers=3, n_heads=H)
    decodes = topology == "decoder-only"
    table = model.tgt_embedding if decodes else model.src_embedding
    layers = model.decoder if decodes else model.encoder
    assert len(layers) == (2 if decodes else 3)
    blocked = {"src_mask": future_mask(6)[0]} if causal else {}
    blocked |= {"src_key_padding_mask": ids == 0} if padding else {}
    stream = table.weight[ids] * math.sqrt(D) + waves(6)
    for layer in encoder_layers(layers, norm_first=True):
        stream = layer(stream, **blocked)
    expected = to_logits(
        model, layer_norm(part(model, "decoder_norm" if decodes else "encoder_norm"), stream)
    )
    result = model(ids, ids)
    assert result.shape == (4, 6, 17)
    torch.testing.assert_close(result, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("topology", ALL)
def test_a_word_has_the_same_logits_alone_as_in_a_padded_batch(build, ids, topology):
    model = build(topology)
    wider = nn.functional.pad(ids, (0, 2))
    together = model(wider, wider)
    for row, n in enumerate(LENGTHS):
        alone = model(ids[row : row + 1, :n], ids[row : row + 1, :n])[0]
        torch.testing.assert_close(together[row, :n], alone, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("topology", ALL)
@pytest.mark.parametrize("causal", [True, False, None])
def test_positions_depend_on_later_ones_only_without_the_causal_mask(build, ids, topology, causal):
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


@pytest.mark.parametrize(("causal", "padding"), MASKS)
@pytest.mark.parametrize("topology", ALL)
def test_the_fused_and_the_recorded_path_give_the_same_numbers(build, ids, topology, causal, padding):
    model = build(topology, causal_mask=causal, padding_mask=padding)
    fused = model(ids, ids)
    with record(model) as cache:
        explicit = model(ids, ids)
    torch.testing.assert_close(fused, explicit, atol=1e-5, rtol=0)
    for site, axes in model.axes().items():
        weights = torch.from_numpy(cache.weights[site])
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
def test_every_attention_has_its_site_and_its_axes(build, topology):
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
def test_a_switched_mask_gives_the_numbers_of_a_model_built_with_it(build, ids, topology, mask):
    """The mask is switched from its default to the other state and back again."""
    model = build(topology)
    default = topology != "encoder-only" or mask == "padding"
    before = model(ids, ids)
    axes = model.axes()
    model.intervene(Interventions(masks=((mask, not default),)), id_of)
    other = build(topology, **{f"{mask}_mask": not default})
    assert torch.equal(model(ids, ids), other(ids, ids))
    assert not torch.allclose(model(ids, ids), before, atol=1e-3)
    assert model.axes() == other.axes()
    assert model.masked(mask) == (not default)
    model.intervene(NO_INTERVENTIONS, id_of)
    assert torch.equal(model(ids, ids), before)
    assert model.axes() == axes


@torch.no_grad()
@pytest.mark.parametrize("topology", ALONE)
@pytest.mark.parametrize("scale", ["encoder", "both"])
def test_embeddings_of_one_stack_are_scaled_whichever_stack_the_setting_names(build, ids, topology, scale):
    """A scaled model equals an unscaled one whose table is sqrt(d_model) times as large."""
    model, plain = build(topology, embedding_scale=scale), build(topology, embedding_scale="none")
    table = plain.src_embedding if topology == "encoder-only" else plain.tgt_embedding
    table.weight.mul_(math.sqrt(D))
    torch.testing.assert_close(model(ids, ids), plain(ids, ids), atol=1e-5, rtol=0)


@pytest.mark.parametrize("topology", ALL)
def test_the_padding_row_of_the_writing_stack_is_zero_and_gets_no_gradient(tiny_model, ids, topology):
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


def test_only_an_encoder_decoder_with_a_causal_mask_supports_a_kv_cache(build):
    assert build("encoder-decoder").supports_kv_cache
    assert build("encoder-decoder", padding_mask=False).supports_kv_cache
    assert not build("encoder-decoder", causal_mask=False).supports_kv_cache
    switched = build("encoder-decoder")
    switched.intervene(Interventions(masks=(("causal", False),)), id_of)
    assert not switched.supports_kv_cache
    assert not build("encoder-only").supports_kv_cache
    assert not build("decoder-only").supports_kv_cache

"""Leaving padding out of training changes what is computed, but not what is learned."""

import pytest
import torch
import torch.nn.functional as F

from tests.model.ids import id_of
from transformer.config import KINDS_OF, ModelConfig
from transformer.model.packing import Packing
from transformer.model.transformer import Transformer
from transformer.shared.interventions import Block, Interventions

BATCH = 5


@pytest.fixture(params=[9, 13], ids=["as they are", "filled up to a register"])
def tokens(request):
    """Ids (5, 9) or (5, 13) below 11, with 1 to 9 or 1 to 13 tokens per row."""
    ids = torch.randint(1, 11, (BATCH, request.param), generator=torch.Generator().manual_seed(1))
    for row, length in enumerate((request.param, 1, 4, 7, 2)):
        ids[row, length:] = 0
    return ids


def made(topology, **changes):
    config = ModelConfig(
        topology=topology,
        src_vocab_size=11,
        tgt_vocab_size=11,
        max_len=13,
        n_encoder_layers=2,
        n_decoder_layers=3,
        n_heads=2,
        d_model=6,
        d_ff=10,
        **changes,
    )
    return Transformer(config, torch.Generator().manual_seed(2))


def learned(model, src, tgt):
    """Return the logits of the real tokens and the gradient of their loss, by parameter."""
    model.zero_grad()
    read = src if model.config.topology == "encoder-only" else tgt
    logits = model(src, tgt)
    F.cross_entropy(logits.flatten(0, 1), read.flatten(), ignore_index=0).backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    return logits[read != 0].detach(), gradients


def same_is_learned(model, tokens):
    tgt = tokens[:, :-1].roll(1, 0)  # other lengths than the source
    packed, gradients = learned(model.train(), tokens, tgt)
    padded, expected = learned(model.eval(), tokens, tgt)  # eval mode computes padding too; no dropout here
    torch.testing.assert_close(packed, padded, atol=1e-5, rtol=0)
    assert gradients.keys() == expected.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, expected[name], atol=1e-6, rtol=1e-4, msg=name)


@pytest.mark.parametrize("topology", KINDS_OF)
@pytest.mark.parametrize(
    "changes",
    [{}, {"mask_fill": "-1e9"}, {"norm": "scalar", "norm_placement": "post"}, {"causal_mask": False}],
    ids=["default", "-1e9", "scalar", "no causal mask"],
)
def test_training_without_padding_learns_the_same_as_with_it(topology, changes, tokens):
    same_is_learned(made(topology, **changes), tokens)


def test_training_without_padding_learns_the_same_under_interventions(tokens):
    model = made("encoder-decoder")
    look = Block(site="decoder.1.self", column=0, row=2)
    model.intervene(Interventions(ablated=(("encoder.0", 1),), blocked=(look,)), id_of)
    same_is_learned(model, tokens)


def test_padding_is_left_out_only_in_training(tokens):
    model = made("encoder-decoder")
    assert torch.equal(model.train()(tokens, tokens)[tokens == 0], torch.zeros(int((tokens == 0).sum()), 11))
    assert model.eval()(tokens, tokens)[tokens == 0].abs().min() > 0


def test_padding_that_is_not_masked_is_computed(tokens):
    model = made("encoder-decoder", padding_mask=False)
    assert torch.equal(model.train()(tokens, tokens), model.eval()(tokens, tokens))
    assert model(tokens, tokens)[tokens == 0].abs().min() > 0


def test_packed_tokens_return_to_their_places(tokens):
    packing = Packing(tokens, pad_id=0)
    length, width = tokens.size(1), packing.wide.size(1)
    assert (length, width) in ((9, 9), (13, 16))
    x = torch.arange(BATCH * width * 3.0).view(BATCH, width, 3)
    packed = packing.pack(x)
    assert torch.equal(packed, x[:, :length][tokens != 0])  # row by row, in reading order
    assert packed.shape == (length + 1 + 4 + 7 + 2, 3)
    assert torch.equal(packing.pad(packed), x * (packing.wide != 0)[..., None])
    assert torch.equal(packing.tokens, tokens[tokens != 0])
    assert packing.positions.tolist() == [i for n in (length, 1, 4, 7, 2) for i in range(n)]


def test_packing_and_padding_have_the_right_gradients(tokens):
    packing = Packing(tokens, pad_id=0)
    x = torch.randn(*packing.shape, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda y: packing.pad(packing.pack(y) ** 2), x)
    few = torch.randn(len(packing.places), 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(packing.pad, few)


def test_a_batch_without_padding_is_only_reshaped():
    packing = Packing(torch.ones(3, 16, dtype=torch.int64), pad_id=0)
    x = torch.randn(3, 16, 2)
    assert torch.equal(packing.pack(x), x.view(48, 2))
    assert torch.equal(packing.pad(x.view(48, 2)), x)

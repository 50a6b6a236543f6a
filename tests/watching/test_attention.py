"""Observed attention equals that of PyTorch or of transformers; the observed model stays unchanged."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from transformer import InputError, attention_of

D, HEADS = 12, 2


def seeded(make):
    torch.manual_seed(7)
    return make()


@pytest.fixture
def translator():
    """Two encoder layers and three decoder layers, in train mode with dropout."""
    return seeded(lambda: nn.Transformer(D, HEADS, 2, 3, dim_feedforward=20, dropout=0.4, batch_first=True))


@pytest.fixture
def pair():
    """Source and target of two examples, of different lengths."""
    return torch.randn(2, 7, D), torch.randn(2, 5, D)


def weights_of(module, query, key, **how):
    with torch.no_grad():
        return module(query, key, key, need_weights=True, average_attn_weights=False, **how)[1].numpy()


def test_every_attention_of_a_transformer_is_found_with_its_weights(translator, pair):
    src, tgt = pair
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    found = attention_of(translator, {"src": src, "tgt": tgt, "tgt_mask": mask})
    assert list(found) == [
        *(f"encoder.layers.{i}.self_attn" for i in range(2)),
        *(f"decoder.layers.{i}.{kind}" for i in range(3) for kind in ("self_attn", "multihead_attn")),
    ]
    translator.eval()
    x = src
    with torch.no_grad():
        for i, layer in enumerate(translator.encoder.layers):
            np.testing.assert_allclose(
                found[f"encoder.layers.{i}.self_attn"], weights_of(layer.self_attn, x, x), atol=1e-6
            )
            x = layer(x)
        memory, y = translator.encoder.norm(x), tgt
        for i, layer in enumerate(translator.decoder.layers):
            own = weights_of(layer.self_attn, y, y, attn_mask=mask)
            np.testing.assert_allclose(found[f"decoder.layers.{i}.self_attn"], own, atol=1e-6)
            heard = layer.norm1(y + layer.self_attn(y, y, y, attn_mask=mask)[0])
            cross = weights_of(layer.multihead_attn, heard, memory)
            np.testing.assert_allclose(found[f"decoder.layers.{i}.multihead_attn"], cross, atol=1e-6)
            y = layer(y, memory, tgt_mask=mask)
    for name, weights in found.items():
        rows, columns = 7 if "encoder" in name else 5, 5 if "decoder" in name and "self" in name else 7
        assert weights.shape == (2, HEADS, rows, columns)
        np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)


def test_an_encoder_with_nested_tensors_gives_padding_zero_weight():
    layer = seeded(lambda: nn.TransformerEncoderLayer(D, HEADS, 20, batch_first=True))
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=True).eval()
    x, padding = torch.randn(2, 6, D), torch.tensor([[False] * 6, [False] * 4 + [True] * 2])
    found = attention_of(encoder, {"src": x, "src_key_padding_mask": padding})
    assert list(found) == ["layers.0.self_attn", "layers.1.self_attn"]
    first = weights_of(encoder.layers[0].self_attn, x, x, key_padding_mask=padding)
    np.testing.assert_allclose(found["layers.0.self_attn"], first, atol=1e-6)
    assert (found["layers.1.self_attn"][1, :, :, 4:] == 0).all()
    assert torch.backends.mha.get_fastpath_enabled()


class Alone(nn.Module):
    """One attention module, called with the given options."""

    def __init__(self, batch_first, **call):
        super().__init__()
        self.attention = nn.MultiheadAttention(D, HEADS, dropout=0.3, batch_first=batch_first)
        self.call = call

    def forward(self, query, key):
        return self.attention(query, key, key, **self.call)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize("padded", [True, False])
def test_every_head_is_observed_and_the_caller_still_gets_what_it_asked_for(
    batch_first, wanted, mean, padded, pair
):
    key, query = pair
    padding = torch.arange(7)[None] >= torch.tensor([[7], [4]]) if padded else None
    call = {"need_weights": wanted, "average_attn_weights": mean, "key_padding_mask": padding}
    model = seeded(lambda: Alone(batch_first, **call))
    inputs = (query, key) if batch_first else (query.transpose(0, 1), key.transpose(0, 1))
    seen = []
    model.register_forward_hook(lambda module, args, output: seen.append(output))
    (weights,) = attention_of(model, inputs).values()
    model.eval()
    with torch.no_grad():
        result, given = model(*inputs)
    truth = weights_of(model.attention, *inputs, key_padding_mask=padding)
    np.testing.assert_allclose(weights, truth, atol=1e-6)
    assert weights.shape == (2, HEADS, 5, 7)
    torch.testing.assert_close(seen[0][0], result)
    torch.testing.assert_close(seen[0][1], given)


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(vocab_size=17, n_positions=9, n_embd=D, n_layer=2, n_head=HEADS))


def bert():
    from transformers import BertConfig, BertForMaskedLM

    return BertForMaskedLM(
        BertConfig(
            vocab_size=17,
            hidden_size=D,
            num_hidden_layers=2,
            num_attention_heads=HEADS,
            intermediate_size=20,
            max_position_embeddings=9,
        )
    )


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (gpt2, ["transformer.h.0.attn", "transformer.h.1.attn"]),
        (bert, ["bert.encoder.layer.0.attention.self", "bert.encoder.layer.1.attention.self"]),
    ],
)
def test_a_model_of_the_transformers_library_gives_its_own_attentions(make, names):
    model = seeded(make)
    model.set_attn_implementation("sdpa")
    ids = torch.randint(0, 17, (2, 6))
    mask = torch.tensor([[1] * 6, [1] * 4 + [0] * 2])
    found = attention_of(model, {"input_ids": ids, "attention_mask": mask})
    assert model.config._attn_implementation == "sdpa"
    assert list(found) == names
    model.set_attn_implementation("eager")
    with torch.no_grad():
        truth = model.eval()(input_ids=ids, attention_mask=mask, output_attentions=True).attentions
    for weights, true in zip(found.values(), truth, strict=True):
        np.testing.assert_allclose(weights, true.numpy(), atol=1e-6)


class ByHand(nn.Module):
    """Attention that no softmax computes."""

    def __init__(self):
        super().__init__()
        self.to_qk = nn.Linear(D, 2 * D)

    def weights(self, x):
        q, k = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.to_qk(x).chunk(2, -1))
        shares = (q @ k.transpose(-2, -1)).exp()
        return shares / shares.sum(-1, keepdim=True)

    def forward(self, x):
        return self.weights(x).mean(1) @ x


def test_attention_that_is_not_seen_is_read_by_a_given_function(pair):
    model = seeded(ByHand)
    found = attention_of(model, pair[0], lambda module, x: {"own": module.weights(x)})
    with torch.no_grad():
        np.testing.assert_allclose(found["own"], model.weights(pair[0]).numpy(), atol=1e-6)
    with pytest.raises(InputError, match="ByHand has no attention that can be observed"):
        attention_of(model, pair[0])
    with pytest.raises(InputError, match=r"'flat' are of shape \(2, 7, 12\); expected is a tensor"):
        attention_of(model, pair[0], lambda module, x: {"flat": x})


def trained(model, batches, observed):
    """Return the losses of a training in train mode, with dropout."""
    torch.manual_seed(3)
    optimizer, losses = torch.optim.Adam(model.parameters(), 1e-3), []
    for src, tgt in batches:
        loss = model(src, tgt).square().mean()
        loss.backward()
        if observed:
            assert attention_of(model, (src, tgt))
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def test_observing_every_step_changes_no_loss():
    make = lambda: nn.Transformer(D, HEADS, 1, 1, 20, dropout=0.4, batch_first=True)  # noqa: E731
    batches = [(torch.randn(2, 4, D), torch.randn(2, 3, D)) for _ in range(200)]
    assert trained(seeded(make), batches, True) == trained(seeded(make), batches, False)


def state(model):
    hooks = [(m._forward_hooks, m._forward_pre_hooks) for m in model.modules()]
    return (
        [m.training for m in model.modules()],
        [(len(a), len(b)) for a, b in hooks],
        [None if p.grad is None else p.grad.clone().tolist() for p in model.parameters()],
        torch.random.get_rng_state().tolist(),
        torch.backends.mha.get_fastpath_enabled(),
    )


def test_observing_leaves_a_model_unchanged_even_if_its_forward_pass_fails(translator, pair):
    translator.decoder.layers[1].eval()  # one part is in another mode
    translator(*pair).sum().backward()
    before = state(translator)
    attention_of(translator, pair)
    assert state(translator) == before
    with pytest.raises(RuntimeError):
        attention_of(translator, (pair[0], pair[1][:1]))
    assert state(translator) == before


def test_a_compiled_model_is_observed_through_its_original(translator, pair):
    compiled = torch.compile(translator, backend="eager")
    for (name, one), (other, two) in zip(
        attention_of(compiled, pair).items(), attention_of(translator, pair).items(), strict=True
    ):
        assert name == other
        assert (one == two).all()
    assert compiled.training


def test_two_calls_of_one_module_have_different_names():
    layer = seeded(lambda: nn.TransformerEncoderLayer(D, HEADS, 20, batch_first=True))
    shared = nn.Sequential(layer, layer)
    assert list(attention_of(shared, torch.randn(2, 4, D))) == ["0.self_attn", "0.self_attn#2"]

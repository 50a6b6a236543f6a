"""Independent forward passes of the published recipes, written from their articles in plain PyTorch."""

from __future__ import annotations

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

D, H, K = 12, 2, 6
LENGTHS_SRC, LENGTHS_TGT = [5, 2, 4], [3, 7, 4]  # B = 3, S = 5, T = 7


def part(model, prefix):
    """Return the weights whose names start with a prefix, by the rest of the name."""
    found = model.state_dict().items()
    return {name.removeprefix(prefix + "."): w for name, w in found if name.startswith(prefix + ".")}


def layer_of(model, stack, i):
    """Return a function from the name of a part to its weights in one layer."""
    return lambda name: part(model, f"{stack}.{i}.{name}")


def waves(length):
    """Return the paper's sinusoids, computed number by number."""
    turn = (math.sin, math.cos)
    return torch.tensor(
        [[turn[i % 2](p / 10_000 ** (2 * (i // 2) / D)) for i in range(D)] for p in range(length)]
    )


def future_mask(length):
    """Return a mask (1, T, T), True where a row would attend to a later column."""
    return torch.tensor([[[column > row for column in range(length)] for row in range(length)]])


def attention(weights, x, memory=None, *, biased=(), divided_by=K, blocked=None, fill=-math.inf):
    """Compute attention head by head, with scores divided by the square root of `divided_by`.

    Args:
        biased: the projections that have a bias; the others must have none.
    """
    assert {name for name in weights if name.endswith("bias")} == {f"{name}.bias" for name in biased}
    memory = x if memory is None else memory

    def project(y, name):
        y = y @ weights[f"{name}.weight"].T
        return y + weights[f"{name}.bias"] if name in biased else y

    query, key, value = project(x, "to_query"), project(memory, "to_key"), project(memory, "to_value")
    heads = []
    for own in (slice(0, K), slice(K, D)):
        scores = torch.einsum("bqk,bsk->bqs", query[..., own], key[..., own]) / math.sqrt(divided_by)
        if blocked is not None:
            scores = scores.masked_fill(blocked, fill)
        raised = (scores - scores.amax(dim=-1, keepdim=True)).exp()
        # With -inf, a fully blocked row would be 0/0; here it attends to nothing.
        heads.append((raised / raised.sum(dim=-1, keepdim=True)).nan_to_num(0.0) @ value[..., own])
    return project(torch.cat(heads, dim=-1), "to_output")


def feed_forward(weights, x, activation=torch.relu):
    widened = activation(x @ weights["widen.weight"].T + weights["widen.bias"])
    return widened @ weights["narrow.weight"].T + weights["narrow.bias"]


def layer_norm(weights, x):
    """Normalise with a gain and a bias per feature; eps is added to the biased variance."""
    centred = x - x.mean(dim=-1, keepdim=True)
    deviation = (centred.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt()
    return centred / deviation * weights["weight"] + weights["bias"]


def scalar_norm(weights, x):
    """Normalise with one gain and one bias; eps is added to the unbiased standard deviation."""
    gain, bias = weights["weight"].item(), weights["bias"].item()
    centred = x - x.mean(dim=-1, keepdim=True)
    deviation = (centred.square().sum(dim=-1, keepdim=True) / (D - 1)).sqrt()
    return gain * centred / (deviation + 1e-6) + bias


def to_logits(model, x):
    return x @ model.to_logits.weight.T + model.to_logits.bias


def etienne(model, src, tgt):
    """x + norm(f(x)); only the encoder's embeddings are scaled; additive -inf; no biases in attention."""
    no_pad, not_ahead = (src == 0)[:, None], future_mask(tgt.size(1)) | (tgt == 0)[:, None]
    x = model.src_embedding.weight[src] * math.sqrt(D) + waves(src.size(1))
    for i in range(2):
        own = layer_of(model, "encoder", i)
        x = x + layer_norm(own("attention_residual.norm"), attention(own("attention"), x, blocked=no_pad))
        x = x + layer_norm(own("feed_forward_residual.norm"), feed_forward(own("feed_forward"), x))
    memory, x = x, model.tgt_embedding.weight[tgt] + waves(tgt.size(1))
    for i in range(3):
        own = layer_of(model, "decoder", i)
        x = x + layer_norm(own("self_residual.norm"), attention(own("self_attention"), x, blocked=not_ahead))
        f = attention(own("cross_attention"), x, memory, blocked=no_pad)
        x = x + layer_norm(own("cross_residual.norm"), f)
        x = x + layer_norm(own("feed_forward_residual.norm"), feed_forward(own("feed_forward"), x))
    return to_logits(model, x)


def bloem(model, src, tgt):
    """norm(x + f(x)); scores divided by sqrt(d_model); learned positions; no mask, or a causal mask."""
    alone = model.config.topology == "encoder-only"
    stack, table = ("encoder", model.src_embedding) if alone else ("decoder", model.tgt_embedding)
    ids, blocked = (src, None) if alone else (tgt, future_mask(tgt.size(1)))
    x = table.weight[ids] + model.learned_positions.weight[: ids.size(1)]
    for i in range(2 if alone else 3):
        own = layer_of(model, stack, i)
        f = attention(own("attention"), x, biased=["to_output"], divided_by=D, blocked=blocked)
        x = layer_norm(own("attention_residual.norm"), x + f)
        x = layer_norm(own("feed_forward_residual.norm"), x + feed_forward(own("feed_forward"), x))
    return to_logits(model, x)


def torres(model, src, tgt):
    """x + f(norm(x)) with one gain and one bias per norm, and a norm at the end; blocked scores are -1e9."""
    read_here = partial(attention, biased=["to_query", "to_key", "to_value", "to_output"], fill=-1e9)
    no_pad, not_ahead = (src == 0)[:, None], future_mask(tgt.size(1)) | (tgt == 0)[:, None]
    x = model.src_embedding.weight[src] * math.sqrt(D) + waves(src.size(1))
    for i in range(2):
        own = layer_of(model, "encoder", i)
        y = scalar_norm(own("attention_residual.norm"), x)
        x = x + read_here(own("attention"), y, blocked=no_pad)
        x = x + feed_forward(own("feed_forward"), scalar_norm(own("feed_forward_residual.norm"), x))
    memory = scalar_norm(part(model, "encoder_norm"), x)
    x = model.tgt_embedding.weight[tgt] * math.sqrt(D) + waves(tgt.size(1))
    for i in range(3):
        own = layer_of(model, "decoder", i)
        y = scalar_norm(own("self_residual.norm"), x)
        x = x + read_here(own("self_attention"), y, blocked=not_ahead)
        y = scalar_norm(own("cross_residual.norm"), x)
        x = x + read_here(own("cross_attention"), y, memory, blocked=no_pad)
        x = x + feed_forward(own("feed_forward"), scalar_norm(own("feed_forward_residual.norm"), x))
    return to_logits(model, scalar_norm(part(model, "decoder_norm"), x))


def pytorch_layer(kind, ours, norms, *, activation="relu", norm_first=False):
    """Return PyTorch's layer with our weights; an attention without biases gets biases of zero."""
    theirs = kind(D, H, 10, 0.0, activation, batch_first=True, norm_first=norm_first)
    attentions = {
        "attention": "self_attn",
        "self_attention": "self_attn",
        "cross_attention": "multihead_attn",
    }
    with torch.no_grad():
        for name, their_name in attentions.items():
            if hasattr(ours, name):
                one, other = getattr(ours, name), getattr(theirs, their_name)
                parts = [one.to_query, one.to_key, one.to_value]
                biases = [torch.zeros(D) if p.bias is None else p.bias for p in [*parts, one.to_output]]
                other.in_proj_weight.copy_(torch.cat([p.weight for p in parts]))
                other.in_proj_bias.copy_(torch.cat(biases[:3]))
                other.out_proj.weight.copy_(one.to_output.weight)
                other.out_proj.bias.copy_(biases[3])
    for i, name in enumerate(norms):
        getattr(theirs, f"norm{i + 1}").load_state_dict(getattr(ours, f"{name}_residual").norm.state_dict())
    theirs.linear1.load_state_dict(ours.feed_forward.widen.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.narrow.state_dict())
    return theirs.train()  # in eval mode, PyTorch's fast path zeroes padded rows


def encoder_layers(layers, **settings):
    norms = ["attention", "feed_forward"]
    return [pytorch_layer(nn.TransformerEncoderLayer, layer, norms, **settings) for layer in layers]


def decoder_layers(layers, **settings):
    norms = ["self", "cross", "feed_forward"]
    return [pytorch_layer(nn.TransformerDecoderLayer, layer, norms, **settings) for layer in layers]


def sengupta(model, src, tgt):
    """PyTorch's post-norm encoder with a leaky ReLU; no mask."""
    x = model.src_embedding.weight[src] + waves(src.size(1))
    for layer in encoder_layers(model.encoder, activation=F.leaky_relu):
        x = layer(x)
    return to_logits(model, x)


def lin(model, src, tgt):
    """PyTorch's post-norm layers on both sides, one embedding table, a causal mask but no padding mask."""
    table = model.src_embedding.weight
    memory, x = table[src] + waves(src.size(1)), table[tgt] + waves(tgt.size(1))
    for layer in encoder_layers(model.encoder):
        memory = layer(memory)
    for layer in decoder_layers(model.decoder):
        x = layer(x, memory, tgt_mask=future_mask(tgt.size(1))[0])
    return to_logits(model, x)


def default(model, src, tgt):
    """PyTorch's pre-norm layers on both sides, a norm after each stack, both masks."""
    memory = model.src_embedding.weight[src] * math.sqrt(D) + waves(src.size(1))
    x = model.tgt_embedding.weight[tgt] * math.sqrt(D) + waves(tgt.size(1))
    for layer in encoder_layers(model.encoder, norm_first=True):
        memory = layer(memory, src_key_padding_mask=src == 0)
    memory = layer_norm(part(model, "encoder_norm"), memory)
    for layer in decoder_layers(model.decoder, norm_first=True):
        hidden = {"tgt_key_padding_mask": tgt == 0, "memory_key_padding_mask": src == 0}
        x = layer(x, memory, tgt_mask=future_mask(tgt.size(1))[0], **hidden)
    return to_logits(model, layer_norm(part(model, "decoder_norm"), x))


REFERENCES = {f.__name__: f for f in (default, etienne, bloem, sengupta, lin, torres)}

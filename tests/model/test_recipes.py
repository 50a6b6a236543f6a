"""Each recipe is the arrangement that was published, and each of its settings has an effect.

The references are PyTorch's own layers where they have the arrangement; for the others, arithmetic written
here from the published description, head by head.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace
from functools import partial
from itertools import islice

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from transformer.config import ModelConfig, TrainConfig
from transformer.model.stack_layers import LayerKVCache
from transformer.model.transformer import Transformer
from transformer.recipes import DECODER_ONLY, ENCODER_ONLY, RECIPES, with_topology
from transformer.size import parameter_count
from transformer.training.loop import train
from transformer.training.state import TrainState

D, H, K = 12, 2, 6
LENGTHS_SRC, LENGTHS_TGT = [5, 2, 4], [3, 7, 4]  # B = 3, S = 5, T = 7
SIZES = {
    "src_vocab_size": 13,
    "tgt_vocab_size": 17,
    "max_len": 11,
    "n_encoder_layers": 2,
    "n_decoder_layers": 3,
    "n_heads": H,
    "d_model": D,
    "d_ff": 10,
}


def shrunk(name, **settings):
    """A recipe's architecture at sizes that cannot be confused; one table for two sides needs one size."""
    if (RECIPES[name].model.topology, RECIPES[name].model.embedding_tables) == ("encoder-decoder", "one"):
        settings = {"tgt_vocab_size": 13, **settings}
    return replace(RECIPES[name].model, **{**SIZES, **settings})


# The references: logits from the weights of a model, its parameters found by name.


def part(model, prefix):
    """Weights whose names begin so, by the rest of the name."""
    found = model.state_dict().items()
    return {name.removeprefix(prefix + "."): w for name, w in found if name.startswith(prefix + ".")}


def layer_of(model, stack, i):
    """Weights of one layer's parts, by the name of the part."""
    return lambda name: part(model, f"{stack}.{i}.{name}")


def waves(length):
    """The paper's sinusoids, number by number."""
    turn = (math.sin, math.cos)
    return torch.tensor(
        [[turn[i % 2](p / 10_000 ** (2 * (i // 2) / D)) for i in range(D)] for p in range(length)]
    )


def ahead(length):
    """(1, T, T), True where a row would read a later column."""
    return torch.tensor([[[column > row for column in range(length)] for row in range(length)]])


def read(weights, x, memory=None, *, biased=(), divided_by=K, blocked=None, fill=-math.inf):
    """Attention head by head, its scores divided by the root of a width.

    Args:
        biased: the projections that have a bias; no other may.
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
        # Where nothing is left, -inf would be 0/0; here such a row reads nothing.
        heads.append((raised / raised.sum(dim=-1, keepdim=True)).nan_to_num(0.0) @ value[..., own])
    return project(torch.cat(heads, dim=-1), "to_output")


def think(weights, x, activation=torch.relu):
    widened = activation(x @ weights["widen.weight"].T + weights["widen.bias"])
    return widened @ weights["narrow.weight"].T + weights["narrow.bias"]


def layer_norm(weights, x):
    """A gain and a bias per feature; eps is added to the biased variance."""
    centred = x - x.mean(dim=-1, keepdim=True)
    deviation = (centred.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt()
    return centred / deviation * weights["weight"] + weights["bias"]


def scalar_norm(weights, x):
    """One gain, one bias; eps is added to the unbiased deviation."""
    gain, bias = weights["weight"].item(), weights["bias"].item()
    centred = x - x.mean(dim=-1, keepdim=True)
    deviation = (centred.square().sum(dim=-1, keepdim=True) / (D - 1)).sqrt()
    return gain * centred / (deviation + 1e-6) + bias


def to_logits(model, x):
    return x @ model.to_logits.weight.T + model.to_logits.bias


def etienne(model, src, tgt):
    """x + norm(f(x)); only the encoder's embeddings are scaled; additive -inf; no biases in attention."""
    no_pad, not_ahead = (src == 0)[:, None], ahead(tgt.size(1)) | (tgt == 0)[:, None]
    x = model.src_embedding.weight[src] * math.sqrt(D) + waves(src.size(1))
    for i in range(2):
        own = layer_of(model, "encoder", i)
        x = x + layer_norm(own("attention_residual.norm"), read(own("attention"), x, blocked=no_pad))
        x = x + layer_norm(own("feed_forward_residual.norm"), think(own("feed_forward"), x))
    memory, x = x, model.tgt_embedding.weight[tgt] + waves(tgt.size(1))
    for i in range(3):
        own = layer_of(model, "decoder", i)
        x = x + layer_norm(own("self_residual.norm"), read(own("self_attention"), x, blocked=not_ahead))
        f = read(own("cross_attention"), x, memory, blocked=no_pad)
        x = x + layer_norm(own("cross_residual.norm"), f)
        x = x + layer_norm(own("feed_forward_residual.norm"), think(own("feed_forward"), x))
    return to_logits(model, x)


def bloem(model, src, tgt):
    """norm(x + f(x)); scores over the root of the whole width; learned positions; no mask, or the causal."""
    alone = model.config.topology == "encoder-only"
    stack, table = ("encoder", model.src_embedding) if alone else ("decoder", model.tgt_embedding)
    ids, blocked = (src, None) if alone else (tgt, ahead(tgt.size(1)))
    x = table.weight[ids] + model.learned_positions.weight[: ids.size(1)]
    for i in range(2 if alone else 3):
        own = layer_of(model, stack, i)
        f = read(own("attention"), x, biased=["to_output"], divided_by=D, blocked=blocked)
        x = layer_norm(own("attention_residual.norm"), x + f)
        x = layer_norm(own("feed_forward_residual.norm"), x + think(own("feed_forward"), x))
    return to_logits(model, x)


def torres(model, src, tgt):
    """x + f(norm(x)) with one gain and one bias per norm, and a norm at the end; blocked scores are -1e9."""
    read_here = partial(read, biased=["to_query", "to_key", "to_value", "to_output"], fill=-1e9)
    no_pad, not_ahead = (src == 0)[:, None], ahead(tgt.size(1)) | (tgt == 0)[:, None]
    x = model.src_embedding.weight[src] * math.sqrt(D) + waves(src.size(1))
    for i in range(2):
        own = layer_of(model, "encoder", i)
        y = scalar_norm(own("attention_residual.norm"), x)
        x = x + read_here(own("attention"), y, blocked=no_pad)
        x = x + think(own("feed_forward"), scalar_norm(own("feed_forward_residual.norm"), x))
    memory = scalar_norm(part(model, "encoder_norm"), x)
    x = model.tgt_embedding.weight[tgt] * math.sqrt(D) + waves(tgt.size(1))
    for i in range(3):
        own = layer_of(model, "decoder", i)
        y = scalar_norm(own("self_residual.norm"), x)
        x = x + read_here(own("self_attention"), y, blocked=not_ahead)
        y = scalar_norm(own("cross_residual.norm"), x)
        x = x + read_here(own("cross_attention"), y, memory, blocked=no_pad)
        x = x + think(own("feed_forward"), scalar_norm(own("feed_forward_residual.norm"), x))
    return to_logits(model, scalar_norm(part(model, "decoder_norm"), x))


def pytorch_layer(kind, ours, norms, *, activation="relu", norm_first=False):
    """PyTorch's layer with the weights of ours; an attention without biases gets biases of zero."""
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
    return theirs.train()  # in eval mode PyTorch takes a path of its own that empties padded rows


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
    """PyTorch's post-norm layers on both sides, one table, a causal mask and no other."""
    table = model.src_embedding.weight
    memory, x = table[src] + waves(src.size(1)), table[tgt] + waves(tgt.size(1))
    for layer in encoder_layers(model.encoder):
        memory = layer(memory)
    for layer in decoder_layers(model.decoder):
        x = layer(x, memory, tgt_mask=ahead(tgt.size(1))[0])
    return to_logits(model, x)


def default(model, src, tgt):
    """PyTorch's pre-norm layers on both sides, each stack closed by a norm, with both masks."""
    memory = model.src_embedding.weight[src] * math.sqrt(D) + waves(src.size(1))
    x = model.tgt_embedding.weight[tgt] * math.sqrt(D) + waves(tgt.size(1))
    for layer in encoder_layers(model.encoder, norm_first=True):
        memory = layer(memory, src_key_padding_mask=src == 0)
    memory = layer_norm(part(model, "encoder_norm"), memory)
    for layer in decoder_layers(model.decoder, norm_first=True):
        hidden = {"tgt_key_padding_mask": tgt == 0, "memory_key_padding_mask": src == 0}
        x = layer(x, memory, tgt_mask=ahead(tgt.size(1))[0], **hidden)
    return to_logits(model, layer_norm(part(model, "decoder_norm"), x))


REFERENCES = {f.__name__: f for f in (default, etienne, bloem, sengupta, lin, torres)}


@pytest.mark.parametrize(
    ("name", "topology"), [*((name, None) for name in REFERENCES), ("bloem", "decoder-only")]
)
def test_the_forward_pass_equals_the_reference(name, topology, sentences, fill):
    """At [PAD] positions too: what they write means nothing, but there is one number that it should be."""
    config = shrunk(name)
    if topology is not None:
        config = replace(config, topology=topology, causal_mask=None)
    model = fill(Transformer(config)).eval()
    src, tgt = sentences(LENGTHS_SRC, 13, seed=1), sentences(LENGTHS_TGT, 13, seed=2)
    result = model(src, tgt)
    expected = REFERENCES[name](model, src, tgt)
    assert result.shape == (3, 5 if config.topology == "encoder-only" else 7, config.tgt_vocab_size)
    assert result.std() > 0.5
    torch.testing.assert_close(result, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["etienne", "torres"])
def test_a_source_of_nothing_but_padding_is_read_as_its_mask_fill_says(name, sentences, fill):
    """-inf would make the article's model answer NaN; here nothing is read. With -1e9 all is read alike."""
    model = fill(Transformer(shrunk(name))).eval()
    src, tgt = sentences([5, 0, 4], 13, seed=1), sentences(LENGTHS_TGT, 13, seed=2)
    torch.testing.assert_close(model(src, tgt), REFERENCES[name](model, src, tgt), atol=1e-5, rtol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("name", ["default", "etienne", "lin", "torres"])
def test_writing_token_by_token_gives_the_numbers_of_the_whole_target(name, sentences, fill):
    model = fill(Transformer(shrunk(name))).eval()
    src, tgt = sentences(LENGTHS_SRC, 13, seed=1), sentences([7, 7, 7], 13, seed=2)
    assert model.supports_kv_cache
    memory, kept = model.encode(src), [LayerKVCache() for _ in model.decoder]
    steps = [model.decode_next(memory, src, tgt[:, : t + 1], kept) for t in range(7)]
    torch.testing.assert_close(torch.stack(steps, dim=1), model(src, tgt), atol=1e-5, rtol=1e-5)


def test_every_recipe_has_a_reference():
    assert list(RECIPES) == list(REFERENCES)


def test_the_padding_row_stays_zero_while_the_other_rows_are_trained(tiny):
    """Also where [PAD] is looked at: under the mask no gradient would reach its row anyway."""
    config = tiny(**vars(shrunk("etienne", padding_mask=False, causal_mask=False)), weight_decay=0.1)
    state = TrainState.begin(config)
    table = state.model.tgt_embedding.weight
    before = table.detach().clone()
    assert torch.equal(before[0], torch.zeros(D))
    assert (state.model.src_embedding.weight[0] != 0).all()  # the encoder's own is as any other
    list(islice(train(state), 5))
    assert torch.equal(table[0], torch.zeros(D))
    assert (table[1:] != before[1:]).any(dim=1).sum() > 20


def test_the_articles_that_train_nothing_have_the_app_s_own_training():
    own = {name for name, recipe in RECIPES.items() if replace(recipe.train, goal=None) == TrainConfig()}
    assert own == {"default", "sengupta", "lin"}


# What the articles say of sizes and training, and what the small runs take from them.


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("etienne", {"learning_rate": 1e-3, "betas": (0.9, 0.98), "adam_eps": 1e-9, "batch_size": 256}),
        ("bloem", {"learning_rate": 1e-4, "warmup_steps": 10_000}),
        ("torres", {"learning_rate": 1e-4, "adam_eps": 1e-9, "batch_size": 8, "label_smoothing": 0.1}),
    ],
)
def test_the_training_is_the_article_s(name, expected):
    training = RECIPES[name].published.train
    assert {field: getattr(training, field) for field in expected} == expected
    assert (training.optimizer, training.schedule, training.clip) == ("adam", "constant", None)


def test_etienne_trains_three_epochs_of_50_000_strings_of_10_to_19_letters():
    training = RECIPES["etienne"].train
    assert (training.min_letters, training.max_letters, training.examples) == (10, 19, 50_000)
    assert training.steps == 588
    assert training.epochs == 3


def test_at_paper_size_the_models_have_the_published_number_of_parameters():
    etienne_s = RECIPES["etienne"].model
    assert parameter_count(etienne_s) == 313_216
    assert sum(p.numel() for p in Transformer(etienne_s).parameters()) == 313_216
    assert round(parameter_count(RECIPES["torres"].model) / 1e6, 2) == 75.17


@pytest.mark.parametrize("name", list(RECIPES))
def test_the_small_run_has_the_recipe_s_architecture_at_other_sizes(name):
    recipe = RECIPES[name]
    changed = {
        field.name
        for field in fields(ModelConfig)
        if getattr(recipe.small.model, field.name) != getattr(recipe.model, field.name)
    }
    assert changed <= set(SIZES)
    assert recipe.small.model.d_ff // recipe.small.model.d_model == recipe.model.d_ff // recipe.model.d_model
    assert recipe.small.recipe == recipe.published.recipe == recipe.name == name
    training = recipe.small.train
    assert (training.optimizer, training.schedule, training.clip) == ("adamw", "linear", 1.0)
    assert (training.max_letters, training.goal) == (12, 0.99)


def test_another_topology_has_the_causal_mask_that_it_needs():
    for recipe in RECIPES.values():
        for topology, causal in (("encoder-only", False), ("decoder-only", True), ("encoder-decoder", True)):
            config = with_topology(recipe.small, topology)
            assert config.model.topology == topology
            assert config.model.masks["causal"] == causal
    open_model = RECIPES["default"].small.with_changes(causal_mask=False)
    assert with_topology(open_model, "encoder-decoder") is open_model


@pytest.mark.parametrize(
    ("preset", "name", "topology"),
    [(ENCODER_ONLY, "Encoder only", "encoder-only"), (DECODER_ONLY, "Decoder only", "decoder-only")],
)
def test_one_stack_alone_is_the_app_s_own_architecture(preset, name, topology):
    assert preset.recipe == name
    assert preset.model.topology == topology
    own = RECIPES["default"].small.model
    changed = {f.name for f in fields(ModelConfig) if getattr(preset.model, f.name) != getattr(own, f.name)}
    assert changed <= {"topology", "n_encoder_layers", "n_decoder_layers"}

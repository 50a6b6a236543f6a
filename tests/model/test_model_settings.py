"""Every setting of the model takes effect: another value changes what the setting governs."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
import torch

from transformer.config import DROPOUT_PLACES, ModelConfig
from transformer.model.transformer import Transformer
from transformer.shared.interventions import NO_INTERVENTIONS, Block, Interventions

BASE = ModelConfig(
    src_vocab_size=13, tgt_vocab_size=13, max_len=9, n_encoder_layers=1, n_heads=2, d_model=12, d_ff=10
)
DROPPING = {"dropout": 0.5, "dropout_on": ()}
# Setting: what shows its effect, the other settings needed, its other values. Every choice is covered.
CASES = {
    "topology": ("parameters", {}, ["encoder-only", "decoder-only"]),
    "src_vocab_size": ("parameters", {}, [14]),
    "tgt_vocab_size": ("parameters", {}, [14]),
    "max_len": ("parameters", {"positions": "learned"}, [10]),
    "n_encoder_layers": ("parameters", {}, [2]),
    "n_decoder_layers": ("parameters", {}, [1]),
    "n_heads": ("eval", {}, [1, 3]),
    "d_model": ("parameters", {}, [14]),
    "d_ff": ("parameters", {}, [11]),
    "dropout": ("train", {}, [0.5]),
    "dropout_on": ("train", DROPPING, [(place,) for place in DROPOUT_PLACES]),
    "qkv_bias": ("parameters", {}, [False]),
    "output_bias": ("parameters", {}, [False]),
    "score_scale": ("eval", {}, ["sqrt_d_model", "none"]),
    "norm_placement": ("eval", {}, ["post", "branch"]),
    "final_norm": ("parameters", {}, [False]),
    "norm": ("parameters", {}, ["scalar"]),
    "norm_eps": ("eval", {}, [0.1]),
    "activation": ("eval", {}, ["leaky_relu", "gelu"]),
    "embedding_scale": ("eval", {}, ["none", "encoder"]),
    "positions": ("eval", {}, ["learned", "none"]),
    "embedding_tables": ("parameters", {}, ["one"]),
    "padding_row": ("initial", {}, [True]),
    "causal_mask": ("eval", {}, [False]),
    "padding_mask": ("eval", {}, [False]),
    "mask_fill": ("row with nothing left", {}, ["-1e9"]),
    "initialisation": ("initial", {}, ["xavier", "normal"]),
    "embedding_std": ("initial", {}, [None, 0.3]),
}
FLIPS = [(name, value) for name, (_, _, values) in CASES.items() for value in values]


def n_parameters(config):
    return sum(parameter.numel() for parameter in Transformer(config).parameters())


def initial(config):
    weights = Transformer(config).state_dict()
    return torch.cat([weights[name].flatten() for name in sorted(weights)])


def output(config, sentences, fill, training=False, taken=NO_INTERVENTIONS):
    """Return the logits of real tokens; parameters and dropout have the same seeds in all configurations."""
    model = fill(Transformer(config)).train(training)
    model.intervene(taken, int)
    model.draw_from(torch.Generator().manual_seed(0))
    src, tgt = sentences([6, 3], 13, seed=1), sentences([2, 5], 13, seed=2)
    return model(src, tgt)[tgt != 0]


@pytest.mark.parametrize("name", [field.name for field in fields(ModelConfig)])
def test_every_setting_has_a_case_here(name):
    assert name in CASES, "say in CASES what shows the new setting"
    _, around, values = CASES[name]
    assert getattr(replace(BASE, **around), name) not in values


@pytest.mark.parametrize(("name", "value"), FLIPS, ids=str)
def test_a_setting_changes_what_it_governs(name, value, sentences, fill):
    shown_by, around, _ = CASES[name]
    before = replace(BASE, **around)
    after = replace(before, **{name: value})
    if shown_by == "parameters":
        assert n_parameters(after) != n_parameters(before)
    elif shown_by == "initial":
        assert initial(after).shape == initial(before).shape
        assert not torch.allclose(initial(after), initial(before), rtol=1e-3)
    elif shown_by == "row with nothing left":
        row = Interventions(blocked=(Block(site="decoder.0.cross", row=1),))
        ours, other = (output(config, sentences, fill, taken=row) for config in (before, after))
        assert not torch.allclose(ours, other, atol=1e-3)
        ours, other = (output(config, sentences, fill) for config in (before, after))
        torch.testing.assert_close(ours, other, atol=1e-5, rtol=0)
    else:
        training = shown_by == "train"
        ours, other = (output(config, sentences, fill, training) for config in (before, after))
        assert not torch.allclose(ours, other, atol=1e-3)
        if training:
            assert torch.equal(output(after, sentences, fill), output(before, sentences, fill))

"""Names of attentions and heads, counted from 1."""

from __future__ import annotations

import pytest

from transformer.insight.names import head_name, layer_number, short_head_name, site_name, without_prefix


@pytest.mark.parametrize(
    ("site", "head", "name", "of_head", "short"),
    [
        ("encoder.0", 2, "encoder layer 1", "encoder layer 1, head 3", "encoder 1 · head 3"),
        (
            "decoder.1.cross",
            0,
            "cross-attention layer 2",
            "cross-attention layer 2, head 1",
            "cross 2 · head 1",
        ),
        ("decoder.10.self", 11, "decoder layer 11", "decoder layer 11, head 12", "decoder 11 · head 12"),
    ],
)
def test_layers_and_heads_are_counted_from_one(site, head, name, of_head, short):
    assert (site_name(site), head_name(site, head), short_head_name(site, head)) == (name, of_head, short)


def test_modules_of_own_models_keep_their_names_without_the_common_prefix():
    sites = [f"bert.encoder.layer.{i}.attention.self" for i in range(3)]
    assert without_prefix(sites[1], sites) == "layer.1.attention.self"
    pair = ["net.encoder.layers.0.self_attn", "net.decoder.layers.1.multihead_attn"]
    assert [without_prefix(site, pair) for site in pair] == [site.removeprefix("net.") for site in pair]
    assert without_prefix("attn", ["attn"]) == "attn"
    assert without_prefix("attn.0", ["attn.0"]) == "attn.0"
    assert without_prefix("a.b", ["a.b", "a.b.c"]) == "b"
    assert without_prefix("decoder.1.cross", ["decoder.0.self", "decoder.1.cross"]) == "decoder.1.cross"
    assert short_head_name(pair[1], 2) == "net.decoder.layers.1.multihead_attn · head 3"
    assert [layer_number(site) for site in ("stages.1.blocks.12.attn#2", "attn")] == ["1.12", "–"]

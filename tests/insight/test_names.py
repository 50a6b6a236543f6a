"""What attentions and heads are called: people count from 1."""

from __future__ import annotations

import pytest

from transformer.insight.names import head_name, short_head_name, site_name


@pytest.mark.parametrize(
    ("site", "head", "name", "of_head", "short"),
    [
        ("encoder.0", 2, "encoder layer 1", "encoder layer 1, head 3", "encoder 1 · head 3"),
        ("decoder.1.cross", 0, "decoder layer 2", "decoder layer 2, head 1", "decoder 2 · head 1"),
        ("decoder.10.self", 11, "decoder layer 11", "decoder layer 11, head 12", "decoder 11 · head 12"),
    ],
)
def test_layers_and_heads_are_counted_from_one(site, head, name, of_head, short):
    assert (site_name(site), head_name(site, head), short_head_name(site, head)) == (name, of_head, short)

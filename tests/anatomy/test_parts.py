"""The parts of a score add up to it, and each is what the model computes if the others are zero."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.anatomy.conftest import BASES
from transformer.anatomy.parts import packed_parts, score_parts
from transformer.anatomy.trace import trace


def products(passed, site):
    """The products of all pairs of parts of all scores, (query parts, key parts, H, Q, S)."""
    queries, keys = (np.stack(list(parts.values())) for parts in score_parts(passed, site))
    return np.einsum("ahqk,bhsk->abhqs", queries, keys)


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_the_parts_of_every_score_add_up_to_it(made, name, placement):
    config, snapshot = made(name, norm_placement=placement)
    passed = trace(config, snapshot, "banana")
    for site, attention in passed.attentions.items():
        largest = np.abs(attention.scores).max()
        found = products(passed, site).sum(axis=(0, 1))
        np.testing.assert_allclose(found, attention.scores, rtol=0, atol=1e-5 * largest)


def test_token_and_position_are_what_the_first_attention_reads_of_each_alone(made):
    """With the projections of a head alone, by hand: no norm comes before them in a post-norm model."""
    config, snapshot = made("default", norm_placement="post")
    passed = trace(config, snapshot, "banana")
    queries, keys = score_parts(passed, "encoder.0")
    assert list(queries) == list(keys) == ["token", "position", "biases"]
    width = config.model.d_head
    weights = passed.parameters
    query, key = (
        {
            "token": stack_token @ weights[f"encoder.0.attention.{name}.weight"][width : 2 * width].T,
            "position": position @ weights[f"encoder.0.attention.{name}.weight"][width : 2 * width].T,
            "biases": weights[f"encoder.0.attention.{name}.bias"][width : 2 * width],
        }
        for name, stack_token, position in (
            (
                one,
                np.sqrt(config.model.d_model) * passed.stacks["encoder"].embedded[place],
                passed.stacks["encoder"].positions[place],
            )
            for one, place in (("to_query", 2), ("to_key", 4))
        )
    )
    found = products(passed, "encoder.0")[:, :, 1, 2, 4]
    for i, one in enumerate(queries):
        for j, other in enumerate(keys):
            assert found[i, j] == pytest.approx(query[one] @ key[other] / np.sqrt(width), rel=1e-4)


def test_a_deep_model_has_a_part_for_each_layer_and_a_shallow_one_for_each_sublayer(made):
    config, snapshot = made("default", n_decoder_layers=4, n_encoder_layers=5)
    passed = trace(config, snapshot, "banana")
    queries, keys = score_parts(passed, "decoder.3.cross")
    layers = [f"decoder layer {i}" for i in (1, 2, 3, 4)]
    assert list(queries) == ["token", "position", *layers, "biases"]
    assert list(keys)[2] == "encoder layer 1"
    first = [f"decoder layer 1, {name}" for name in ("self", "cross", "feed-forward")]
    shallow, _ = score_parts(passed, "decoder.1.cross")
    assert list(shallow) == ["token", "position", *first, "decoder layer 2, self", "biases"]


def test_packed_parts_are_the_parts_of_each_attention_in_32_bits_with_their_names(made):
    config, snapshot = made("default")
    passed = trace(config, snapshot, "banana")
    sites = ["decoder.1.cross", "encoder.0"]
    line, _, numbers = packed_parts(passed, sites).partition(b"\n")
    names, values = json.loads(line), np.frombuffer(numbers, "<f4")
    assert list(names) == sites
    for site in sites:
        for side, parts in zip(("query", "key"), score_parts(passed, site), strict=True):
            assert names[site][side] == list(parts)
            expected = np.stack(list(parts.values()))
            found, values = values[: expected.size].reshape(expected.shape), values[expected.size :]
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)
    assert values.size == 0

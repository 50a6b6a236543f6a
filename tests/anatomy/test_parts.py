"""The parts of a score add up to it, and each is what the model computes if the others are zero."""

from __future__ import annotations

import numpy as np
import pytest

from tests.anatomy.conftest import BASES
from transformer.anatomy.parts import ScoreParts, score_parts
from transformer.anatomy.trace import trace


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_the_parts_of_every_score_add_up_to_it(made, name, placement):
    config, snapshot = made(name, norm_placement=placement)
    word = "banana"
    passed = trace(config, snapshot, word)
    for site, attention in passed.attentions.items():
        n_heads, n_rows, n_columns = attention.scores.shape
        largest = np.abs(attention.scores).max()
        for head, row, column in ((0, 0, 1), (n_heads - 1, n_rows - 1, n_columns - 1), (0, 2, 3)):
            found = score_parts(passed, site, head, row, column)
            assert found.score == pytest.approx(float(attention.scores[head, row, column]))
            assert abs(found.values.sum() - found.score) <= 1e-5 * largest
            assert found.values.shape == (len(found.queries), len(found.keys))


def test_token_and_position_are_what_the_first_attention_reads_of_each_alone(made):
    """With the projections of a head alone, by hand: no norm comes before them in a post-norm model."""
    config, snapshot = made("default", norm_placement="post")
    passed = trace(config, snapshot, "banana")
    found = score_parts(passed, "encoder.0", 1, 2, 4)
    assert found.queries == found.keys == ("token", "position", "biases")
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
    for i, one in enumerate(found.queries):
        for j, other in enumerate(found.keys):
            assert found.values[i, j] == pytest.approx(query[one] @ key[other] / np.sqrt(width), rel=1e-4)


def test_a_deep_model_has_a_part_for_each_layer_and_the_printed_table_adds_up(made):
    config, snapshot = made("default", n_decoder_layers=4, n_encoder_layers=5)
    passed = trace(config, snapshot, "banana")
    found = score_parts(passed, "decoder.3.cross", 0, 2, 3)
    layers = [f"decoder layer {i}" for i in (1, 2, 3, 4)]
    assert found.queries == ("token", "position", *layers, "biases")
    assert found.keys[2] == "encoder layer 1"
    first = [f"decoder layer 1, {name}" for name in ("self", "cross", "feed-forward")]
    shallow = score_parts(passed, "decoder.1.cross", 0, 2, 3)
    assert shallow.queries == ("token", "position", *first, "decoder layer 2, self", "biases")
    for digits in (1, 2, 3):
        printed = found.printed(digits)
        total = sum(round(float(text) * 10**digits) for row in printed for text in row)
        assert total == round(found.score * 10**digits)
        assert np.abs(np.array(printed, dtype=float) - found.values).max() <= 1.01 * 10**-digits


def test_rounding_gives_what_is_missing_to_the_values_that_lose_most():
    parts = ScoreParts(("a",), ("b", "c", "d"), np.array([[0.26, 0.26, -0.02]]), 0.5)
    assert parts.printed(1) == [["+0.3", "+0.2", "+0.0"]]

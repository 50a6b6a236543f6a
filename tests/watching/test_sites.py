"""How the attentions of any model are grouped and what stands at their axes."""

from __future__ import annotations

import numpy as np
import pytest

from transformer import InputError
from transformer.watching.sites import grouped, word_of


def even(heads, rows, columns):
    return np.full((heads, rows, columns), 1 / columns, dtype=np.float32)


def test_attentions_that_differ_in_numbers_alone_are_one_group_and_many_are_folded_by_layer():
    maps = {f"enc.layer.{i}.self": even(2, 4, 4) for i in range(13)} | {"pool": even(2, 1, 4)}
    axes = grouped({"one": maps, "other": maps})
    groups = [one.group for one in axes.values()]
    assert groups == [
        *["enc.layer.*.self 0–5"] * 6,
        *["enc.layer.*.self 6–11"] * 6,
        "enc.layer.*.self 12–12",
        "pool",
    ]
    assert list(axes) == list(maps)


def test_attentions_of_one_pattern_and_other_sizes_are_groups_of_their_own():
    maps = {"a.0": even(2, 4, 4), "a.1": even(2, 4, 4), "a.2": even(2, 4, 6), "a.3": even(2, 4, 6)}
    assert [one.group for one in grouped({"x": maps}).values()] == ["a.* 4×4"] * 2 + ["a.* 4×6"] * 2


def test_an_attention_is_causal_where_no_word_looks_ahead():
    causal = np.tril(even(2, 4, 4))
    looks = causal.copy()
    looks[1, 0, 3] = 0.01
    axes = grouped({"one": {"a": causal, "b": causal}, "other": {"a": causal, "b": looks}})
    assert [one.causal for one in axes.values()] == [True, False]


def test_tokens_are_those_of_the_axis_and_positions_where_there_are_none():
    maps = {"enc.0": even(2, 3, 3), "dec.0.self": even(2, 2, 2), "dec.0.cross": even(2, 2, 3)}
    axes = grouped({"w": maps})
    given = {"enc.*": "abc", "*self": ["S", "c"], "*cross": (["S", "c"], "abc")}
    word = word_of("w", maps, axes, given)
    assert [word.tokens(axes[site].query) for site in maps] == [("a", "b", "c"), ("S", "c"), ("S", "c")]
    assert [word.tokens(axes[site].key) for site in maps] == [("a", "b", "c"), ("S", "c"), ("a", "b", "c")]
    one = word_of("w", maps, axes, "abc")
    assert one.tokens(axes["dec.0.cross"].query) == ("1", "2")
    assert one.tokens(axes["dec.0.cross"].key) == ("a", "b", "c")


def test_tokens_of_another_number_are_refused_with_both_numbers():
    maps = {"enc.0": even(2, 3, 3)}
    with pytest.raises(InputError, match="enc.0 has 3 positions, but 2 tokens were given for 'w'"):
        word_of("w", maps, grouped({"w": maps}), {"enc.0": "ab"})

"""How the attentions of any model are grouped and how their axes are labelled."""

from __future__ import annotations

import numpy as np
import pytest

from transformer import InputError
from transformer.watching.attention import Seen
from transformer.watching.sites import grouped, labels_of, word_of


def labelled(text, maps, tokens=()):
    """Return the labels of maps that are neither pooled nor have columns of another kind."""
    return labels_of(text, maps, tokens, dict.fromkeys(maps, Seen(np.zeros(0, np.float32))))


def axes_of(maps, tokens=()):
    """Return the axes of the attentions of some words, with these tokens."""
    return grouped(maps, {text: labelled(text, of, tokens) for text, of in maps.items()})


def even(heads, rows, columns):
    return np.full((heads, rows, columns), 1 / columns, dtype=np.float32)


def test_attentions_whose_names_differ_only_in_numbers_are_grouped_and_large_groups_split():
    maps = {f"enc.layer.{i}.self": even(2, 4, 4) for i in range(13)} | {"pool": even(2, 1, 4)}
    axes = axes_of({"one": maps, "other": maps})
    groups = [one.group for one in axes.values()]
    assert groups == [
        *["enc.layer.*.self 0–5"] * 6,
        *["enc.layer.*.self 6–11"] * 6,
        "enc.layer.*.self 12–12",
        "pool",
    ]
    assert list(axes) == list(maps)


def test_attentions_of_one_pattern_but_different_sizes_are_separate_groups():
    maps = {"a.0": even(2, 4, 4), "a.1": even(2, 4, 4), "a.2": even(2, 4, 6), "a.3": even(2, 4, 6)}
    assert [one.group for one in axes_of({"x": maps}).values()] == ["a.*"] * 2 + ["a.* 4×6"] * 2


def test_an_attention_is_causal_if_no_tracked_word_looks_ahead():
    causal = np.tril(even(2, 4, 4))
    looks = causal.copy()
    looks[1, 0, 3] = 0.01
    axes = axes_of({"one": {"a": causal, "b": causal}, "other": {"a": causal, "b": looks}})
    assert [one.causal for one in axes.values()] == [True, False]


def test_groups_of_one_pattern_have_different_names_whatever_the_first_word_is():
    short = {f"a.{i}": even(2, 4, 4) for i in range(4)}
    long = {f"a.{i}": even(2, 5 + i // 2, 5 + i // 2) for i in range(4)}
    assert [one.group for one in axes_of({"p": short, "q": long}).values()] == ["a.*"] * 2 + ["a.* 4×4"] * 2


def test_axes_are_labelled_by_their_tokens_or_else_by_positions():
    maps = {"enc.0": even(2, 3, 3), "dec.0.self": even(2, 2, 2), "dec.0.self#2": even(2, 2, 2)}
    maps["dec.0.cross"] = even(2, 2, 3)
    given = {"enc.*": "abc", "*self": ["S", "c"], "*cross": (["S", "c"], "abc")}
    given_labels = labelled("w", maps, given)
    labels = {site: tuple(axis.labels for axis in both) for site, both in given_labels.items()}
    assert [rows for rows, _ in labels.values()] == [("a", "b", "c"), *[("S", "c")] * 3]
    assert [columns for _, columns in labels.values()] == [
        ("a", "b", "c"),
        *[("S", "c")] * 2,
        ("a", "b", "c"),
    ]
    axes = axes_of({"w": maps}, given)
    word = word_of("w", axes, given_labels)
    assert {site: (word.tokens(of.query), word.tokens(of.key)) for site, of in axes.items()} == labels
    rows, columns = labelled("w", maps, "abc")["dec.0.cross"]
    assert (rows.labels, columns.labels) == (("1", "2"), ("a", "b", "c"))


def test_a_cell_of_several_tokens_is_labelled_by_its_range_and_names_them():
    seen = Seen(even(2, 3, 2)[None], rest=True, size=(7, 5), pooled=(3, 5))
    maps = {"a": even(2, 3, 2)}
    labels = labels_of("w", maps, (list("abcdefg"), list("vwxyz")), {"a": seen})
    word = word_of("w", grouped({"w": maps}, {"w": labels}), labels)
    assert word.tokens("a queries") == ("1–3", "4–6", "7–7")
    assert word.tokens("a keys") == ("1–5", "no token")
    assert word.spans == {"a queries": ("a b c", "d e f", "g"), "a keys": ("v w x y z",)}
    assert word.pooled == {"a queries": 3, "a keys": 5}


def test_columns_relative_to_their_row_are_labelled_by_their_distance():
    labels = labels_of("w", {"a": even(2, 4, 3)}, "abcd", {"a": Seen(even(2, 4, 3)[None], relative=True)})
    assert [axis.labels for axis in labels["a"]] == [("a", "b", "c", "d"), ("-1", "+0", "+1")]


def test_attentions_with_different_tokens_are_separate_groups():
    maps = {"attn1": even(2, 3, 3), "attn2": even(2, 3, 3)}
    axes = axes_of({"w": maps}, {"attn1": "abc", "attn2": ("abc", list("xyz"))})
    assert [one.group for one in axes.values()] == ["attn1", "attn2"]


def test_a_wrong_number_of_tokens_is_refused_with_both_numbers_named():
    with pytest.raises(InputError, match="enc.0 has 3 positions, but 2 tokens were given for 'w'"):
        labelled("w", {"enc.0": even(2, 3, 3)}, {"enc.0": "ab"})

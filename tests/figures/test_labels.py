"""What stands at the axes of a map: the tokens that are really attended to, on the right sides."""

from __future__ import annotations

import pytest

from transformer.figures.labels import tile_name, token_axes, wrong_predictions

SRC = ("[SOS]", "c", "a", "t", "[EOS]")
TGT = ("[SOS]", "t", "a", "c")
EXPECTED = ("t", "a", "c", "[EOS]")
WRITTEN = ("[SOS] → t", "t → a", "a → c", "c → [EOS]")


@pytest.mark.parametrize(
    ("query", "key", "rows", "columns", "row_title", "column_title"),
    [
        ("src", "src", SRC, SRC, "letter at work", "letters of the word"),
        ("tgt", "tgt", WRITTEN, TGT, "after reading → writes", "letters written so far"),
        ("tgt", "src", WRITTEN, SRC, "after reading → writes", "letters of the word"),
    ],
)
def test_rows_ask_and_columns_answer(query, key, rows, columns, row_title, column_title):
    causal = query == key == "tgt"
    axes = token_axes(query=query, key=key, causal=causal, src_tokens=SRC, tgt_tokens=TGT, expected=EXPECTED)
    assert (axes.rows, axes.columns) == (rows, columns)
    assert (axes.row_title, axes.column_title, axes.causal) == (row_title, column_title, causal)


def test_a_row_is_wrong_where_another_token_is_predicted_and_an_encoder_predicts_nothing():
    predicted = ("t", "x", "c", "q")
    assert wrong_predictions("tgt", EXPECTED, predicted) == {1: "x", 3: "q"}
    assert wrong_predictions("src", EXPECTED, predicted) == {}


def test_small_maps_are_named_shortly_and_very_shortly_where_there_are_many():
    assert tile_name("decoder.1.cross", 2, 8) == "dec 2 · head 3"
    assert tile_name("encoder.0", 0, 9) == "1 · 1"

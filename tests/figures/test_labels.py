"""What stands at the axes of a map: the tokens that are really attended to, on the right sides."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from transformer.figures.labels import map_axes, token_axes, wrong_predictions

SRC = ("[SOS]", "c", "a", "t", "[EOS]")
TGT = ("[SOS]", "t", "a", "c")
EXPECTED = ("t", "a", "c", "[EOS]")
CROSS = SimpleNamespace(query="tgt", key="src", writes=True, causal=False)
READER = SimpleNamespace(query="src", key="src", writes=False, causal=False)
ENCODER = SimpleNamespace(query="src", key="src", writes=True, causal=False)
SEQUENCE = SimpleNamespace(query="seq", key="seq", writes=True, causal=True)
WRITTEN = ("[SOS] → t", "t → a", "a → c", "c → [EOS]")


@pytest.mark.parametrize(
    ("query", "key", "writes", "rows", "columns", "row_title", "column_title"),
    [
        ("src", "src", False, SRC, SRC, "letter at work", "letters of the word"),
        ("tgt", "tgt", True, WRITTEN, TGT, "after reading → writes", "letters written so far"),
        ("tgt", "src", True, WRITTEN, SRC, "after reading → writes", "letters of the word"),
    ],
)
def test_rows_ask_and_columns_answer(query, key, writes, rows, columns, row_title, column_title):
    causal = query == key == "tgt"
    axes = token_axes(
        query=query,
        key=key,
        writes=writes,
        causal=causal,
        src_tokens=SRC,
        tgt_tokens=TGT,
        expected=EXPECTED,
    )
    assert (axes.rows, axes.columns) == (rows, columns)
    assert (axes.row_title, axes.column_title, axes.causal) == (row_title, column_title, causal)


def test_an_encoder_alone_says_what_each_letter_becomes():
    word = SimpleNamespace(src_tokens=SRC, tgt_tokens=SRC)
    axes = map_axes(ENCODER, word, ("", "t", "a", "c", "[EOS]"))
    assert axes.rows == ("[SOS]", "c → t", "a → a", "t → c", "[EOS] → [EOS]")
    assert axes.columns == SRC
    assert (axes.row_title, axes.causal) == ("letter → becomes", False)


def test_one_sequence_writes_from_its_separator_on():
    tokens = ("[SOS]", "c", "a", "[SEP]", "a", "c")
    word = SimpleNamespace(src_tokens=tokens, tgt_tokens=tokens)
    axes = map_axes(SEQUENCE, word, ("", "", "", "a", "c", "[EOS]"))
    assert axes.rows == ("[SOS]", "c", "a", "[SEP] → a", "a → c", "c → [EOS]")
    assert axes.columns == tokens
    assert axes.column_title == "word, then answer so far"
    assert axes.causal


def test_a_row_is_wrong_where_another_token_is_predicted_and_where_nothing_is_written_none_is():
    predicted = ("t", "x", "c", "q")
    assert wrong_predictions(CROSS, EXPECTED, predicted) == {1: "x", 3: "q"}
    assert wrong_predictions(READER, EXPECTED, predicted) == {}
    assert wrong_predictions(SEQUENCE, ("", "", "a", "[EOS]"), ("x", "y", "b", "[EOS]")) == {2: "b"}

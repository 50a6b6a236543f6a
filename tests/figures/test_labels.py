"""The labels of a map's axes: query tokens label the rows, key tokens the columns."""

from __future__ import annotations

import pytest

from transformer.figures.labels import called, map_axes, wrong_predictions
from transformer.shared.attention_info import AttentionInfo


def of(query, key, *, writes, causal=False):
    return AttentionInfo(query=query, key=key, writes=writes, causal=causal, padding=True)


SRC, TGT = ("[SOS]", "c", "a", "t", "[EOS]"), ("[SOS]", "t", "a", "c")
EXPECTED = ("t", "a", "c", "[EOS]")
WRITTEN = ("[SOS] → t", "t → a", "a → c", "c → [EOS]")
BECOMES = ("[SOS]", "c → t", "a → a", "t → c", "[EOS] → [EOS]")
LINE = ("[SOS]", "c", "a", "[SEP]", "a", "c")
FROM_SEP = ("[SOS]", "c", "a", "[SEP] → a", "a → c", "c → [EOS]")
ASKED = ("[SOS]", "le", "[EOS]")
READER, CROSS = of("src", "src", writes=False), of("tgt", "src", writes=True)
SEQUENCE = of("seq", "seq", writes=True, causal=True)


@pytest.mark.parametrize(
    ("sides", "src", "tgt", "expected", "rows", "columns", "row_title", "column_title"),
    [
        (READER, SRC, TGT, EXPECTED, SRC, SRC, "each letter", "letters of the word"),
        (
            of("tgt", "tgt", writes=True, causal=True),
            SRC,
            TGT,
            EXPECTED,
            WRITTEN,
            TGT,
            "just written → to write",
            "letters of the answer",
        ),
        (CROSS, SRC, TGT, EXPECTED, WRITTEN, SRC, "just written → to write", "letters of the word"),
        (
            of("src", "src", writes=True),
            SRC,
            SRC,
            ("", "t", "a", "c", "[EOS]"),
            BECOMES,
            SRC,
            "letter → becomes",
            "letters of the word",
        ),
        (
            SEQUENCE,
            LINE,
            LINE,
            ("", "", "", "a", "c", "[EOS]"),
            FROM_SEP,
            LINE,
            "just written → to write",
            "word, then answer so far",
        ),
        (READER, ASKED, TGT, EXPECTED, ASKED, ASKED, "each token", "tokens of the question"),
    ],
    ids=["encoder", "decoder", "cross", "encoder that writes", "sequence", "words"],
)
def test_rows_are_query_tokens_and_columns_are_key_tokens(
    sides, src, tgt, expected, rows, columns, row_title, column_title
):
    axes = map_axes(sides, src, tgt, expected)
    assert (axes.rows, axes.columns, axes.causal) == (rows, columns, sides.causal)
    assert (axes.row_title, axes.column_title) == (row_title, column_title)


def test_a_row_is_wrong_only_if_it_writes_a_token_and_predicts_another():
    predicted = ("t", "x", "c", "q")
    assert wrong_predictions(CROSS, EXPECTED, predicted) == {1: "x", 3: "q"}
    assert wrong_predictions(READER, EXPECTED, predicted) == {}
    assert wrong_predictions(SEQUENCE, ("", "", "a", "[EOS]"), ("x", "y", "b", "[EOS]")) == {2: "b"}


@pytest.mark.parametrize(
    ("tokens", "noun"),
    [
        (["[SOS]", "c", "a", "[EOS]"], "letter"),
        (["letter 1", "letter 2"], "letter"),
        (["[SOS]"], "letter"),
        (["[SOS]", "the", "[EOS]"], "token"),
        (["[SOS]", "[UNK]", "[UNK]", "[EOS]"], "token"),
        (["[SOS]", "[UNK]", "a", "[EOS]"], "letter"),
    ],
)
def test_tokens_are_called_letters_unless_one_is_none_or_all_are_unknown(tokens, noun):
    assert called(tokens) == noun


def test_tokens_from_right_to_left_do_not_turn_the_label_around_them():
    found = map_axes(of("tgt", "src", writes=True), ("[SOS]", "يرى"), ("[SOS]", "قط"), ("قط", "[EOS]"))
    assert found.rows == ("[SOS] → \u2068قط\u2069", "\u2068قط\u2069 → [EOS]")
    assert found.columns == ("[SOS]", "\u2068يرى\u2069")

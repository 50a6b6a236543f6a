"""The sentence about a head's map, on maps made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from transformer.insight.narrator import narrate, narrate_any

SRC = ["[SOS]", *"train", "[EOS]"]
TGT = ["[SOS]", *"niart"]
SEQ = ["[SOS]", *"train", "[SEP]", *"niart"]
N = 5


def row_of(n_columns, cells):
    """Return a row with these weights by column; the other columns share the rest of 1 evenly."""
    row = np.full(n_columns, (1 - sum(cells.values())) / (n_columns - len(cells)))
    for column, weight in cells.items():
        row[column] = weight
    return row


def say(kind, at, cells, row=None):
    """Return the sentence about a map in which row `at` has these weights and every other row is even."""
    sides = {"encoder": (SRC, SRC), "decoder": (TGT, TGT), "cross": (TGT, SRC), "sequence": (SEQ, SEQ)}
    rows, columns = sides[kind]
    weights = np.full((len(rows), len(columns)), 1 / len(columns), dtype=np.float32)
    weights[at] = row_of(len(columns), cells)
    if kind in ("decoder", "sequence"):
        weights[np.triu_indices(len(rows), 1, len(columns))] = np.nan
    return narrate(weights, kind, rows, columns, n_letters=N, row=row)


SAID = {
    "cross": [
        (0, {5: 0.91}, "For output 1", "91% on letter 5 (“n”): the letter to write next."),
        (1, {2: 0.6}, "For output 2", "60% on letter 2 (“r”): the letter at the same place."),
        (
            2,
            {3: 1.0},
            "For output 3",
            "100% on letter 3 (“a”): the letter to write next and the letter at the same place.",
        ),
        (1, {3: 0.4}, "For output 2", "40% on letter 3 (“a”)."),
        (2, {6: 0.8}, "For output 3", "80% on [EOS]: a special token."),
        (5, {1: 0.7}, "For output 6", "70% on letter 1 (“t”)."),  # row 5 writes [EOS], which has no role
    ],
    "encoder": [
        (2, {2: 0.7}, "For letter 2 (“r”)", "70% on letter 2 (“r”): itself."),
        (2, {1: 0.7}, "For letter 2 (“r”)", "70% on letter 1 (“t”): the letter before."),
        (2, {4: 0.7}, "For letter 2 (“r”)", "70% on letter 4 (“i”): the mirrored letter."),
        (1, {0: 0.7}, "For letter 1 (“t”)", "70% on [SOS]: a special token."),
        (6, {5: 0.7}, "For [EOS]", "70% on letter 5 (“n”)."),
    ],
    "decoder": [
        (
            3,
            {3: 0.625},
            "After reading “a”, for output 4,",
            "62% on output 3 (“a”): the letter just read.",
        ),
        (
            3,
            {2: 0.7},
            "After reading “a”, for output 4,",
            "70% on output 2 (“i”): the letter before that.",
        ),
        (4, {2: 0.7}, "After reading “r”, for output 5,", "70% on output 2 (“i”)."),
        (0, {0: 1.0}, "After reading [SOS], for output 1,", "100% on [SOS]: a special token."),
    ],
    # Row 6 is [SEP], which writes output 1, and letter i of the answer stands at 6 + i.
    "sequence": [
        (
            6,
            {5: 0.91},
            "After reading [SEP], for output 1,",
            "91% on letter 5 (“n”): the letter to write next.",
        ),
        (
            7,
            {2: 0.6},
            "After reading “n”, for output 2,",
            "60% on letter 2 (“r”): the letter at the same place.",
        ),
        (9, {8: 0.7}, "After reading “a”, for output 4,", "70% on output 2 (“i”)."),
        (9, {6: 0.7}, "After reading “a”, for output 4,", "70% on [SEP]: a special token."),
        (3, {2: 0.7}, "For letter 3 (“a”)", "70% on letter 2 (“r”)."),
    ],
}


@pytest.mark.parametrize(
    ("kind", "at", "cells", "opening", "said"),
    [(kind, *sentence) for kind, sentences in SAID.items() for sentence in sentences],
)
def test_the_sentence_names_the_weight_the_cell_and_the_role_of_the_cell(kind, at, cells, opening, said):
    assert say(kind, at, cells, row=at) == f"{opening} this head puts {said}"


def test_the_first_row_with_the_highest_weight_is_chosen():
    weights = np.full((6, 7), 0.1)
    weights[[1, 3], [4, 2]] = 0.6
    assert narrate(weights, "cross", TGT, SRC, n_letters=N).startswith(
        "In its strongest row, for output 2 this head puts 60%"
    )
    weights[3, 2] = 0.7
    assert narrate(weights, "cross", TGT, SRC, n_letters=N).startswith(
        "In its strongest row, for output 4 this head puts 70%"
    )


def test_only_rows_of_letters_are_chosen():
    assert say("cross", 5, {6: 1.0}).startswith("For output 1 this head looks everywhere")  # it writes [EOS]
    assert say("cross", 0, {5: 0.9}).startswith("In its strongest row, for output 1 this head puts 90%")
    assert say("encoder", 0, {2: 1.0}).startswith("For letter 1 (“t”) this head looks everywhere")
    assert say("encoder", 6, {2: 1.0}).startswith("For letter 1 (“t”) this head looks everywhere")
    assert say("encoder", 5, {2: 0.9}).startswith(
        "In its strongest row, for letter 5 (“n”) this head puts 90%"
    )
    assert say("decoder", 0, {0: 1.0}).startswith("After reading “n”")
    assert say("decoder", 5, {5: 0.9}).startswith(
        "In its strongest row, after reading “t”, for output 6, this head puts 90%"
    )
    assert say("sequence", 3, {1: 1.0}).startswith("After reading [SEP], for output 1, this head looks every")
    assert say("sequence", 11, {3: 1.0}).startswith("After reading [SEP], for output 1, this head looks ever")
    assert say("sequence", 10, {1: 0.9}).startswith(
        "In its strongest row, after reading “r”, for output 5, this head puts 90%"
    )


def test_a_row_without_a_high_weight_looks_everywhere():
    assert say("cross", 2, {3: 0.16}, row=2) == (
        "For output 3 this head looks everywhere: nothing gets more than 16%."
    )
    assert "looks everywhere" in say("cross", 2, {3: 0.29}, row=2)
    assert "puts 31%" in say("cross", 2, {3: 0.31}, row=2)


def test_an_empty_output_still_has_a_sentence():
    """The decoder may read the model's own output, which can be empty."""
    assert narrate(np.array([[1.0]]), "decoder", TGT[:1], TGT[:1], n_letters=N).startswith(
        "In its strongest row, after reading [SOS]"
    )
    assert narrate(np.eye(1, 7, 5), "cross", TGT[:1], SRC, n_letters=N) == (
        "In its strongest row, for output 1 this head puts 100% on letter 5 (“n”): the letter to write next."
    )


# Tokens: answers longer or shorter than their questions, with gold alignments.

WORDS = ["[SOS]", "the", "cat", "sees", "him", "[EOS]"]
WRITTEN = ["[SOS]", "le", "chat", "voit"]
TOGETHER = [*WORDS[:-1], "[SEP]", *WRITTEN[1:]]
LINKS = ((1, 2), (2,), ())


def say_of_tokens(kind, at, cells, *, links=LINKS, row=None):
    """Return the sentence about a map of tokens; row `at` has these weights, every other row is even."""
    sides = {
        "encoder": (WORDS, WORDS),
        "decoder": (WRITTEN, WRITTEN),
        "cross": (WRITTEN, WORDS),
        "sequence": (TOGETHER, TOGETHER),
    }
    rows, columns = sides[kind]
    weights = np.full((len(rows), len(columns)), 1 / len(columns), dtype=np.float32)
    weights[at] = row_of(len(columns), cells)
    return narrate(weights, kind, rows, columns, n_letters=4, n_answer=3, links=links, row=row)


@pytest.mark.parametrize(
    ("kind", "at", "cells", "opening", "said"),
    [
        ("cross", 0, {2: 0.9}, "For output 1", "90% on token 2 (“cat”): an aligned token."),
        ("cross", 0, {3: 0.9}, "For output 1", "90% on token 3 (“sees”)."),
        ("cross", 1, {1: 0.9}, "For output 2", "90% on token 1 (“the”)."),
        ("cross", 2, {3: 0.9}, "For output 3", "90% on token 3 (“sees”)."),
        ("cross", 0, {5: 0.9}, "For output 1", "90% on [EOS]: a special token."),
        ("encoder", 3, {2: 0.7}, "For token 3 (“sees”)", "70% on token 2 (“cat”): the token before."),
        (
            "decoder",
            2,
            {2: 0.7},
            "After reading “chat”, for output 3,",
            "70% on output 2 (“chat”): the token just read.",
        ),
        (
            "sequence",
            5,
            {2: 0.8},
            "After reading [SEP], for output 1,",
            "80% on token 2 (“cat”): an aligned token.",
        ),
        ("sequence", 6, {1: 0.8}, "After reading “le”, for output 2,", "80% on token 1 (“the”)."),
        ("sequence", 7, {6: 0.8}, "After reading “chat”, for output 3,", "80% on output 1 (“le”)."),
    ],
)
def test_the_sentence_about_tokens_says_whether_the_token_is_aligned(kind, at, cells, opening, said):
    assert say_of_tokens(kind, at, cells, row=at) == f"{opening} this head puts {said}"


def test_without_an_alignment_no_token_is_called_aligned():
    assert say_of_tokens("cross", 1, {2: 0.9}, links=None) == (
        "In its strongest row, for output 2 this head puts 90% on token 2 (“cat”)."
    )


def test_rows_of_tokens_are_counted_by_the_answer_and_not_by_the_question():
    """Row 3 of cross-attention writes [EOS]; it would write a token only in an answer of four tokens."""
    assert say_of_tokens("cross", 3, {1: 1.0}).startswith("For output 1 this head looks everywhere")
    assert say_of_tokens("cross", 2, {1: 1.0}).startswith(
        "In its strongest row, for output 3 this head puts 100%"
    )
    assert say_of_tokens("encoder", 4, {1: 1.0}).startswith(
        "In its strongest row, for token 4 (“him”) this head puts 100%"
    )
    assert say_of_tokens("sequence", 4, {1: 1.0}).startswith("After reading [SEP], for output 1")
    assert say_of_tokens("sequence", 7, {1: 1.0}).startswith(
        "In its strongest row, after reading “chat”, for output 3"
    )
    assert say_of_tokens("sequence", 8, {1: 1.0}).startswith("After reading [SEP], for output 1")


def test_letters_are_called_aligned_where_links_are_given():
    weights = np.eye(6, 7, 1)
    links = tuple((i + 1,) for i in range(5))
    plain = "For output 2 this head puts 100% on letter 2 (“r”): "
    assert narrate(weights, "cross", TGT, SRC, n_letters=N, row=1) == f"{plain}the letter at the same place."
    assert (
        narrate(weights, "cross", TGT, SRC, n_letters=N, links=links, row=1) == f"{plain}an aligned letter."
    )


def test_for_own_models_the_strongest_cell_of_rows_with_several_open_cells_is_named():
    weights = np.array([[1.0, np.nan, np.nan], [0.3, 0.7, np.nan], [0.2, 0.2, 0.6]])
    said = narrate_any(weights, ("a", "b", "c"), ("x", "y", "z"))
    assert said == "Strongest: row 2 (“b”) puts 70% on column 2 (“y”)."
    assert "row 1 (“a”) puts 100%" in narrate_any(weights[:1, :], ("a",), ("x", "y", "z"))

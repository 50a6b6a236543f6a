"""Head scores, on maps whose scores are known by hand."""

from __future__ import annotations

import numpy as np
import pytest

from transformer.insight.scores import (
    THRESHOLD,
    clearest_head,
    gold_cells,
    head_scores,
    pattern_scores,
    role_cells,
    role_of,
    token_cells,
)


def test_each_row_of_a_reversed_word_has_its_letter_in_the_mirrored_column():
    """Columns of "cat": [SOS] c a t [EOS]. Row 0 writes t, row 1 writes a, row 2 writes c."""
    columns = ["[SOS]", *"cat", "[EOS]"]
    cells = role_cells("cross", 3)["mirror"]
    assert [(row, columns[column]) for row, column in cells] == [(0, "t"), (1, "a"), (2, "c")]
    assert role_cells("cross", 1)["mirror"] == [(0, 1)]


def test_an_encoder_and_a_sequence_have_the_mirrored_letter_in_the_row_that_writes_it():
    """An encoder writes at the position of each letter; a sequence from [SEP] on."""
    src = ["[SOS]", *"cat", "[EOS]"]
    assert [(src[i], src[j]) for i, j in role_cells("encoder", 3)["mirror"]] == [
        ("c", "t"),
        ("a", "a"),
        ("t", "c"),
    ]
    sequence, writes = ["[SOS]", *"cat", "[SEP]", *"tac"], ["", "", "", "", *"tac", "[EOS]"]
    cells = role_cells("sequence", 3)["mirror"]
    assert [(sequence[i], writes[i], sequence[j]) for i, j in cells] == [
        ("[SEP]", "t", "t"),
        ("t", "a", "a"),
        ("a", "c", "c"),
    ]
    assert all(j <= 3 for _, j in cells), "in the question, not in the answer"


LENGTHS = [3, 6, 4, 5, 3]
N_HEADS = 2
NEIGHBOURS = {"previous": -1, "next": 1}
# Room for one more letter than the longest word has.
SHAPES = {"encoder": (9, 9), "decoder": (8, 8), "cross": (8, 9), "sequence": (16, 16)}
ROLES_OF = {
    "encoder": ["mirror", "diagonal", "previous", "next", "first", "eos"],
    "decoder": ["diagonal", "previous", "next", "first"],
    "cross": ["mirror", "diagonal", "first", "eos"],
    "sequence": ["mirror", "diagonal", "previous", "next", "first", "sep"],
}


def drawn(kind, seed=0):
    """Return random weights (5, 2, Q, K) without zeros, not even in blocked cells and padding."""
    weights = np.random.default_rng(seed).random((len(LENGTHS), N_HEADS, *SHAPES[kind]))
    return (weights / weights.sum(axis=-1, keepdims=True)).astype(np.float32)


def by_tokens(kind, word, role):
    """Yield the cells of a role, found by comparing tokens; no letter occurs twice in the word."""
    n = len(word)
    if kind == "sequence":
        columns = ["[SOS]", *word, "[SEP]", *("answer" for _ in word)]
        rows = [*("" for _ in range(n + 1)), *reversed(word)]  # what each row writes, from [SEP] on
    else:
        src, tgt = ["[SOS]", *word, "[EOS]"], ["[SOS]", *reversed(word)]
        rows, columns = {"encoder": (src, src), "decoder": (tgt, tgt), "cross": (tgt, src)}[kind]
    if kind == "sequence" and role in NEIGHBOURS:  # a row stands for what it reads, in either part
        for part in (range(1, n + 1), range(n + 2, 2 * n + 2)):
            yield from ((i, i + NEIGHBOURS[role]) for i in part if i + NEIGHBOURS[role] in part)
        return
    if kind == "cross":  # a row stands for what it writes
        rows = [*rows[1:], "[EOS]"]
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            if len(row) != 1:
                continue
            place = {"cross": i + 1, "sequence": i - n}.get(kind, i)
            hit = {
                # The letter to write or, in the encoder, the letter of the reversed word at this place.
                "mirror": column == (word[::-1][word.index(row)] if kind == "encoder" else row),
                "diagonal": j == place,
                "previous": j == place - 1 and len(column) == 1,
                "next": j == place + 1 and len(column) == 1,
                "first": column == "[SOS]",
                "eos": column == "[EOS]",
                "sep": column == "[SEP]",
            }
            if hit[role]:
                yield i, j


@pytest.mark.parametrize("kind", SHAPES)
def test_each_role_score_is_the_mean_weight_on_the_cells_of_the_role(kind):
    weights = drawn(kind)
    scores = head_scores(weights, kind, LENGTHS)
    assert list(scores) == [*ROLES_OF[kind], "focus", "entropy"]
    for role in ROLES_OF[kind]:
        for head in range(N_HEADS):
            hits = [
                float(weights[b, head, i, j])
                for b, n in enumerate(LENGTHS)
                for i, j in by_tokens(kind, "abcdefgh"[:n], role)
            ]
            each = 2 if kind == "sequence" and role in NEIGHBOURS else 1
            assert len(hits) == each * (sum(LENGTHS) - (len(LENGTHS) if role in NEIGHBOURS else 0))
            assert scores[role][head] == pytest.approx(np.mean(hits))


def test_earlier_occurrences_and_the_token_after_the_last_one_are_found_by_comparing_tokens():
    tokens = [None, "a", "b", "a", "c", "b", "b", None, "a"]
    assert token_cells(tokens) == {
        "prefix": {3: [2], 5: [3], 8: [4]},  # the second b stands right behind the first
        "same": {3: [1], 5: [2], 6: [2, 5], 8: [1, 3]},
    }
    random = np.random.default_rng(3)
    for _ in range(20):
        drawn = random.integers(0, 4, 12).tolist()
        found = token_cells(drawn)
        for row, token in enumerate(drawn):
            before = [i for i in range(row) if drawn[i] == token]
            assert found["same"].get(row, []) == before
            behind = before[-1] + 1 if before else row
            assert found["prefix"].get(row, []) == ([behind] if behind < row else [])


@pytest.mark.parametrize("kind", ["sequence", "encoder", "decoder"])
def test_scores_of_induction_are_means_over_the_rows_whose_token_occurred_before(kind):
    weights = drawn(kind)
    random = np.random.default_rng(4)
    tokens = [[None, *random.integers(0, 3, 6).tolist(), None] for _ in LENGTHS]
    scores = head_scores(weights, kind, LENGTHS, tokens=tokens)
    for head in range(N_HEADS):
        prefix, same = [], []
        for b, word in enumerate(tokens):
            for row in range(1, 7):
                before = [i for i in range(1, row) if word[i] == word[row]]
                if before:
                    same.append(weights[b, head, row, before].sum())
                if before and before[-1] + 1 < row:
                    prefix.append(weights[b, head, row, before[-1] + 1])
        assert scores["prefix"][head] == pytest.approx(np.mean(prefix), rel=1e-5)
        assert scores["same"][head] == pytest.approx(np.mean(same), rel=1e-5)
    assert "prefix" not in head_scores(weights, kind, LENGTHS)


def test_an_own_model_has_scores_of_induction_if_a_token_of_its_inputs_occurs_again():
    weights = drawn("sequence")[:2, :, :6, :6]
    weights[:, :, np.triu_indices(6, 1)[0], np.triu_indices(6, 1)[1]] = np.nan
    tokens = [["[CLS]", "to", "be", "or", "to", "be"], ["a", "b", "c", "d", "e", "f"]]
    tokens[0][0] = None
    scores = pattern_scores(list(weights), tokens)
    for head in range(N_HEADS):
        assert scores["prefix"][head] == pytest.approx(
            np.mean([weights[0, head, 4, 2], weights[0, head, 5, 3]])
        )
        assert scores["same"][head] == pytest.approx(
            np.mean([weights[0, head, 4, 1], weights[0, head, 5, 2]])
        )
    assert "prefix" not in pattern_scores(list(weights), tokens[1:])
    assert "prefix" not in pattern_scores(list(weights), [None, None])


def test_words_of_one_letter_have_zero_entropy():
    weights = np.full((2, 3, 2, 3), 1 / 3, dtype=np.float32)
    assert head_scores(weights, "cross", [1, 1], answers=[1, 1])["entropy"].tolist() == [0, 0, 0]


def test_entropy_is_one_for_even_rows_and_zero_for_one_letter():
    """Head 0 is even, head 1 looks at [SOS] alone, head 2 at one letter, head 3 at two letters of three.

    The weight of head 3 on [SOS] changes nothing.
    """
    weights = np.zeros((1, 4, 4, 5))
    weights[0, 0] = 1 / 5
    weights[0, 1, :, 0] = 1.0
    weights[0, 2, :, 2] = 1.0
    weights[0, 3, :, [0, 1, 3]] = np.array([[0.8], [0.1], [0.1]])
    assert head_scores(weights, "cross", [3])["entropy"] == pytest.approx([1, 1, 0, np.log(2) / np.log(3)])


@pytest.mark.parametrize("kind", SHAPES)
def test_a_head_with_only_one_role_scores_one_for_it(kind):
    """No other role reaches the threshold, although in the middle of a word two roles share a cell."""
    for role in ROLES_OF[kind]:
        weights = np.zeros((len(LENGTHS), N_HEADS, *SHAPES[kind]))
        for b, n in enumerate(LENGTHS):
            for i, j in by_tokens(kind, "abcdefgh"[:n], role):
                weights[b, 1, i, j] = 1.0
        scores = {name: float(of_heads[1]) for name, of_heads in head_scores(weights, kind, LENGTHS).items()}
        assert scores[role] == pytest.approx(1.0)
        assert role_of(scores) == role
        assert [name for name in ROLES_OF[kind] if scores[name] >= THRESHOLD] == [role]


@pytest.mark.parametrize("kind", SHAPES)
def test_padding_and_the_rows_of_special_tokens_do_not_count(kind):
    weights = drawn(kind)
    changed = weights.copy()
    for b, n in enumerate(LENGTHS):
        first = {"cross": 0, "sequence": n + 1}.get(kind, 1)
        changed[b, :, :first] = 9.0
        changed[b, :, first + n :] = 9.0
        changed[b, :, :, n + 2 :] = 9.0
    before, after = head_scores(weights, kind, LENGTHS), head_scores(changed, kind, LENGTHS)
    # The focus counts every column, including padding that no mask blocks; in a sequence, the previous and
    # the next token count in every row that reads a letter.
    others = {"focus", *NEIGHBOURS} if kind == "sequence" else {"focus"}
    assert all((before[name] == after[name]).all() for name in before.keys() - others)
    only_rows = np.where(changed == 9.0, 9.0, weights)
    for b, n in enumerate(LENGTHS):
        first = {"cross": 0, "sequence": n + 1}.get(kind, 1)
        only_rows[b, :, first : first + n] = weights[b, :, first : first + n]
    assert (head_scores(only_rows, kind, LENGTHS)["focus"] == before["focus"]).all()


def test_the_words_may_change_between_two_calls():
    """Values that a call caches are used only for the same words."""
    weights = drawn("cross")
    first = head_scores(weights, "cross", LENGTHS)["mirror"]
    other = head_scores(weights, "cross", [4, 3, 6, 5, 3])["mirror"]
    assert (first != other).all()
    assert (head_scores(weights, "cross", LENGTHS)["mirror"] == first).all()


def test_a_badge_is_the_highest_role_that_reaches_the_threshold():
    assert role_of({"mirror": 0.2, "diagonal": 0.5, "first": 0.4}) == "diagonal"
    assert role_of({"diagonal": 0.6, "previous": 0.3, "eos": 0.7}) == "eos"
    assert role_of({"mirror": 0.49, "first": 0.499}) is None
    assert role_of({"diagonal": 0.5, "mirror": 0.5}) == "mirror"  # of equal scores, the first in `ROLES`
    assert role_of({"mirror": 0.1, "entropy": 0.9, "focus": 0.9}) is None  # entropy and focus are not roles


def test_the_clearest_head_is_the_head_with_the_highest_score():
    scores = {"decoder.0.cross": np.array([0.3, 0.9]), "decoder.1.cross": np.array([0.2, 0.4])}
    assert clearest_head(scores) == (("decoder.0.cross", 1), 0.9)


def test_the_shown_head_changes_only_when_another_head_is_clearly_ahead():
    shown = ("decoder.0.cross", 0)
    for lead, expected in ((0.05, shown), (0.2, ("decoder.0.cross", 1)), (-0.2, shown)):
        scores = {"decoder.0.cross": np.array([0.5, 0.5 + lead])}
        best, score = clearest_head(scores, shown)
        assert best == expected
        assert score == pytest.approx(0.5 if expected == shown else 0.5 + lead)
    assert clearest_head({"decoder.9.cross": np.array([0.1])}, shown) == (("decoder.9.cross", 0), 0.1)


def test_a_head_that_alone_reaches_the_threshold_is_shown_at_once():
    scores = {"decoder.0.cross": np.array([0.49, 0.53])}
    assert clearest_head(scores, ("decoder.0.cross", 0)) == (("decoder.0.cross", 1), 0.53)
    scores = {"decoder.0.cross": np.array([0.51, 0.49])}
    assert clearest_head(scores, ("decoder.0.cross", 0)) == (("decoder.0.cross", 0), 0.51)


@pytest.mark.parametrize("kind", ["encoder", "cross", "sequence"])
def test_on_reversed_words_the_gold_score_is_the_mirror_score(kind):
    weights = drawn(kind)
    links = [tuple((n - i,) for i in range(n)) for n in LENGTHS]
    scores = head_scores(weights, kind, LENGTHS, links=links)
    assert scores["gold"] == pytest.approx(scores["mirror"])
    for n, of_word in zip(LENGTHS, links, strict=True):
        assert gold_cells(kind, n, of_word) == role_cells(kind, n)["mirror"]
    other = [tuple((i + 1,) for i in range(n)) for n in LENGTHS]
    scores = head_scores(weights, kind, LENGTHS, links=other)
    assert scores["gold"] == pytest.approx(scores["diagonal"])


def test_scores_of_any_attention_are_means_over_the_rows_with_several_open_cells():
    blocked = np.nan
    causal = np.array([[[1, blocked, blocked], [0.25, 0.75, blocked], [0.5, 0.4, 0.1]]])
    wide = np.array([[[0.5, 0.5, 0, 0]]])
    free = np.array([[[0.2, 0.7, 0.1], [0.3, 0.3, 0.4], [0.6, 0.2, 0.2]]])
    assert pattern_scores([free, wide])["next"] == pytest.approx([(0.7 + 0.4) / 2])
    scores = pattern_scores([causal, wide])
    assert scores["next"].tolist() == [0]
    assert scores["first_token"] == pytest.approx([(0.25 + 0.5 + 0.5) / 3])
    assert scores["focus"] == pytest.approx([(0.75 + 0.5 + 0.5) / 3])
    assert scores["diagonal"] == pytest.approx([(0.75 + 0.1) / 2])
    assert scores["previous"] == pytest.approx([(0.25 + 0.4) / 2])
    entropies = [
        -(0.25 * np.log(0.25) + 0.75 * np.log(0.75)) / np.log(2),
        -(0.5 * np.log(0.5) + 0.4 * np.log(0.4) + 0.1 * np.log(0.1)) / np.log(3),
        np.log(2) / np.log(4),
    ]
    assert scores["entropy"] == pytest.approx([np.mean(entropies)], abs=1e-6)
    assert "diagonal" not in pattern_scores([wide])
    assert pattern_scores([np.ones((2, 1, 1))])["focus"].tolist() == [0, 0]


def test_what_a_row_gives_to_no_key_counts_for_the_entropy_alone():
    sink = np.full((2, 3, 4), 0.0)
    sink[:, [0, 1, 2], [0, 1, 2]], sink[..., 3] = 0.1, 0.9
    scores = pattern_scores([sink], rest=[True])
    assert scores["focus"] == pytest.approx([0.1, 0.1])
    assert scores["diagonal"] == pytest.approx([0.1, 0.1])
    expected = -(0.1 * np.log(0.1) + 0.9 * np.log(0.9)) / np.log(4)
    assert scores["entropy"] == pytest.approx([expected] * 2)
    assert pattern_scores([sink])["focus"] == pytest.approx([0.9, 0.9])

"""Head scores where answers are longer or shorter than their questions; gold scores."""

from __future__ import annotations

import numpy as np
import pytest

from transformer.insight.scores import head_scores, role_cells, role_of

# Two questions of 4 and 3 tokens with answers of 3 and 5; a row has links to zero, one or two columns.
N_READ, N_WRITTEN = [4, 3], [3, 5]
LINKS = [((2, 4), (), (1,)), ((3,), (1, 2), (), (2,), (1, 3))]


def map_of(kind, seed=1):
    """Return random weights (2, 3, Q, K), with more rows and columns than the examples need."""
    shape = {"encoder": (8, 8), "decoder": (8, 8), "cross": (7, 7), "sequence": (12, 12)}[kind]
    weights = np.random.default_rng(seed).random((2, 3, *shape))
    return weights / weights.sum(axis=-1, keepdims=True)


def writing_row(kind, b, i):
    """Return the row that writes token i of the answer to question b."""
    return {"cross": i, "sequence": N_READ[b] + 1 + i}.get(kind, i + 1)


@pytest.mark.parametrize("kind", ["cross", "sequence"])
def test_the_gold_score_is_the_mean_weight_on_linked_columns_over_the_rows_with_links(kind):
    weights = map_of(kind)
    scores = head_scores(weights, kind, N_READ, answers=N_WRITTEN, links=LINKS)
    for head in range(3):
        rows = [
            sum(weights[b, head, writing_row(kind, b, i), column] for column in columns)
            for b, links in enumerate(LINKS)
            for i, columns in enumerate(links)
            if columns
        ]
        assert len(rows) == 6
        assert scores["gold"][head] == pytest.approx(np.mean(rows))
    assert "gold" not in head_scores(weights, kind, N_READ, answers=N_WRITTEN)
    nothing = [((),) * n for n in N_WRITTEN]
    assert not head_scores(weights, kind, N_READ, answers=N_WRITTEN, links=nothing)["gold"].any()


@pytest.mark.parametrize("kind", ["cross", "sequence"])
def test_a_head_that_attends_only_to_linked_columns_scores_one_and_has_the_gold_badge(kind):
    weights = np.zeros_like(map_of(kind))
    for b, links in enumerate(LINKS):
        for i, columns in enumerate(links):
            row = weights[b, :, writing_row(kind, b, i)]
            row[0, list(columns)] = 1 / max(len(columns), 1)
            row[1, columns[:1]] = 1.0  # only the first of two linked columns
            row[2, 0] = 1.0
    scores = head_scores(weights, kind, N_READ, answers=N_WRITTEN, links=LINKS)
    assert scores["gold"] == pytest.approx([1.0, 1.0, 0.0])
    assert role_of({name: float(values[0]) for name, values in scores.items()}) == "gold"
    assert role_of({name: float(values[2]) for name, values in scores.items()}) == "first"


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross", "sequence"])
def test_the_focus_is_the_highest_weight_of_a_row_over_the_rows_of_tokens(kind):
    weights = map_of(kind)
    scores = head_scores(weights, kind, N_READ, answers=N_WRITTEN)
    for head in range(3):
        highest = [
            max(weights[b, head, writing_row(kind, b, i)])
            for b in range(2)
            for i in range(N_READ[b] if kind == "encoder" else N_WRITTEN[b])
        ]
        assert scores["focus"][head] == pytest.approx(np.mean(highest))


@pytest.mark.parametrize(
    ("kind", "roles"),
    [
        ("encoder", ["diagonal", "previous", "next", "first", "eos"]),
        ("decoder", ["diagonal", "previous", "next", "first"]),
        ("cross", ["first", "eos"]),
        ("sequence", ["previous", "next", "first", "sep"]),
    ],
)
def test_where_lengths_differ_no_role_matches_positions_of_question_and_answer(kind, roles):
    """A question of 4 tokens with an answer of 2: the rows are those of the query side."""
    cells = role_cells(kind, 4, 2)
    assert list(cells) == roles
    rows = {"encoder": [1, 2, 3, 4], "decoder": [1, 2], "cross": [0, 1], "sequence": [5, 6]}[kind]
    assert [row for row, _ in cells["first"]] == rows
    assert {column for _, column in cells["first"]} == {0}
    for role in ("eos", "sep"):
        assert {column for _, column in cells.get(role, [(0, 5)])} == {5}
    if kind in ("encoder", "decoder"):
        assert cells["diagonal"] == [(row, row) for row in rows]
        assert cells["previous"] == [(row, row - 1) for row in rows[1:]]
        assert cells["next"] == [(row, row + 1) for row in rows[:-1]]
    if kind == "sequence":  # within the question, and within the answer
        assert cells["previous"] == [(2, 1), (3, 2), (4, 3), (7, 6)]
        assert cells["next"] == [(1, 2), (2, 3), (3, 4), (6, 7)]


def test_a_longer_answer_has_a_row_for_each_of_its_tokens():
    assert [row for row, _ in role_cells("cross", 3, 5)["first"]] == [0, 1, 2, 3, 4]
    assert [row for row, _ in role_cells("sequence", 3, 5)["sep"]] == [4, 5, 6, 7, 8]
    assert role_cells("decoder", 3, 5)["previous"] == [(2, 1), (3, 2), (4, 3), (5, 4)]
    assert role_cells("cross", 3, 3)["first"] == role_cells("cross", 3)["first"]


@pytest.mark.parametrize(
    ("kind", "causal"),
    [
        ("encoder", None),
        ("encoder", True),
        ("decoder", None),
        ("decoder", False),
        ("cross", None),
        ("sequence", True),
    ],
)
def test_entropy_is_how_evenly_rows_spread_over_the_tokens_that_they_may_attend_to(kind, causal):
    """Only tokens of the key side count; a row that may attend to only one of them is left out."""
    weights = map_of(kind)
    found = head_scores(weights, kind, N_READ, answers=N_WRITTEN, causal=causal)["entropy"]
    hidden = kind == "decoder" if causal is None else causal and kind != "sequence"
    for head in range(3):
        evenness = []
        for b in range(2):
            n_rows = N_READ[b] if kind == "encoder" else N_WRITTEN[b]
            n_columns = N_WRITTEN[b] if kind == "decoder" else N_READ[b]
            for i in range(n_rows):
                up_to = i + 1 if hidden else n_columns
                seen = weights[b, head, writing_row(kind, b, i), 1 : up_to + 1]
                if len(seen) >= 2:
                    p = seen / seen.sum()
                    evenness.append(-sum(p * np.log(p)) / np.log(len(p)))
        assert found[head] == pytest.approx(np.mean(evenness))

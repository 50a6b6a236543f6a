"""Head scores, on maps whose score is known by hand."""

from __future__ import annotations

import numpy as np
import pytest

from transformer.insight.scores import clearest_head, mirror_scores, mirrored_cells


def test_each_row_of_a_reversed_word_has_its_letter_in_the_mirrored_column():
    """Columns of "cat": [SOS] c a t [EOS]. Row 0 writes t, row 1 writes a, row 2 writes c."""
    columns = ["[SOS]", *"cat", "[EOS]"]
    assert [(row, columns[column]) for row, column in mirrored_cells(3)] == [(0, "t"), (1, "a"), (2, "c")]
    assert mirrored_cells(1) == [(0, 1)]


def maps():
    """(2, 3, 4, 6): "cat" and "ox" under a perfect head, a head on [SOS], and one with known weights."""
    weights = np.zeros((2, 3, 4, 6))
    weights[0, 0, [0, 1, 2], [3, 2, 1]] = 1.0
    weights[1, 0, [0, 1], [2, 1]] = 1.0
    weights[:, 1, :, 0] = 1.0
    weights[0, 2, [0, 1, 2], [3, 2, 1]] = [0.5, 0.25, 0.125]
    weights[1, 2, [0, 1], [2, 1]] = [1.0, 0.0]
    weights[0, 2, :, 4] = 0.3  # on [EOS]: beside the mirror, and not divided out
    weights[:, 2, 3] = 9.0  # rows after the letters count for nothing
    return weights


def test_the_mirror_score_is_the_mean_weight_on_the_mirrored_letter_as_it_is():
    assert mirror_scores(maps(), [3, 2]) == pytest.approx([1.0, 0.0, (0.5 + 0.25 + 0.125 + 1.0 + 0.0) / 5])


def test_uniform_attention_scores_one_over_the_columns():
    assert mirror_scores(np.full((1, 2, 6, 7), 1 / 7), [5]) == pytest.approx([1 / 7, 1 / 7])


def test_the_clearest_head_is_the_highest_and_among_equals_the_last_layer_s_first():
    scores = {"decoder.0.cross": np.array([0.3, 0.9]), "decoder.1.cross": np.array([0.2, 0.4])}
    assert clearest_head(scores) == (("decoder.0.cross", 1), 0.9)


def test_the_shown_head_changes_only_when_another_is_clearly_ahead():
    shown = ("decoder.0.cross", 0)
    for lead, expected in ((0.05, shown), (0.2, ("decoder.0.cross", 1)), (-0.2, shown)):
        scores = {"decoder.0.cross": np.array([0.5, 0.5 + lead])}
        best, score = clearest_head(scores, shown)
        assert best == expected
        assert score == pytest.approx(0.5 if expected == shown else 0.5 + lead)
    assert clearest_head({"decoder.9.cross": np.array([0.1])}, shown) == (("decoder.9.cross", 0), 0.1)

"""Numbers that say what a head does, from its weights alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

MIRROR_THRESHOLD = 0.5
"""A head is called anti-diagonal from this mirror score on; below it there is no clear pattern."""
CLEARLY_AHEAD = 0.1
"""Another head must lead by this much before the large map changes to it, or by a third of its own score
where that is less: early on all scores are small."""


def mirrored_cells(n_letters: int) -> list[tuple[int, int]]:
    """Row and column of every mirrored letter of a reversed word, on a map of cross-attention.

    Row i writes letter i of the answer; column 0 is [SOS], so letter n - 1 - i stands in column n - i.
    """
    return [(i, n_letters - i) for i in range(n_letters)]


def mirror_scores(weights: Array, lengths: Sequence[int]) -> Array:
    """The mean weight that the letter rows put on the mirrored letter, as it is.

    Args:
        weights: (B, H, T, S) of one cross-attention, teacher-forced on the right answers.
        lengths: letters of each of the B words.

    Returns:
        (H,), 1 for a perfect anti-diagonal. Special tokens have no row here, and what is put on their
        columns counts as not mirrored.
    """
    total = np.zeros(weights.shape[1])
    for b, n in enumerate(lengths):
        rows, columns = np.array(mirrored_cells(n)).T
        total += weights[b][:, rows, columns].sum(axis=-1)
    return total / sum(lengths)


def clearest_head(
    scores: Mapping[str, Array], current: tuple[str, int] | None = None
) -> tuple[tuple[str, int], float]:
    """The head with the highest score, staying with the current one unless another is clearly ahead.

    Args:
        scores: site to (H,).
        current: (site, head) shown so far.

    Returns:
        (site, head) and its score.
    """
    ranked = {(site, head): float(s) for site, row in scores.items() for head, s in enumerate(row)}
    # Among equals the last layer's first head: it is the one that feeds the output.
    best = max(ranked, key=lambda key: (ranked[key], -key[1]))
    if current in ranked and ranked[best] - ranked[current] < min(CLEARLY_AHEAD, ranked[best] / 3):
        best = current
    return best, ranked[best]

"""By what a head finds its place: by the places of tokens, or by the tokens themselves."""

from __future__ import annotations

import numpy as np

from transformer.insight.scores import Array

LEAST_WORDS = 16
"""Fewest words from which the shares are computed."""


def origin_scores(weights: Array, queries: Array, keys: Array) -> dict[str, Array]:
    """How much of what a head does is explained by places alone, and by tokens alone.

    Each share is the adjusted R² (Ezekiel, 1930) of the weights explained by the means of groups: by the cell
    of the map (place), or by the pair of tokens at query and key, wherever they stand (token). It is 1 if the
    groups explain all. If they explain nothing it is 0 on average, however few words there are, before
    negative shares are set to 0. Both may be high, where tokens and places go together.

    Args:
        weights: (N, H, Q, K) of N questions of one length; NaN where a cell is blocked. A cell that is
            blocked in any head is left out.
        queries: (N, Q) ids of the tokens that look; -1 for special tokens, which are left out.
        keys: (N, K) ids of the tokens that are looked at; -1 for special tokens.

    Returns:
        place and token, (H,) each, from 0 to 1; 0 where all weights are equal, or each group is a
        single weight.
    """
    special = (queries < 0)[:, :, None] | (keys < 0)[:, None, :]  # (N, Q, K)
    counted = ~special & ~np.isnan(weights).any(axis=1)
    values = np.moveaxis(weights, 1, -1)[counted].astype(np.float64)  # (cells of all words, H)
    cells = np.broadcast_to(np.arange(special[0].size).reshape(special[0].shape), special.shape)[counted]
    vocabulary = int(max(queries.max(), keys.max(), 0)) + 1
    pairs = (queries[:, :, None] * vocabulary + keys[:, None, :])[counted]
    return {"place": _explained(values, cells), "token": _explained(values, pairs)}


def _explained(values: Array, groups: Array) -> Array:
    """(H,) adjusted R² of (n, H) values explained by the means of their groups, (n,)."""
    _, group = np.unique(groups, return_inverse=True)
    n, n_groups = len(values), int(group.max(initial=-1)) + 1
    if n <= n_groups:
        return np.zeros(values.shape[1])
    counts = np.bincount(group)
    means = np.stack([np.bincount(group, weights=column) / counts for column in values.T], axis=-1)
    within = np.square(values - means[group]).sum(axis=0) / (n - n_groups)
    total = np.square(values - values.mean(axis=0)).sum(axis=0) / (n - 1)
    shares: Array = np.where(total > 1e-12, 1 - within / np.maximum(total, 1e-12), 0.0)
    return shares.clip(0, 1)

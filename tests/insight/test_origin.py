"""By place or by token: the shares of weights that either explains, as regressions on groups find them."""

from __future__ import annotations

import numpy as np
import pytest

from transformer.insight.origin import origin_scores

N, H, Q, K, LETTERS = 60, 3, 5, 6, 7
RANDOM = np.random.default_rng(8)
QUERIES, KEYS = RANDOM.integers(0, LETTERS, (N, Q)), RANDOM.integers(0, LETTERS, (N, K))
CELL, PAIR = RANDOM.random((Q, K)), RANDOM.random((LETTERS, LETTERS))
BY_PLACE = np.broadcast_to(CELL, (N, Q, K))
BY_TOKEN = PAIR[QUERIES[:, :, None], KEYS[:, None, :]]
NOISE = RANDOM.random((N, Q, K))


def of(*maps):
    """Return the shares of these maps, one for each head."""
    return origin_scores(np.stack(maps, axis=1), QUERIES, KEYS)


def test_maps_that_depend_on_place_alone_on_tokens_alone_on_both_and_on_neither():
    found = of(BY_PLACE, BY_TOKEN, NOISE)
    assert found["place"] == pytest.approx([1, 0, 0], abs=0.05)
    assert found["token"] == pytest.approx([0, 1, 0], abs=0.05)
    both = of(BY_PLACE + BY_TOKEN, BY_PLACE + 2 * BY_TOKEN, BY_PLACE)
    share = CELL.var() / (CELL.var() + PAIR.var())
    assert both["place"][0] == pytest.approx(share, abs=0.1)
    assert both["token"][0] == pytest.approx(1 - share, abs=0.1)
    assert both["token"][1] > both["token"][0] > both["token"][2]


def test_both_shares_are_the_adjusted_r2_of_regressions_on_indicators():
    maps = np.stack([BY_PLACE + NOISE, BY_TOKEN + 0.3 * NOISE, NOISE], axis=1)
    blocked = np.triu(np.ones((Q, K), dtype=bool), 2)
    maps[:, :, blocked] = np.nan
    queries, keys = QUERIES.copy(), KEYS.copy()
    queries[:, 0] = keys[:, 2] = -1  # special tokens
    keys[5:9, 4] = -1  # of shorter answers
    found = origin_scores(maps, queries, keys)
    rows = [
        (n, q, k)
        for n in range(N)
        for q in range(Q)
        for k in range(K)
        if not blocked[q, k] and queries[n, q] >= 0 and keys[n, k] >= 0
    ]
    groups = {
        "place": [(q, k) for _, q, k in rows],
        "token": [(queries[n, q], keys[n, k]) for n, q, k in rows],
    }
    for name, of_row in groups.items():
        known = sorted(set(of_row))
        indicators = np.array([[one == other for other in known] for one in of_row], dtype=float)
        for head in range(H):
            y = np.array([maps[n, head, q, k] for n, q, k in rows])
            fitted = indicators @ np.linalg.lstsq(indicators, y, rcond=None)[0]
            within = np.square(y - fitted).sum() / (len(y) - len(known))
            total = np.square(y - y.mean()).sum() / (len(y) - 1)
            assert found[name][head] == pytest.approx(max(0.0, 1 - within / total), abs=1e-6)


def test_equal_weights_and_too_few_words_have_no_shares():
    assert of(np.full((N, Q, K), 0.25))["place"].tolist() == [0]
    one = origin_scores(BY_TOKEN[:1, None], QUERIES[:1], KEYS[:1])
    assert one["place"].tolist() == [0]
    nothing = origin_scores(BY_TOKEN[:, None], np.full_like(QUERIES, -1), KEYS)
    assert nothing["place"].tolist() == [0]

"""Scores that describe a head, computed from its weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Links = tuple[tuple[int, ...], ...]
"""For each token of an answer, the positions in the question that it needs; position 0 is [SOS]."""

ROLES: dict[str, str] = {
    "mirror": "reads backwards",
    "prefix": "finds what came after (induction)",
    "gold": "looks up what it writes",
    "diagonal": "looks at the same place",
    "previous": "looks one token back",
    "next": "looks one token ahead",
    "same": "looks at the same token before",
    "first": "looks at [SOS]",
    "eos": "looks at [EOS]",
    "sep": "looks at [SEP]",
    "first_token": "looks at the first token",
}
"""The name of each role. Of equal scores, the role that comes first names the head."""
FOCUS = "focus"
"""The score of tasks without a known alignment: the highest weight of a row, a mean over rows."""
THRESHOLD = 0.5
"""Least score with which a head has a role; below it there is no clear pattern."""
CLEARLY_AHEAD = 0.1
"""Lead in score at which the large map changes to another head. If less, a third of that head's score is
enough, since all scores are small early in training."""


def first_row(kind: str, n_letters: int) -> int:
    """The row of the first letter: where it is written (cross, sequence) or read (the others)."""
    return {"cross": 0, "sequence": n_letters + 1}.get(kind, 1)


def gold_cells(kind: str, n_letters: int, links: Links) -> list[tuple[int, int]]:
    """Row and column of every cell of the gold alignment.

    Args:
        kind: encoder (of an encoder-only model, where it writes), cross or sequence.
        n_letters: tokens of the question.
        links: for each token of the answer, the columns that it needs.
    """
    first = first_row(kind, n_letters)
    return [(first + i, column) for i, columns in enumerate(links) for column in columns]


def role_cells(kind: str, n_letters: int, n_answer: int | None = None) -> dict[str, list[tuple[int, int]]]:
    """Row and column of every cell that counts for a role, on the teacher-forced map of one word.

    Letters are counted from 0. Letter i of the word is at position i + 1, after [SOS], and so is letter i of
    the answer among the decoder's inputs. In cross-attention, letter i belongs to row i, which
    writes it and reads the token before it. In a sequence of question, [SEP] and answer, [SEP] takes the
    position of [EOS], and the rows used are those that write letters; for previous and next, those that read
    letters. Of an encoder or a decoder, rows that read special tokens are left out; of cross-attention and,
    but for previous and next, of a sequence, the row that writes [EOS]. One cell can count for two roles, as
    in the middle of a word.

    Args:
        kind: encoder, decoder (its self-attention), cross or sequence.
        n_letters: number of letters (or tokens) of the question.
        n_answer: number of tokens of the answer, given where it may differ from that of the question. Their
            positions then do not correspond, so mirror is left out, and diagonal too where a map spans both.

    Returns:
        The cells of each role that this kind of attention can have.
    """
    first = first_row(kind, n_letters)
    letters = range(n_letters if n_answer is None or kind == "encoder" else n_answer)
    cells = {
        "mirror": [(first + i, n_letters - i) for i in letters],  # column 0 is [SOS]
        "diagonal": [(first + i, i + 1) for i in letters],
        "previous": [(first + i, i) for i in letters[1:]],
        "next": [(first + i, i + 2) for i in letters[:-1]],
        "first": [(first + i, 0) for i in letters],
        "eos": [(first + i, n_letters + 1) for i in letters],
        "sep": [(first + i, n_letters + 1) for i in letters],
    }
    if kind == "sequence":  # the rows of letters that are read, of the question and of the answer
        behind = n_letters + 2
        pairs = [(i, i + 1) for i in (*range(1, n_letters), *range(behind, behind + len(letters) - 1))]
        cells["previous"] = [(after, before) for before, after in pairs]
        cells["next"] = pairs
    if n_answer is not None:
        del cells["mirror"]
        if kind in ("cross", "sequence"):
            del cells["diagonal"]
    # A decoder cannot attend to tokens that it has not written yet, and its inputs contain no [EOS].
    absent = {
        "encoder": ("sep",),
        "decoder": ("mirror", "eos", "sep"),
        "cross": ("previous", "next", "sep"),
        "sequence": ("eos",),
    }[kind]
    return {role: chosen for role, chosen in cells.items() if role not in absent}


def token_cells(tokens: Sequence[str | int | None]) -> dict[str, dict[int, list[int]]]:
    """Where a self-attention looks if it goes by earlier occurrences of each row's own token.

    Args:
        tokens: of all positions; None for special tokens, whose rows have no cells.

    Returns:
        Columns by score and row. prefix: the token after the last earlier occurrence, if that token comes
        before the row itself (the prefix matching of induction heads: Olsson et al., 2022); same: all
        earlier occurrences.
    """
    prefix: dict[int, list[int]] = {}
    same: dict[int, list[int]] = {}
    seen: dict[str | int, list[int]] = {}
    for row, token in enumerate(tokens):
        if token is None:
            continue
        before = seen.setdefault(token, [])
        if before:
            same[row] = list(before)
            if before[-1] + 1 < row:
                prefix[row] = [before[-1] + 1]
        before.append(row)
    return {"prefix": prefix, "same": same}


@dataclass(frozen=True, kw_only=True)
class _Places:
    """The cells of the maps of a batch of words from which scores are computed."""

    counts: dict[str, int]
    """Number of rows that have cells of each role."""
    roles: Array
    """(B, Q * K, roles) of 0 and 1: which cells count for each role."""
    rows: tuple[Array, Array]
    """Index of the word and of the row in its map, for each of the R letter rows: two arrays of (R,)."""
    letters: Array
    """(K, 1, R) of 0 and 1: the columns of letters that each of these rows may attend to."""


@lru_cache(maxsize=16)  # every measurement has the same arguments, for each kind of attention
def _places(
    kind: str,
    causal: bool,
    lengths: tuple[int, ...],
    answers: tuple[int, ...] | None,
    links: tuple[Links, ...] | None,
    tokens: tuple[tuple[int | None, ...], ...] | None,
    n_rows: int,
    n_columns: int,
) -> _Places:
    """The cells of the maps of these words from which scores are computed."""
    words = [role_cells(kind, n, answers[b] if answers else None) for b, n in enumerate(lengths)]
    if links is not None:
        for n, cells, gold in zip(lengths, words, links, strict=True):
            cells["gold"] = gold_cells(kind, n, gold)
    if tokens is not None:
        for cells, of in zip(words, map(token_cells, tokens), strict=True):
            for role, rows in of.items():
                cells[role] = [(row, column) for row, columns in rows.items() for column in columns]
    counts = {role: sum(len({row for row, _ in cells[role]}) for cells in words) for role in words[0]}
    roles = np.zeros((len(lengths), n_rows, n_columns, len(counts)), dtype=np.float32)
    letters = np.zeros((len(lengths), n_rows, n_columns), dtype=np.float32)
    for b, cells in enumerate(words):
        for r, role in enumerate(counts):
            for row, column in cells[role]:
                roles[b, row, column, r] = 1
        for i, (row, _) in enumerate(cells["first"]):
            # Letters that the row may attend to: up to its own in a causal encoder or decoder, otherwise all
            # (in a sequence, all of the question).
            n = len(cells["first"]) if kind == "decoder" else lengths[b]
            letters[b, row, 1 : 1 + (i + 1 if causal and kind in ("encoder", "decoder") else n)] = 1
    of_word, at_row = np.nonzero(letters.any(axis=-1))
    return _Places(
        counts=counts,
        roles=roles.reshape(len(lengths), n_rows * n_columns, -1),
        rows=(of_word, at_row),
        letters=letters[of_word, at_row].T[:, None].copy(),
    )


def head_scores(
    weights: Array,
    kind: str,
    lengths: Sequence[int],
    *,
    causal: bool | None = None,
    answers: Sequence[int] | None = None,
    links: Sequence[Links] | None = None,
    tokens: Sequence[Sequence[int | None]] | None = None,
) -> dict[str, Array]:
    """Scores of each head of one attention: means over the letter rows of all words.

    Args:
        weights: (B, H, Q, K) of one attention, teacher-forced on the right answers; 0 where blocked.
        kind: encoder, decoder (its self-attention), cross or sequence (question, [SEP] and answer in one).
        lengths: letters (or tokens) of each of the B words, at least 3 where they are letters.
        causal: whether later columns are blocked; by default only in a decoder's self-attention.
        answers: tokens of each answer, where these may differ from the lengths.
        links: the gold alignment of each word: for each token of its answer, the columns that it needs.
        tokens: of a self-attention, the ids of each word's positions; None for special tokens.

    Returns:
        (H,) in 0..1 for each score. The score of a role is the mean weight of a row on the cells below, over
        the rows that have such cells; 0 if there are none:

        - mirror: the mirrored letter (encoder, cross, sequence; not where answers differ in length);
        - gold: all columns that a row needs together, over the rows that need any (where links are given);
        - diagonal: the letter at the same place (not across sides where answers differ in length);
        - previous: the letter just before, from the second on (not in cross-attention);
        - next: the letter just after, up to the last but one (the same; 0 where the causal mask is on);
        - prefix: the token after the last earlier occurrence of the row's token (where tokens are given);
        - same: all earlier occurrences of the row's token (where tokens are given);
        - first: [SOS];
        - eos: [EOS] (encoder, cross);
        - sep: [SEP] (sequence).

        Two further scores are not roles. focus is the highest weight of a row, on any column. entropy is how
        evenly a row spreads its weight over the letters that it may attend to: 0 if all is on one letter, 1
        if it is uniform. It is the entropy of the weights on letters, rescaled to sum to 1, divided by its
        highest possible value; special tokens are left out because idle heads attend to them. Rows with fewer
        than two such letters are left out, and entropy is 0 if no rows remain. A row with no weight on any
        letter counts as 1.
    """
    n_words, n_heads, n_rows, n_columns = weights.shape
    causal = kind == "decoder" if causal is None else causal
    places = _places(
        kind,
        causal,
        tuple(lengths),
        None if answers is None else tuple(answers),
        None if links is None else tuple(links),
        None if tokens is None else tuple(map(tuple, tokens)),
        n_rows,
        n_columns,
    )
    sums = (weights.reshape(n_words, n_heads, -1) @ places.roles).sum(axis=0)  # (H, roles)
    scores = {role: sums[:, r] / max(n, 1) for r, (role, n) in enumerate(places.counts.items())}
    word, row = places.rows
    # Columns first and contiguous: a sum over the first axis is many times faster than over the last.
    w = np.ascontiguousarray(weights[word, :, row].transpose(2, 1, 0))  # (K, H, R)
    scores["focus"] = w.max(axis=0).mean(axis=-1)
    scores["entropy"] = _entropy(w, places.letters)
    return scores


def pattern_scores(
    weights: Sequence[Array],
    tokens: Sequence[Sequence[str | None] | None] = (),
    rest: Sequence[bool] = (),
) -> dict[str, Array]:
    """Scores of each head of any attention, whatever its tokens: means over the rows of all its maps.

    Args:
        weights: one (H, Q, K) array for each input; NaN where a cell is blocked. Rows with fewer than two
            open cells are left out, since their weights are fixed.
        tokens: of each input, where queries and keys are the same tokens: these, with None for special
            tokens; else None.
        rest: of each input, whether the last column is no key, but what a row gives to none; only the entropy
            counts it.

    Returns:
        (H,) in 0..1 for each score, named as by `head_scores`: diagonal, previous and next (of maps with as
        many rows as columns), focus and entropy (over all open cells), prefix and same (if some token occurs
        again), and first_token (the weight on the first key). A score is 0 if no row counts for it.
    """
    sums: dict[str, list[Array]] = {}
    for i, maps in enumerate(weights):
        open_cells = ~np.isnan(maps)
        n_open = open_cells.sum(axis=-1)  # (H, Q)
        w, free = np.where(open_cells, maps, 0.0), n_open >= 2
        logs = np.log(np.maximum(w, np.finfo(np.float32).tiny))
        entropy = (-(w * logs).sum(axis=-1) / np.log(np.maximum(n_open, 2))).clip(0, 1)
        w = w[:, :, :-1] if i < len(rest) and rest[i] else w
        rows = np.arange(w.shape[1])
        scores = {"first_token": w[:, :, 0], "focus": w.max(axis=-1), "entropy": entropy}
        if w.shape[1] == w.shape[2]:
            scores["diagonal"] = w[:, rows, rows]
            scores["previous"] = np.where(rows >= 1, w[:, rows, np.maximum(rows - 1, 0)], np.nan)
            last = w.shape[1] - 1
            scores["next"] = np.where(rows < last, w[:, rows, np.minimum(rows + 1, last)], np.nan)
        if i < len(tokens) and (token := tokens[i]) is not None:
            for name, cells in token_cells(token).items():
                if cells:
                    scores[name] = np.full(w.shape[:2], np.nan)
                for row, columns in cells.items():
                    scores[name][:, row] = w[:, row][:, columns].sum(axis=-1)
        for name, values in scores.items():
            sums.setdefault(name, []).append(np.where(free, values, np.nan))
    return {name: _known_mean(np.concatenate(rows, axis=1)) for name, rows in sums.items()}


def _known_mean(values: Array) -> Array:
    """(H,) means over the last axis of (H, N), ignoring NaN; 0 where all values are NaN."""
    has_value = ~np.isnan(values)
    mean: Array = np.where(has_value, values, 0.0).sum(axis=1) / np.maximum(has_value.sum(axis=1), 1)
    return mean


def _entropy(weights: Array, letters: Array) -> Array:
    """(H,) mean normalised entropy of the rows of weights (K, H, R), over the cells set in (K, 1, R)."""
    some = letters.sum(axis=0)[0] >= 2
    if not some.any():
        return np.zeros(weights.shape[1], dtype=weights.dtype)
    if not some.all():
        weights, letters = weights[:, :, some], letters[:, :, some]
    w = weights * letters
    total = w.sum(axis=0)  # (H, R)
    divisor = np.where(total == 0, 1, total)
    # With p = w / total, the entropy -sum(p log p) is log(total) - sum(w log w) / total.
    logs = np.log(np.maximum(w, np.finfo(np.float32).tiny))
    entropy = np.log(divisor) - (w * logs).sum(axis=0) / divisor
    evenness = np.where(total == 0, 1, entropy / np.log(letters.sum(axis=0)))
    mean: Array = evenness.clip(0, 1).mean(axis=-1)
    return mean


def role_of(scores: Mapping[str, float]) -> str | None:
    """The role of a head: the one with the highest score, if that score reaches `THRESHOLD`.

    Args:
        scores: scores of one head, named as by `head_scores`, at least one of them of a role; scores that are
            not roles are ignored.

    Returns:
        A key of `ROLES`, the first one if several are equal; None if no score reaches `THRESHOLD`.
    """
    role = max((role for role in ROLES if role in scores), key=lambda role: scores[role])
    return role if scores[role] >= THRESHOLD else None


def clearest_head(
    scores: Mapping[str, Array], current: tuple[str, int] | None = None
) -> tuple[tuple[str, int], float]:
    """The head with the highest score, staying with the current one unless another is clearly ahead, or only
    another reaches `THRESHOLD`.

    Args:
        scores: (H,) for each site.
        current: (site, head) shown so far; ignored if it is not in `scores`.

    Returns:
        (site, head) and its score.
    """
    ranked = {(site, head): float(s) for site, row in scores.items() for head, s in enumerate(row)}
    # Ties go to the lowest head number, then to the site that comes first in `scores`.
    best = max(ranked, key=lambda key: (ranked[key], -key[1]))
    if current in ranked and (ranked[best] >= THRESHOLD) == (ranked[current] >= THRESHOLD):
        if ranked[best] - ranked[current] < min(CLEARLY_AHEAD, ranked[best] / 3):
            best = current
    return best, ranked[best]

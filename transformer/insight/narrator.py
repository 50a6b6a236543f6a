"""Describes one head's map of one word in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transformer.insight.scores import Array, Links, first_row, gold_cells, role_cells

EVERYWHERE = 0.3
"""A row whose highest weight is below this looks everywhere."""

_ROLES = {
    "encoder": {
        "diagonal": "itself",
        "previous": "the letter before",
        "next": "the letter after",
        "mirror": "the mirrored letter",
    },
    "decoder": {
        "diagonal": "the letter just read",
        "previous": "the letter before that",
        "next": "the letter to write next",
    },
    "cross": {"mirror": "the letter to write next", "diagonal": "the letter at the same place"},
    "sequence": {"mirror": "the letter to write next", "diagonal": "the letter at the same place"},
}


def narrate(
    weights: Array,
    kind: str,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    n_letters: int,
    n_answer: int | None = None,
    links: Links | None = None,
    row: int | None = None,
) -> str:
    """Name the strongest cell of one row of a map, and what that cell is; or say that it looks everywhere.

    Args:
        weights: (Q, K) of one head; NaN where a cell is blocked.
        kind: encoder, decoder (its self-attention), cross or sequence.
        rows: the Q query tokens; of a decoder or of cross-attention, the decoder's inputs.
        columns: the K key tokens.
        n_letters: number of letters, or tokens, of the question.
        n_answer: number of tokens of the answer, where it can differ from `n_letters`; the sentence then
            says "token" instead of "letter".
        links: the gold alignment, where the sentence should name aligned tokens: for each token of the
            answer, the columns that it needs.
        row: the row to describe, from 0; by default, the first letter row with the highest weight.
    """
    strongest = row is None
    if row is None:
        first = first_row(kind, n_letters)
        # If the output ended at once, there are no letter rows: then any row can be named.
        n = n_letters if n_answer is None or kind == "encoder" else n_answer
        letter_rows = range(first, min(first + n, len(rows))) or range(len(rows))
        row = max(letter_rows, key=lambda i: float(np.nanmax(weights[i])))
    column = int(np.nanargmax(weights[row]))
    weight = float(weights[row, column])
    noun = "letter" if n_answer is None else "token"
    opening = f"{_opening(kind, rows, row, n_letters, noun)} this head"
    if weight < EVERYWHERE:
        return f"{opening} looks everywhere: nothing gets more than {_percent(weight)}."
    if strongest:  # said, because the headline's share is the mean over all rows
        opening = f"In its strongest row, {opening[0].lower()}{opening[1:]}"
    sentence = f"{opening} puts {_percent(weight)} on {_place(kind, columns, column, n_letters, noun)}"
    if _is_special(columns[column]):
        return f"{sentence}: a special token."
    cells = role_cells(kind, n_letters, n_answer)
    roles = [
        words.replace("letter", noun)
        for role, words in _ROLES[kind].items()
        if (row, column) in cells.get(role, ())
    ]
    if links is not None and kind != "decoder" and (row, column) in gold_cells(kind, n_letters, links):
        roles = [f"an aligned {noun}"]
    return f"{sentence}: {' and '.join(roles)}." if roles else f"{sentence}."


def narrate_any(weights: Array, rows: Sequence[str], columns: Sequence[str]) -> str:
    """Name the strongest cell of a map of any model; among equal cells, that of the first row.

    Args:
        weights: (Q, K) of one head; NaN where a cell is blocked. A row with a single open cell always gives
            it 100%, so such rows are left out unless there are no others.
    """
    choice = (~np.isnan(weights)).sum(axis=1) >= 2
    shown = np.where(choice[:, None] | ~choice.any(), np.nan_to_num(weights), 0.0)
    row, column = (int(i) for i in np.unravel_index(int(shown.argmax()), shown.shape))
    return (
        f"Strongest: row {row + 1} (“{rows[row]}”) puts {_percent(float(shown[row, column]))} on "
        f"column {column + 1} (“{columns[column]}”)."
    )


def _opening(kind: str, rows: Sequence[str], row: int, n_letters: int, noun: str) -> str:
    if kind == "encoder" or (kind == "sequence" and row < first_row(kind, n_letters)):
        return f"For {_place(kind, rows, row, n_letters, noun)}"
    if kind == "cross":
        return f"For output {row + 1}"
    token = rows[row] if _is_special(rows[row]) else f"“{rows[row]}”"
    output = row + 1 - (first_row(kind, n_letters) if kind == "sequence" else 0)
    return f"After reading {token}, for output {output},"


def _place(kind: str, tokens: Sequence[str], i: int, n_letters: int, noun: str) -> str:
    """A token with its number: an output if the decoder wrote it, else a letter or token of the word."""
    if _is_special(tokens[i]):
        return tokens[i]
    if kind == "sequence" and i > n_letters:
        return f"output {i - n_letters - 1} (“{tokens[i]}”)"
    return f"{'output' if kind == 'decoder' else noun} {i} (“{tokens[i]}”)"


def _is_special(token: str) -> bool:
    return len(token) > 1 and token.startswith("[")


def _percent(weight: float) -> str:
    return f"{100 * weight:.0f}%"

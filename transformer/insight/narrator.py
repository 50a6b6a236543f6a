"""One head's map of one word, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transformer.insight.scores import Array, Links, first_row, gold_cells, role_cells

EVERYWHERE = 0.3
"""A row whose highest weight is below this looks everywhere."""

_ROLES = {
    "encoder": {"diagonal": "itself", "previous": "the letter before", "mirror": "the mirrored letter"},
    "decoder": {"diagonal": "the letter just read", "previous": "the letter before that"},
    "cross": {"mirror": "the mirrored letter", "diagonal": "the letter at the same place"},
    "sequence": {"mirror": "the mirrored letter", "diagonal": "the letter at the same place"},
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
    """Name the strongest cell of one row of a map, and what that cell is.

    Args:
        weights: (Q, K) of one head; NaN where the mask blocks.
        kind: encoder, decoder (its self-attention), cross or sequence.
        rows: the Q tokens that look; where a decoder looks, its inputs, each writing the next token.
        columns: the K tokens that are looked at.
        n_letters: of the word, or its tokens.
        n_answer: tokens of the answer, where these may be more or fewer; what is read are tokens then.
        links: the gold alignment, where it is to be told: of each token of the answer the columns it needs.
        row: which row; by default, of those that stand for a letter, the first with the highest weight.
    """
    if row is None:
        first = first_row(kind, n_letters)
        # An output that ended at once leaves the decoder no letter that it has read.
        n = n_letters if n_answer is None or kind == "encoder" else n_answer
        letter_rows = range(first, min(first + n, len(rows))) or range(len(rows))
        row = max(letter_rows, key=lambda i: float(np.nanmax(weights[i])))
    column = int(np.nanargmax(weights[row]))
    weight = float(weights[row, column])
    noun = "letter" if n_answer is None else "token"
    opening = f"{_opening(kind, rows, row, n_letters, noun)} this head"
    if weight < EVERYWHERE:
        return f"{opening} looks everywhere: nothing gets more than {_percent(weight)}."
    said = f"{opening} puts {_percent(weight)} on {_place(kind, columns, column, n_letters, noun)}"
    if _is_special(columns[column]):
        return f"{said}: a special token."
    cells = role_cells(kind, n_letters, n_answer)
    roles = [
        words.replace("letter", noun)
        for role, words in _ROLES[kind].items()
        if (row, column) in cells.get(role, ())
    ]
    if links is not None and kind != "decoder" and (row, column) in gold_cells(kind, n_letters, links):
        roles = [f"an aligned {noun}"]
    return f"{said}: {' and '.join(roles)}." if roles else f"{said}."


def narrate_any(weights: Array, rows: Sequence[str], columns: Sequence[str]) -> str:
    """Name the strongest cell of a map of any model; of equals the first row's.

    Args:
        weights: (Q, K) of one head; NaN where a cell is blocked. Rows with one open cell have no choice.
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
    """A token with its number; what the decoder has written are outputs, everything else is of the word."""
    if _is_special(tokens[i]):
        return tokens[i]
    if kind == "sequence" and i > n_letters:
        return f"output {i - n_letters - 1} (“{tokens[i]}”)"
    return f"{'output' if kind == 'decoder' else noun} {i} (“{tokens[i]}”)"


def _is_special(token: str) -> bool:
    return len(token) > 1 and token.startswith("[")


def _percent(weight: float) -> str:
    return f"{100 * weight:.0f}%"

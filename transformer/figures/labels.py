"""The labels of a map's axes: the tokens that the model attends to, and what each row reads and writes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from transformer.figures.picture import Array, isolated
from transformer.shared.attention_info import AttentionInfo


@dataclass(frozen=True, kw_only=True)
class MapAxes:
    """The labels of the two axes of a map; hashable, so that a layout is made once per word."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    row_title: str
    column_title: str
    causal: bool = False
    """Whether the upper triangle is blocked."""
    marked: bool = False
    """Whether its rows write tokens, some of which may be wrong."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.rows), len(self.columns)

    def check(self, weights: Array) -> None:
        """Raise ValueError if the shape of the weights does not fit the tokens."""
        if weights.shape != self.shape:
            raise ValueError(f"weights has shape {weights.shape}, but the tokens need {self.shape}.")


@lru_cache(maxsize=256)
def map_axes(
    axes: AttentionInfo, src_tokens: tuple[str, ...], tgt_tokens: tuple[str, ...], expected: tuple[str, ...]
) -> MapAxes:
    """The labels of one attention's maps of a word: the tokens that the model actually reads.

    Args:
        src_tokens: tokens that the encoder reads.
        tgt_tokens: tokens that the decoder reads; the same as `src_tokens` in a model with only one stack.
        expected: for each row, the token that it should write; empty where it should write none. Not used
            if the rows do not write.
    """
    noun = called(src_tokens)
    src_tokens, tgt_tokens, expected = (
        tuple(map(isolated, tokens)) for tokens in (src_tokens, tgt_tokens, expected)
    )
    question = "word" if noun == "letter" else "question"
    column_titles = {
        "src": f"{noun}s of the {question}",
        "tgt": f"{noun}s of the answer",
        "seq": f"{question}, then answer so far",
    }
    rows = src_tokens if axes.query == "src" else tgt_tokens
    if axes.writes:
        short = [to.removeprefix("output ") for to in expected]  # of a mean map: its number
        rows = tuple(f"{read} → {to}" if to else read for read, to in zip(rows, short, strict=True))
    row_title = "just written → to write"
    if axes.query == "src":
        row_title = f"{noun} → becomes" if axes.writes else f"each {noun}"
    return MapAxes(
        rows=rows,
        columns=src_tokens if axes.key == "src" else tgt_tokens,
        row_title=row_title,
        column_title=column_titles[axes.key],
        causal=axes.causal,
        marked=axes.writes,
    )


def called(tokens: Sequence[str]) -> str:
    """The noun for one of these tokens: letter, where all are letters a to z, places of letters (see
    `mean_batch`) or special, but not only unknown; else token."""
    plain = [token for token in tokens if not re.match(r"\[.|(letter|output) \d", token)]
    letters = all(len(token) == 1 and "a" <= token <= "z" for token in plain)
    return "letter" if letters and (plain or "[UNK]" not in tokens) else "token"


def wrong_predictions(
    axes: AttentionInfo, expected: Sequence[str], predicted: Sequence[str]
) -> dict[int, str]:
    """Row to its predicted token, for each row that should write another; empty if the rows do not write."""
    if not axes.writes:
        return {}
    pairs = zip(expected, predicted, strict=True)
    return {i: would for i, (right, would) in enumerate(pairs) if right and right != would}

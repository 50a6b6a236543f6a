"""One example as text: the question, its answer, and which units of one come from which of the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transformer.tasks.tokenizer import TextTokenizer
from transformer.tasks.writing import Writing

Span = tuple[int, int]
Links = tuple[tuple[int, ...], ...]
"""For each unit of the target, the units of the source that it comes from; empty where it comes from none."""


@dataclass(frozen=True)
class Pair:
    """A question and its right answer, each as its side's `Writing` spells it."""

    source: str
    target: str
    links: Links | None = None
    """The gold alignment, by units of both sides, counted from 0; None where it is not known."""
    pattern: str = ""
    """What kind of example it is, such as "negation"; empty where there are no kinds."""
    held_out: bool = False
    """Kept from training."""

    def __post_init__(self) -> None:
        if not self.source or not self.target:
            raise ValueError(f"A pair needs text on both sides: {self.source!r}, {self.target!r}.")


def token_links(
    pair: Pair, src: tuple[Writing, TextTokenizer], tgt: tuple[Writing, TextTokenizer]
) -> Links | None:
    """For each token of the answer, [EOS] left out, positions of tokens of the question, [SOS] being 0.

    A token that is part of a unit has the links of the whole unit; one that covers several has all of theirs.
    None where the alignment is not known.
    """
    if pair.links is None:
        return None
    columns = _overlapping(src[0].spans(pair.source), src[1].spans(pair.source))
    units = _overlapping(tgt[1].spans(pair.target), tgt[0].spans(pair.target))
    found = []
    for of_token in units:
        needed = {place for unit in of_token for place in pair.links[unit]}
        found.append(tuple(sorted({column + 1 for place in needed for column in columns[place]})))
    return tuple(found)


def _overlapping(spans: Sequence[Span], others: Sequence[Span]) -> list[list[int]]:
    """For each span, which of the others share a character with it."""
    return [[i for i, (begin, end) in enumerate(others) if begin < to and end > at] for at, to in spans]

"""The two axes of an attention: which tokens are rows and columns, and why a cell is blocked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

OPEN, FUTURE, PADDING, BOTH, BY_HAND = range(5)
"""Codes of a cell: open; blocked by the causal mask, by the padding mask, by both; blocked by hand."""
REASONS = {
    FUTURE: "blocked: causal mask",
    PADDING: "blocked: padding mask",
    BOTH: "blocked: causal and padding mask",
    BY_HAND: "blocked by hand",
}
"""The name of each code of a blocked cell."""


@dataclass(frozen=True, kw_only=True)
class AttentionInfo:
    """What the rows and the columns of one attention are, and which masks block its cells."""

    query: str
    """The side of the rows: src, tgt, or seq (question, separator and answer in one); in a model of
    the user's own a name in `Word.sides`."""
    key: str
    """The side of the columns, by the same names."""
    writes: bool
    """Whether its rows write tokens; of a sequence, those from [SEP] on."""
    causal: bool
    """Whether the causal mask blocks later columns; in a model of the user's own, whether no row has looked
    at them so far."""
    padding: bool
    """Whether the padding mask blocks [PAD]; False in a model of the user's own, where this is not known."""
    group: str = ""
    """In a model of the user's own: the name of the attentions that are shown together."""

    @property
    def kind(self) -> str:
        """cross, encoder, decoder or sequence; in a model of the user's own its group."""
        if self.group:
            return self.group
        if self.query != self.key:
            return "cross"
        return {"src": "encoder", "tgt": "decoder", "seq": "sequence"}[self.query]


def reading_sites(axes: Mapping[str, AttentionInfo]) -> list[str]:
    """Where the answer reads the question: cross-attention, or every attention if the model has none."""
    cross = [site for site, one in axes.items() if one.kind == "cross"]
    return cross or list(axes)


def is_own(axes: Mapping[str, AttentionInfo]) -> bool:
    """Whether these are the attentions of a model of the user's own."""
    return any(one.group for one in axes.values())


def sites_of(axes: Mapping[str, AttentionInfo], kind: str) -> list[str]:
    """The sites of one kind of attention, in the order of the forward pass."""
    return [site for site, one in axes.items() if one.kind == kind]

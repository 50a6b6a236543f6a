"""One beam of a beam search after one of its tokens: data alone, without torch."""

from __future__ import annotations

from dataclasses import dataclass

CHOSEN, FINISHED, KEPT, PRUNED = "chosen", "finished", "kept", "pruned"


@dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """A node of the tree of a beam search."""

    step: int
    """Tokens so far."""
    parent: int | None
    """The node that it continues; None at the first token."""
    token: int
    """Id of its newest token."""
    log_probability: float
    """Of that token after those before it."""
    total: float
    """Of all its tokens so far."""
    score: float
    """What it would have as an answer: the total, divided by the penalty for its length."""
    rank: int
    """Its place in the beam at this step; 1 is the likeliest."""
    ended: bool
    """Whether its newest token is [EOS]."""
    fate: str
    """chosen: part of the answer; finished: it ended, but is not the answer; pruned: all that came of it fell
    out of the beam; kept: something of it ended, or was open to the last."""

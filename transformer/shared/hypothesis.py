"""The hypotheses of a beam search as plain data, without torch."""

from __future__ import annotations

from dataclasses import dataclass

CHOSEN, FINISHED, KEPT, PRUNED = "chosen", "finished", "kept", "pruned"


@dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """A node of the tree of a beam search."""

    step: int
    """Number of tokens so far."""
    parent: int | None
    """Index of the node that it continues; None at the first token."""
    token: int
    """Id of its newest token."""
    log_probability: float
    """Log-probability of that token, given those before it."""
    total: float
    """Sum of the log-probabilities of all its tokens so far."""
    score: float
    """Its score as an answer: the total, divided by the penalty for its length."""
    rank: int
    """Its place in the beam at this step; 1 is the likeliest."""
    ended: bool
    """Whether its newest token is [EOS]."""
    fate: str
    """chosen: on the path to the answer; finished: ended with [EOS], but is not the answer; kept: one of its
    continuations ended, or it or one of them was open when the search stopped; pruned: all others."""

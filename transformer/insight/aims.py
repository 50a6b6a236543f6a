"""The goal of the heads in each task, in words."""

from __future__ import annotations

from dataclasses import dataclass

from transformer.insight.scores import THRESHOLD


@dataclass(frozen=True, kw_only=True)
class Aim:
    """One thing that heads may be to find."""

    target: str
    """What the score is the share of weight on."""
    title: str
    """Of the scores of all heads."""
    turned: str
    """What a head has done whose score has reached `THRESHOLD`."""
    found: str
    """How such a head is called."""
    reads: str
    """What that means."""
    counts: str
    """What it takes."""


AIMS = {
    "mirror": Aim(
        target="the mirrored letter",
        title="Attention mass on the mirrored letters",
        turned="turned anti-diagonal",
        found="anti-diagonal",
        reads="it reads the word backwards",
        counts=f"at {THRESHOLD:.0%} it counts as anti-diagonal",
    ),
    "gold": Aim(
        target="the aligned tokens",
        title="Attention mass on the gold links",
        turned="found the alignment",
        found="the alignment",
        reads="each row attends to what it writes next",
        counts=f"at {THRESHOLD:.0%} it counts as the alignment",
    ),
    "focus": Aim(
        target="the strongest token of each row",
        title="Highest weight of a row",
        turned="came into focus",
        found="in focus",
        reads="each row attends to one token",
        counts=f"at {THRESHOLD:.0%} it counts as in focus",
    ),
}
"""By the score that a task aims at: the mirrored letter, the alignment or, where none is known, any token."""

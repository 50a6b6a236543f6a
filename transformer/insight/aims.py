"""The goal of the heads in each task, in words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Aim:
    """The goal of the heads in one kind of task."""

    target: str
    """The cells whose share of the weight is the score."""
    title: str
    """Title of the scores of all heads."""
    turned: str
    """Said of a head whose score has reached the threshold."""
    does: str
    """Said of what such a head does."""


AIMS = {
    "mirror": Aim(
        target="the mirrored letter",
        title="Attention mass on the mirrored letters",
        turned="turned anti-diagonal",
        does="reads the word backwards",
    ),
    "gold": Aim(
        target="the aligned tokens",
        title="Attention mass on the gold links",
        turned="found the alignment",
        does="attends to what it writes next",
    ),
    "focus": Aim(
        target="the strongest token of each row",
        title="Highest weight of a row",
        turned="came into focus",
        does="attends to one token in each row",
    ),
}
"""By the score that a task aims at: the mirrored letter, the alignment or, where none is known, any token."""

"""The results of a model on held-out examples, as numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

MARKS = (0.5, 0.9, 0.99)
"""Shares of held-out words answered exactly. For each, a run notes the first step at which an evaluation of
all held-out words reaches it."""

N_LIVE = 200
"""Number of held-out examples that every evaluation asks (fewer if fewer are held out). All of them are asked
at the last step, and to confirm a new mark or the goal."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Held-out results at one step."""

    step: int
    right: int
    """Words whose output is a right answer, to the last letter, and stops."""
    total: int
    by_length: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Length of the question, in units, to (right, asked)."""
    loss: float
    """Cross-entropy per token, the model reading the right answer so far (teacher-forced)."""
    free_loss: float
    """Cross-entropy per token, the model reading what it has written itself so far (free-running, greedy)."""
    token_accuracy: float
    """Teacher-forced share of right tokens, padding left out."""
    live: tuple[int, int] | None = None
    """(right, asked) of the words that every evaluation asks; None if this one asked no others."""
    everyday: tuple[int, int] | None = None
    """(right, asked) of the everyday words; None if the task has none, or they were not asked."""
    bleu: float | None = None
    """Corpus BLEU of the outputs, 0 to 100, where answers are sentences (Papineni et al., 2002)."""
    chrf: float | None = None
    """Corpus chrF of these outputs, 0 to 100 (Popović, 2015)."""
    samples: tuple[tuple[str, str], ...] = ()
    """The first few (question, output) pairs, where answers are sentences."""

    @property
    def exact(self) -> float:
        """Share of words that are right to the last letter; `total` must not be 0."""
        return self.right / self.total

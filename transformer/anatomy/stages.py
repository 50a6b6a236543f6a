"""The forward pass stage by stage: what is computed, from what, and what it gives for one chosen cell."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from transformer.anatomy.attending import ATTENDING
from transformer.anatomy.breaking import laid_out
from transformer.anatomy.entering import ENTERING
from transformer.anatomy.leaving import LEAVING
from transformer.anatomy.panels import Focus, Panel, Stage
from transformer.anatomy.positions import position_table, positions
from transformer.anatomy.spot import Spot
from transformer.anatomy.writing import WRITING

if TYPE_CHECKING:
    from transformer.anatomy.passes import ForwardTrace

__all__ = [
    "CHAPTERS",
    "STAGES",
    "Focus",
    "Panel",
    "Stage",
    "chapters",
    "position_table",
    "positions",
    "stages",
]

STAGES = {
    "tokens": "Tokens",
    "embedding": "Embeddings",
    "positions": "Positions",
    "plain": "Attention without parameters",
    "input": "What goes in",
    "qkv": "Query, key and value",
    "scores_row": "One query against every key",
    "scores": "All scores",
    "scale": "Scaled",
    "mask": "Mask",
    "masked": "Masked scores",
    "weights": "Softmax",
    "mixed": "Weighted sum of values",
    "heads": "Heads joined",
    "residual": "Residual and norm",
    "feed_forward": "Feed-forward",
    "stack": "Through the stack",
    "logits": "Logits",
    "probabilities": "Probabilities",
}
"""Key to title of the stages of every chapter but the last, in order."""
_MAKERS = dict(zip(STAGES, (*ENTERING, *ATTENDING, *LEAVING, *WRITING), strict=True))
CHAPTERS = {
    "encoder": "Encoder self-attention",
    "decoder": "Decoder self-attention",
    "cross": "Cross-attention",
    "sequence": "Self-attention",
    "positions": "Positions",
}
"""Every chapter that a model can have, by the kind of attention; positions is of no attention."""


def chapters(kinds: Collection[str]) -> list[str]:
    """The chapters of a model with these kinds of attention, in the order of its forward pass."""
    return [chapter for chapter in CHAPTERS if chapter in kinds or chapter == "positions"]


def stages(
    trace: ForwardTrace, site: str, head: int, focus: Focus, only: Collection[str] = tuple(STAGES)
) -> tuple[Stage, ...]:
    """Every stage from tokens to probabilities, as one head of one attention sees it.

    Args:
        site: such as decoder.0.cross.
        head: counted from 0.
        focus: the cell that formulas, numbers and sources are about.
        only: keys of `STAGES`; no other stage is made.

    Raises:
        ValueError: the model has no such attention or head.
    """
    if site not in trace.axes:
        raise ValueError(f"There is no attention {site!r}; choose one of {', '.join(trace.axes)}.")
    n_heads = trace.config.model.n_heads
    if not 0 <= head < n_heads:
        raise ValueError(f"There is no head {head}; choose one from 0 to {n_heads - 1}.")
    if min(focus.row, focus.column or 0, focus.feature) < 0:
        raise ValueError(f"{focus} points before the first cell; choose numbers from 0 on.")
    spot = Spot(trace, site, head, focus)
    made = (make(spot) for key, make in _MAKERS.items() if key in only)
    return tuple(replace(laid_out(stage), focus=spot.settled) for stage in made)

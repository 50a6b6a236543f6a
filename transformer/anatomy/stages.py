"""The stages of the forward pass, each computed for one focused cell."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from transformer.anatomy import attending, entering, leaving, masking, writing
from transformer.anatomy.line_breaks import laid_out
from transformer.anatomy.panels import STAGES, Focus, Stage
from transformer.anatomy.spot import spot_of

if TYPE_CHECKING:
    from transformer.anatomy.passes import ForwardTrace

MAKERS = {
    "tokens": entering.tokens,
    "embedding": entering.embedding,
    "positions": entering.positions,
    "plain": entering.plain,
    "input": entering.entering,
    "qkv": attending.projections,
    "scores_row": attending.scores_row,
    "scores": attending.scores,
    "scale": attending.scale,
    "mask": masking.mask,
    "masked": masking.masked,
    "weights": attending.weights,
    "mixed": attending.mixed,
    "heads": leaving.heads,
    "residual": leaving.residual,
    "feed_forward": leaving.feed_forward,
    "stack": leaving.stack,
    "logits": writing.logits,
    "probabilities": writing.probabilities,
}
"""The function that makes each stage."""
CHAPTERS = ("encoder", "decoder", "cross", "sequence", "positions")
"""Every chapter that a model can have, in the order of its forward pass: kinds of attention, positions."""


def chapters(kinds: Collection[str]) -> list[str]:
    """The chapters of a model with these kinds of attention."""
    return [chapter for chapter in CHAPTERS if chapter in kinds or chapter == "positions"]


def stages(
    trace: ForwardTrace, site: str, head: int, focus: Focus, only: Collection[str] = tuple(STAGES)
) -> tuple[Stage, ...]:
    """Every stage from tokens to probabilities, for one head of one attention.

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
    spot = spot_of(trace, site, head, focus)
    settled = replace(focus, column=spot.column)
    return tuple(laid_out(MAKERS[key](spot), settled) for key in STAGES if key in only)

"""Why a row may not look at a cell: codes that masks, maps and files share."""

from __future__ import annotations

OPEN, FUTURE, PADDING, BOTH, BY_HAND = range(5)
"""Open; blocked by the causal mask, by the padding mask, by both; blocked by hand."""
REASONS = {
    FUTURE: "blocked: causal mask",
    PADDING: "blocked: padding mask",
    BOTH: "blocked: causal and padding mask",
    BY_HAND: "blocked by hand",
}
"""Code of a blocked cell to its name."""

"""How often a page looks at its run again."""

from __future__ import annotations

from transformer.runs.view import PAUSED, RunView


def refresh_seconds(view: RunView, *, waiting: bool = False) -> float | None:
    """Seconds between two looks; None once nothing will move by itself.

    Args:
        waiting: a word that was typed has not been recorded yet.
    """
    if waiting or (view.active and (view.frame is None or (view.pace or 99.0) <= 5.0)):
        return 0.2
    if view.active:
        return 0.5
    return 2.0 if view.state == PAUSED else None  # someone else with the link may let it go on

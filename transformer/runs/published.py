"""The one view of a run that everybody reads, replaced whole by whoever changes it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from transformer.runs.view import RunView


class Published:
    """Readers take the reference and hold no lock; those who publish do it one after the other."""

    def __init__(self, view: RunView) -> None:
        self.view = view
        self._publishing = threading.Lock()  # a run's thread, its folder's and `Run.start` all publish

    def publish(self, *, only_if: str | None = None, **changes: Any) -> None:
        """Replace the view by one with these changes; with `only_if`, only where that is the state."""
        self.change(lambda now: now if only_if not in (None, now.state) else replace(now, **changes))

    def change(self, changed: Callable[[RunView], RunView]) -> None:
        """Replace the view by one that is made of it while nobody else publishes."""
        with self._publishing:
            self.view = changed(self.view)

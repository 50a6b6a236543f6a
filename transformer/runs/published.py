"""The one view of a run that everybody reads, replaced whole by whoever changes it."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

from transformer.recording.view import RunView


class Published:
    """Readers take the reference and hold no lock; those who publish do it one after the other."""

    def __init__(self, view: RunView) -> None:
        self.view = view
        self.version = 0
        """Counts what a folder is to hold."""
        self._publishing = threading.Lock()  # a run's thread, its folder's and `Run.start` all publish

    def publish(self, *, only_if: str | None = None, **changes: Any) -> None:
        """Replace the view by one with these changes; with `only_if`, only where that is the state."""
        with self._publishing:
            if only_if in (None, self.view.state):
                self.view = replace(self.view, **changes)
                self.version += 1

    def note(self, **changes: Any) -> None:
        """Say what a folder does not hold: that it is not up to date, or which weights it has."""
        with self._publishing:
            self.view = replace(self.view, **changes)

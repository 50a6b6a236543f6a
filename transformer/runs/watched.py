"""What anybody may do with a run who has its id: look at it, and ask for its untrained model."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

from transformer.config import RunConfig
from transformer.recording.view import RunView
from transformer.tasks import Question, Task


class Watched(Protocol):
    """A run as its viewers have it. To command one takes its token: see `Registry.control`."""

    config: RunConfig
    task: Task
    ready: threading.Event

    @property
    def questions(self) -> Sequence[Question]:
        """The probes."""

    @property
    def view(self) -> RunView:
        """What may be known of the run now."""

    @property
    def id(self) -> str:
        """The unguessable name by which the run is addressed."""

    @property
    def place(self) -> tuple[int, int] | None:
        """(place, of how many) in the line of runs that wait to train; None where it does not wait."""

    def look(self) -> RunView:
        """The view, for a person: a run goes on as long as somebody looks."""

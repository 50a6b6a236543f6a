"""A line for each thing that happens to a run, for whoever keeps the server: no visitor's words, no links."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from transformer.errors import InputError

if TYPE_CHECKING:
    from transformer.recording.view import RunFacts

LOG = logging.getLogger("headlight.runs")


def note(event: str, view: RunFacts, detail: str = "") -> None:
    """Log an event of a run, named by the beginning of its id: who has all of it may watch."""
    LOG.info(
        "%s %s: %s at step %d, %.1f s%s", event, view.id[:6], view.state, view.step, view.seconds, detail
    )


@contextmanager
def refusals() -> Iterator[None]:
    """Log what is refused inside: the setting, not what somebody chose."""
    try:
        yield
    except InputError as error:
        LOG.info("refuse %s", error.field)
        raise


def log_to_terminal() -> None:
    """Let the lines be seen where the server was started, unless somebody has decided where they go."""
    if not LOG.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s"))
        LOG.addHandler(handler)
        LOG.setLevel(logging.INFO)

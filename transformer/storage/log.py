"""A log line for each event of a run, without visitors' words or links."""

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
    """Log an event of a run, named by the beginning of its id: the whole id would let a reader watch it."""
    LOG.info(
        "%s %s: %s at step %d, %.1f s%s", event, view.id[:6], view.state, view.step, view.seconds, detail
    )


@contextmanager
def refusals() -> Iterator[None]:
    """Log the name of a setting that is refused inside the block, without its value."""
    try:
        yield
    except InputError as error:
        LOG.info("refuse %s", error.field)
        raise


def log_to_terminal() -> None:
    """Show the lines in the server's terminal, unless logging is configured already."""
    if not LOG.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s"))
        LOG.addHandler(handler)
        LOG.setLevel(logging.INFO)

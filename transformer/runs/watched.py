"""A run as its viewers have it: to look at. To command one takes its token: see `Registry.control`."""

from __future__ import annotations

from transformer.runs.remote import Remote
from transformer.runs.run import Run

Watched = Run | Remote
"""One that is trained here, or one that is watched through its folder."""

"""What nobody guesses: the id of a run, and the token of who commands it."""

from __future__ import annotations

import re
import secrets

SHAPE = re.compile(r"[A-Za-z0-9_-]{22}")
"""Of an id: no name of a file outside a folder looks like this."""


def new_token() -> str:
    """A secret of 128 bits."""
    return secrets.token_urlsafe(16)

"""Secrets that cannot be guessed: the id of a run, and the token that commands it."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

SHAPE = re.compile(r"[A-Za-z0-9_-]{22}")
"""Of an id: no name of a file outside a folder looks like this."""


def new_token() -> str:
    """A secret of 128 bits."""
    return secrets.token_urlsafe(16)


def digest_of(token: str) -> str:
    """The digest of a token, which is kept: it identifies the token and does not reveal it."""
    return hashlib.sha256(token.encode()).hexdigest()


def is_token_of(token: str, digest: str | None) -> bool:
    """Whether this is the token; takes as long for one that is nearly right."""
    return bool(token) and digest is not None and hmac.compare_digest(digest_of(token), digest)

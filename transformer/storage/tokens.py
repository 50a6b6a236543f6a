"""Secrets that cannot be guessed: the id of a run, and the token that controls the run."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

SHAPE = re.compile(r"[A-Za-z0-9_-]{22}")
"""Pattern of an id. It allows no dot and no slash, so an id is never a path out of a folder."""


def new_token() -> str:
    """A secret of 128 bits."""
    return secrets.token_urlsafe(16)


def digest_of(token: str) -> str:
    """The digest of a token, stored in its place: it identifies the token and does not reveal it."""
    return hashlib.sha256(token.encode()).hexdigest()


def is_token_of(token: str, digest: str | None) -> bool:
    """Whether a token has this digest, compared in constant time."""
    return bool(token) and digest is not None and hmac.compare_digest(digest_of(token), digest)

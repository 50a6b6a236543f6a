"""Access to a run's recording: a page gives its player a ticket, and the routes require it."""

from __future__ import annotations

import hashlib
import hmac
import time
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from streamlit import config

from pages.stream.hidden import HiddenParts, name_of, parts_of

HOURS = 12
"""Hours for which a ticket is valid; a player whose ticket has expired asks its page for another."""
HEADER = "x-headlight-ticket"
SUBPROTOCOL_PREFIX = "headlight."
"""Prefix of the subprotocol that carries a ticket: a browser cannot set the headers of a WebSocket."""
MAX_LENGTH = 100
"""Most characters of a ticket; a longer one is invalid."""


def ticket(run_id: str, hides: HiddenParts = ()) -> str:
    """A ticket to read one run for `HOURS` hours.

    Args:
        hides: the parts of the run that the ticket hides.
    """
    says = "-".join(filter(None, (str(int(time.time()) + 3600 * HOURS), name_of(hides))))
    return f"{says}.{_signature(run_id, says)}"


def verify(ticket: str, run_id: str) -> HiddenParts | None:
    """The parts that a ticket for this run hides; None if it is invalid or expired, or they are forgotten."""
    says, _, signature = ticket[:MAX_LENGTH].partition(".")
    expiry, _, hidden = says.partition("-")
    good = expiry.isascii() and expiry.isdecimal() and int(expiry) > time.time()
    if not good or not hmac.compare_digest(signature.encode(), _signature(run_id, says).encode()):
        return None
    return parts_of(hidden)


def _signature(run_id: str, says: str) -> str:
    secret = str(config.get_option("server.cookieSecret")).encode()
    return hmac.new(secret, f"headlight stream {run_id} {says}".encode(), hashlib.sha256).hexdigest()


def is_allowed_origin(asking: HTTPConnection) -> bool:
    """Whether a request names no origin, this server's own, or one that CORS allows."""
    origin = asking.headers.get("origin")
    if origin is None:
        return True
    allowed = {one.strip().rstrip("/") for one in config.get_option("server.corsAllowedOrigins")}
    try:
        host = urlsplit(origin).netloc.lower()
    except ValueError:  # not a URL
        return False
    return origin in allowed or host == asking.headers.get("host", "").lower()

"""Access to a run's recording: a page hands its player a ticket, and the routes answer only with one."""

from __future__ import annotations

import hashlib
import hmac
import time
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from streamlit import config

from pages.stream.hidden import Hides, name_of, named

HOURS = 12
"""Hours for which a ticket is valid; a player whose ticket has expired asks its page for another."""
HEADER = "x-headlight-ticket"
PROTOCOL = "headlight."
"""Prefix of the subprotocol that carries the ticket of a WebSocket, which cannot have headers."""
LONGEST = 100
"""Most characters of a ticket; a longer one is invalid."""


def ticket(run_id: str, hides: Hides = ()) -> str:
    """A permission to read one run for some hours.

    Args:
        hides: what it withholds.
    """
    says = "-".join(filter(None, (str(int(time.time()) + 3600 * HOURS), name_of(hides))))
    return f"{says}.{_signed(run_id, says)}"


def admits(ticket: str, run_id: str) -> Hides | None:
    """The parts that a ticket for this run hides; None if it is invalid or has expired."""
    says, _, signature = ticket[:LONGEST].partition(".")
    expiry, _, hidden = says.partition("-")
    good = expiry.isascii() and expiry.isdecimal() and int(expiry) > time.time()
    if not good or not hmac.compare_digest(signature.encode(), _signed(run_id, says).encode()):
        return None
    return named(hidden)


def _signed(run_id: str, says: str) -> str:
    secret = str(config.get_option("server.cookieSecret")).encode()
    return hmac.new(secret, f"headlight stream {run_id} {says}".encode(), hashlib.sha256).hexdigest()


def from_here(asking: HTTPConnection) -> bool:
    """Whether a request comes from a page of this server, or from no page at all."""
    origin = asking.headers.get("origin")
    if origin is None:
        return True
    allowed = {one.strip().rstrip("/") for one in config.get_option("server.corsAllowedOrigins")}
    try:
        host = urlsplit(origin).netloc.lower()
    except ValueError:  # no address at all
        return False
    return origin in allowed or host == asking.headers.get("host", "").lower()

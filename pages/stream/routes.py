"""The server's routes other than its pages: redirects, files, the stream of recordings. Its start and end."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import uvicorn
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute, Route, WebSocketRoute
from streamlit import config

from pages.stream.files import FirstPage, compressed, file, plotly

M_ARENA_MAX, N_HEAPS = -8, 2
"""The option of `mallopt` (malloc.h), and its value here."""
COLLECTED_AT = 10_000
"""Number of new objects at which Python collects garbage: with its default of 700, collections take a fifth
of the time in which torch is imported."""
SHUTDOWN_SECONDS = 1
"""Seconds that the server waits at shutdown for its connections to close."""


_MOVED = {"explore": "ask", "anatomy": "inside"}
"""Maps the former name of a page in the address to its present name: old links lead to the page."""


async def _moved(request: Request) -> RedirectResponse:
    """Redirect to the new address of a page: a relative one, since a proxy may add a path before it."""
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(_MOVED[request.url.path.rpartition("/")[2]] + query, 308)


def _late(name: str) -> Callable[[Any], Awaitable[Any]]:
    """A handler of `news`, which is imported at the first request: the import creates the registry, and a
    secrets file, which Streamlit reads later, may set its limits."""

    async def handle(asking: Any) -> Any:
        from pages.stream import news

        return await getattr(news, name)(asking)

    return handle


def _base() -> str:
    """The server's base path with a leading slash; empty if there is none."""
    base = (config.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}" if base else ""


def routes() -> list[BaseRoute]:
    """These routes, under the server's base path, which Streamlit adds only to its own routes."""
    base = _base()
    run = base + "/stream/{run}"
    return [
        *(Route(f"{base}/{name}", _moved) for name in _MOVED),
        Route(base + "/files/{name:path}", file),  # unknown files too: else Streamlit returns the app
        Route(run + "/index", _late("index")),
        Route(run + "/chunk/{name}", _late("chunk")),
        Route(run + "/{what:str}/{step:int}", _late("picture")),
        WebSocketRoute(run + "/news", _late("news")),
    ]


def middleware() -> list[Middleware]:
    """The middleware for all responses."""
    return [Middleware(FirstPage, base=_base())]


@asynccontextmanager
async def lifespan(app: object) -> AsyncIterator[None]:
    """Set up the process, and start to compress plotly.js, so that it is ready for the first page.

    At shutdown, halt all runs after their current step.
    """
    _hurry_at_the_end()
    _share_heaps()
    gc.set_threshold(COLLECTED_AT)
    squeezing = asyncio.create_task(asyncio.to_thread(compressed, plotly()))
    yield
    await squeezing
    if (loaded := sys.modules.get("transformer.runs.registry")) is not None:
        await asyncio.to_thread(loaded.REGISTRY.close)


def _share_heaps() -> None:
    """Let the threads share a few heaps, if the C library can.

    The GNU C library makes up to eight per processor, and threads cannot use what is free in another heap.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, N_HEAPS)


def _hurry_at_the_end() -> None:
    """Limit how long a server that is shut down waits for its connections.

    By default, Uvicorn waits forever for a frozen browser, and halts the runs only after that. Streamlit has
    no setting for this limit; the server is found as the handler of SIGTERM.
    """
    server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    if isinstance(server, uvicorn.Server):
        server.config.timeout_graceful_shutdown = SHUTDOWN_SECONDS

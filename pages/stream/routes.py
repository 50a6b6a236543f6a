"""The routes beside the pages: files, and the stream of what is recorded."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Route, WebSocketRoute
from streamlit import config

from pages.stream.files import Early, compressed, file, plotly

LEAVING_SECONDS = 1
"""How long a server that is shut down waits for its connections to close."""


def _late(name: str) -> Callable[[Any], Awaitable[Any]]:
    """A handler of `news`, loaded with the first request: runs need the limits that a secrets file sets."""

    async def handle(asking: Any) -> Any:
        from pages.stream import news

        return await getattr(news, name)(asking)

    return handle


def _base() -> str:
    """The server's base path with a slash before it; empty where there is none."""
    base = (config.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}" if base else ""


def routes() -> list[BaseRoute]:
    """All of them, under the server's base path, which Streamlit puts before its own alone."""
    base = _base()
    run = base + "/stream/{run}"
    return [
        Route(base + "/files/{name:path}", file),  # whatever follows: Streamlit would answer with the app
        Route(run + "/index", _late("index")),
        Route(run + "/chunk/{name}", _late("chunk")),
        Route(run + "/{what:str}/{step:int}", _late("picture")),
        WebSocketRoute(run + "/news", _late("news")),
    ]


def middleware() -> list[Middleware]:
    """The middleware of every answer."""
    return [Middleware(Early, base=_base())]


@asynccontextmanager
async def lifespan(app: object) -> AsyncIterator[None]:
    """Compress plotly.js before a page needs it; at the end of the server let runs end as they stand."""
    _hurry_at_the_end()
    squeezing = asyncio.create_task(asyncio.to_thread(compressed, plotly()))
    yield
    await squeezing
    if (loaded := sys.modules.get("transformer.runs.registry")) is not None:
        await asyncio.to_thread(loaded.REGISTRY.close)


def _hurry_at_the_end() -> None:
    """Limit how long a server that is shut down waits for its connections.

    Uvicorn alone would wait for ever for a browser that is frozen, and let no run end meanwhile. Streamlit
    has no setting for that; the server handles the signal.
    """
    server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    if isinstance(server, uvicorn.Server):
        server.config.timeout_graceful_shutdown = LEAVING_SECONDS

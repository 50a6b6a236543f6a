"""The routes beside the pages: files, and the stream of what is recorded."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket
from streamlit import config

from pages.stream.files import Early, compressed, file, plotly

LEAVING_SECONDS = 1
"""How long a server that is shut down waits for its connections to close."""

# Runs are loaded with the first request: the limits that a secrets file sets are not known before.


async def _news(socket: WebSocket) -> None:
    from pages.stream.news import news

    await news(socket)


async def _index(request: Request) -> Response:
    from pages.stream.news import index

    return await index(request)


async def _chunk(request: Request) -> Response:
    from pages.stream.news import chunk

    return await chunk(request)


async def _picture(request: Request) -> Response:
    from pages.stream.news import picture

    return await picture(request)


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
        Route(run + "/index", _index),
        Route(run + "/chunk/{name}", _chunk),
        Route(run + "/{what:str}/{step:int}", _picture),
        WebSocketRoute(run + "/news", _news),
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

"""A client that speaks Streamlit's protocol and sends what no browser would send."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import connect
from websockets.sync import client as blocking
from websockets.typing import Subprotocol

from benchmarks.tools.viewer import SECONDS, Viewer

SMALL = "layers_encoder=1&layers_decoder=1&heads=2&width=8&letters=6&batch_size=4&goal=none&device=cpu"
"""The query string of a link to a model that trains fast."""


class Stranger(Viewer):
    """One connection, with what the server has sent on it."""

    def __init__(self, address: str, query: str = "", page: str = "") -> None:
        super().__init__(address, query, page)
        self.kinds: list[str] = []
        """Kinds of the elements received."""
        self.texts: list[str] = []
        self.received = 0
        """Number of bytes."""
        self.references = 0
        """Number of messages received as a reference to an earlier message."""

    def _take(self, data: bytes) -> None:
        super()._take(data)
        message = ForwardMsg.FromString(data)
        self.received += len(data)
        self.references += bool(message.ref_hash)

    def _note_widget(self, element: Any) -> None:
        super()._note_widget(element)
        kind = element.WhichOneof("type")
        self.kinds.append(kind)
        if kind in ("markdown", "heading", "text"):
            self.texts.append(getattr(element, kind).body)

    @property
    def run(self) -> str:
        """The id of the run that the page shows."""
        return str(self._shown["run"])

    @property
    def keys(self) -> set[str]:
        """Keys of the widgets and buttons received."""
        return {*self._buttons, *(id_.rpartition("-")[2] for id_ in self._widgets)}

    async def news_until(self, condition: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """Wait until the news of the run meets a condition; return it."""
        address = self._address.replace("/_stcore/stream", f"/stream/{self.run}/news")
        async with (
            asyncio.timeout(SECONDS),
            connect(address, subprotocols=[Subprotocol(f"headlight.{self._shown['ticket']}")]) as socket,
        ):
            async for message in socket:
                assert isinstance(message, bytes)
                if condition(now := json.loads(message.split(b"\n", 1)[0])):
                    return dict(now)
                await socket.send('{"drawn": 1}')
        raise ConnectionError("the news have ended")

    async def send(self, message: BackMsg | bytes) -> None:
        assert self._socket is not None
        await self._socket.send(message if isinstance(message, bytes) else message.SerializeToString())

    async def ask(self) -> None:
        assert self._socket is not None
        await self._rerun(self._socket)


def run_in_thread(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine in a new thread, since Playwright may run a loop in this one; return its result."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result(180)


@asynccontextmanager
async def visiting(
    address: str,
    query: str = "",
    page: str = "",
    headers: dict[str, str] | None = None,
    before: Stranger | None = None,
) -> AsyncIterator[Stranger]:
    """Open a page and follow it; with `before`, reconnect as the browser of that client."""
    stranger = Stranger(address, query, page)
    if before is not None:
        stranger.query, stranger._seen = before.query, before._seen
    stranger.headers |= headers or {}
    following = asyncio.create_task(stranger.watch())
    try:
        async with asyncio.timeout(SECONDS):
            await stranger.until(lambda: stranger.full_runs)
        yield stranger
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


def http_request(address, method, path, body=None, headers=None):
    """Send a request with the path unchanged, unlike a browser; return status, body and headers."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=20)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers
    finally:
        connection.close()


def handshake(address, origin):
    stream = address.replace("http://", "ws://") + "/_stcore/stream"
    with blocking.connect(stream, origin=origin, subprotocols=["streamlit"], open_timeout=20):
        return "accepted"

"""A TCP proxy with which a network is bad: late, slow, silent, closed, or without WebSockets."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from typing import Self
from urllib.parse import urlsplit

from benchmarks.tools.server import free_port

PIECE = 16_384
"""Maximum number of bytes that are read at a time."""
UPGRADE = re.compile(rb"^upgrade: *websocket\r$", re.IGNORECASE | re.MULTILINE)
REFUSAL = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Proxy:
    """Passes the bytes of all connections on; its attributes may be changed at any time.

    Args:
        server: address of the server.
        path: the path of the server at the proxy, such as "/proxy/8501"; requests are passed on without it.
    """

    def __init__(self, server: str, path: str = "") -> None:
        self.delay = 0.0
        """Seconds that bytes take, in each direction."""
        self.rate = float("inf")
        """Bytes per second, in each direction, of all connections together."""
        self.silent = False
        """Whether all bytes are held back, as on a lost network: no connection is closed."""
        self.closed = False
        """Whether connections are closed, as by a server that has ended."""
        self.refuses_upgrades = False
        self._server, self._path = urlsplit(server), path.encode()
        self._free = {False: 0.0, True: 0.0}  # when each direction has passed on all bytes
        self._ended = threading.Event()
        port = free_port()
        self.address = f"http://127.0.0.1:{port}{path}"
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(port)))
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    async def _serve(self, port: int) -> None:
        async with await asyncio.start_server(self._connected, "127.0.0.1", port):
            while not self._ended.is_set():
                await asyncio.sleep(0.05)
            self.closed = True  # a server waits for its connections
            await asyncio.sleep(0.1)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.closed:
            writer.transport.abort()
            return
        there, back = await asyncio.open_connection(self._server.hostname, self._server.port)
        ways = ((reader, back, True), (there, writer, False))
        pumps = [asyncio.create_task(self._pump(*way, writer)) for way in ways]
        while not (self.closed or all(pump.done() for pump in pumps)):
            await asyncio.sleep(0.05)
        for pump in pumps:
            pump.cancel()
        for end in (writer, back):
            end.transport.abort()

    async def _pump(
        self, reader: asyncio.StreamReader, to: asyncio.StreamWriter, up: bool, browser: asyncio.StreamWriter
    ) -> None:
        """Read without waiting for earlier bytes to be passed on, so that a delay does not limit the rate."""
        pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(64)
        passing = asyncio.create_task(self._pass(pieces, to, up))
        try:
            while piece := await reader.read(PIECE):
                if up and self.refuses_upgrades and UPGRADE.search(piece):
                    browser.write(REFUSAL)
                    return
                if up and self._path:
                    piece = re.sub(rb"^([A-Z]+ )" + self._path, rb"\1", piece)
                now = time.monotonic()
                self._free[up] = max(now, self._free[up]) + len(piece) / self.rate
                await pieces.put((self._free[up] + self.delay, piece))
            await pieces.put((0.0, b""))
            await passing
        except OSError:
            pass
        finally:
            passing.cancel()

    async def _pass(
        self, pieces: asyncio.Queue[tuple[float, bytes]], to: asyncio.StreamWriter, up: bool
    ) -> None:
        while True:
            due, piece = await pieces.get()
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            while self.silent:
                await asyncio.sleep(0.02)
            if not piece:
                if to.can_write_eof():
                    to.write_eof()
                return
            to.write(piece)
            await to.drain()

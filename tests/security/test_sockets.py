"""Sockets of the real server: their number is limited, and none prevents the server from exiting."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import os
import signal
import socket
import struct
import threading
import time
import urllib.request
from contextlib import ExitStack, closing, suppress
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import connect as connect_async
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from benchmarks.tools.server import healthy
from tests.security.stranger import SMALL, run_in_thread, visiting
from tests.serving import start_server
from transformer.storage.saved import read_run
from transformer.storage.tokens import new_token

SECRET = "of this test alone"
TRAINS = f"{SMALL}&steps=20000&pace=20 steps/s"
LIMIT = 100
ENDS_WITHIN = 5.0


def ticket(run):
    """Return a ticket for a run, signed with the secret of the server."""
    expiry = int(time.time()) + 3600
    said = f"headlight stream {run} {expiry}".encode()
    return f"{expiry}.{hmac.new(SECRET.encode(), said, hashlib.sha256).hexdigest()}"


def news(address, run):
    """Return the address of a run's news and the subprotocols to offer there."""
    return f"{address.replace('http://', 'ws://')}/stream/{run}/news", [f"headlight.{ticket(run)}"]


def server_environment(folder):
    """Return the server's environment variables; the cookie secret has no command-line option."""
    return {
        "STREAMLIT_SERVER_COOKIE_SECRET": SECRET,
        "HEADLIGHT_RUNS": str(folder / "runs"),
        "HEADLIGHT_SOCKETS": str(LIMIT),
    }


@pytest.fixture
def server(tmp_path):
    """A server process, its address and its folder; the process is killed if it has not ended."""
    with (tmp_path / "said").open("wb") as said:
        process, address = start_server(output=said, **server_environment(tmp_path))
    yield process, address, tmp_path
    process.kill()
    process.wait()


def training(address):
    """Start a run, leave it training, and return its id."""

    async def start():
        async with visiting(address, TRAINS) as owner:
            await owner.answered(owner.press("run_start"))
            await owner.news_until(lambda now: now["step"] > 5)
            return owner.run

    return run_in_thread(start())


def step_of(address, run):
    """Return the current step of a run from its news."""
    where, offered = news(address, run)
    with connect(where, subprotocols=offered) as socket:
        return json.loads(socket.recv(timeout=20).split(b"\n", 1)[0])["step"]


def errors(folder):
    return (folder / "said").read_text().count("Traceback (most recent call last)")


def test_of_a_thousand_connections_those_beyond_the_limit_are_refused_and_the_server_goes_on(server):
    _, address, folder = server
    run = training(address)
    where, offered = news(address, run)

    async def crowd():
        opened, codes = [], []

        async def come():
            there = await connect_async(where, subprotocols=offered, open_timeout=60, compression=None)
            opened.append(there)
            try:
                await asyncio.wait_for(there.recv(), 60)
                codes.append(None)
            except ConnectionClosed as closed:
                codes.append(closed.rcvd.code)

        for _ in range(10):
            await asyncio.gather(*(come() for _ in range(100)))
        answered = await asyncio.to_thread(healthy, address)
        await asyncio.gather(*(there.close() for there in opened))
        return codes, answered

    codes, answered = run_in_thread(crowd())
    assert answered
    assert codes.count(1013) == 1_000 - LIMIT
    assert codes.count(None) == LIMIT
    step = step_of(address, run)  # there is room again
    time.sleep(0.5)
    assert step_of(address, run) > step
    assert errors(folder) == 0


def test_a_thousand_connections_without_a_ticket_are_refused_and_take_no_place(server):
    _, address, folder = server
    run = training(address)
    where, offered = news(address, run)

    async def knock():
        async def come(protocols):
            with pytest.raises(InvalidStatus, match="403"):
                await connect_async(where, subprotocols=protocols, open_timeout=60)

        wrong = [[f"headlight.{ticket(new_token())}"], ["headlight.x"], None, ["streamlit"]]
        for i in range(10):
            await asyncio.gather(*(come(wrong[(i + k) % 4]) for k in range(100)))

    run_in_thread(knock())
    assert step_of(address, run) > 5
    assert errors(folder) == 0


# Shutdown of a server.


def frame(text):
    """Return a WebSocket frame of text as a client sends it."""
    data, mask = text.encode(), os.urandom(4)
    assert len(data) < 126
    masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
    return struct.pack("!BB", 0x81, 0x80 | len(data)) + mask + masked


class Frozen:
    """A client that opens a socket, reports that it has drawn everything, and reads nothing."""

    def __init__(self, address, run):
        host = urlsplit(address)
        where, (offered,) = news(address, run)
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        self._socket.connect((host.hostname, host.port))
        key = base64.b64encode(os.urandom(16)).decode()
        self._socket.sendall(
            f"GET {urlsplit(where).path} HTTP/1.1\r\nHost: {host.netloc}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Protocol: {offered}\r\n\r\n".encode()
        )
        assert b" 101 " in self._socket.recv(100)
        self._socket.sendall(frame('{"word": "a"}'))
        threading.Thread(target=self._ask, daemon=True).start()

    def _ask(self):
        """Send requests until the server can send no more."""
        with suppress(OSError):
            while True:
                self._socket.sendall(frame('{"live": true, "drawn": 2}'))
                time.sleep(0.0005)

    def close(self):
        self._socket.close()


@pytest.mark.parametrize("ending", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_server_with_100_open_sockets_one_of_them_frozen_ends_in_time_and_saves_its_run(server, ending):
    process, address, folder = server
    run = training(address)
    where, offered = news(address, run)
    with ExitStack() as stack:
        stack.enter_context(closing(Frozen(address, run)))
        watching = [
            stack.enter_context(connect(where, subprotocols=offered, close_timeout=1))
            for _ in range(LIMIT - 1)
        ]
        for one in watching:
            assert one.recv(timeout=20)
        time.sleep(4)  # until nothing more can be sent to the frozen client
        step = json.loads(watching[-1].recv(timeout=20).split(b"\n", 1)[0])["step"]
        began = time.monotonic()
        process.send_signal(ending)
        process.wait(30)
        took = time.monotonic() - began
    assert took < ENDS_WITHIN
    saved = read_run(folder / "runs" / f"{run}.headlight")
    assert saved.view.state == "paused"  # no process trains it any more
    assert saved.view.step >= step
    assert saved.view.frames.steps[-1] == saved.view.step
    assert saved.can_go_on
    assert errors(folder) == 0
    _, again = start = start_server(**server_environment(folder))
    try:
        assert step_of(again, run) == saved.view.step
        where = f"{again}/stream/{run}/index"
        asking = urllib.request.Request(where, headers={"x-headlight-ticket": ticket(run)})
        with urllib.request.urlopen(asking, timeout=20) as answer:
            assert json.loads(answer.read())["steps"][-1] == saved.view.step
    finally:
        start[0].kill()
        start[0].wait()

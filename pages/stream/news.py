"""The handlers of the stream: index, chunks and pictures over GET, news of each run over a WebSocket."""

from __future__ import annotations

import asyncio
import gzip
import json
from contextlib import suppress
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket, WebSocketDisconnect

from pages.shared.selection import MOST_STEPS
from pages.stream.broadcaster import Now, RunBroadcaster, find, tick
from pages.stream.hidden import HiddenParts, hides_word
from pages.stream.tickets import HEADER, SUBPROTOCOL_PREFIX, is_allowed_origin, verify
from transformer.errors import InputError
from transformer.runs.registry import REGISTRY
from transformer.storage.log import LOG
from transformer.storage.tokens import SHAPE
from transformer.tasks import task_of

ON_THE_WAY = 2
"""Most messages on the way to a viewer, which it has not yet drawn; a few more over a slow connection."""
AHEAD_MS, MOST_AHEAD = 150, 3
"""A viewer gets one further message for every AHEAD_MS milliseconds of a round trip, at most MOST_AHEAD."""
KEPT_SECONDS = 60.0
"""Most seconds for which the broadcaster of a run is kept after its last viewer has left."""
QUIET_SECONDS = 0.5
"""Least seconds between two states sent to a page that does not follow the run, except for a new beat of a
story."""
LONGEST = 2_000
"""Most characters of one message from a player."""
REFUSED, FULL, TOO_LONG, BROKEN = 1008, 1013, 1009, 1011
"""Codes with which a socket is closed."""
GONE = (WebSocketDisconnect, RuntimeError, OSError)
"""Errors raised when the browser has disconnected."""

_broadcasters: dict[tuple[str, HiddenParts], tuple[RunBroadcaster, set[Viewer]]] = {}
_looking: dict[RunBroadcaster, asyncio.Task[None]] = {}
_sockets: set[WebSocket] = set()


class Viewer:
    """An open socket: what its player has sent, and what was sent to it."""

    def __init__(self, socket: WebSocket) -> None:
        self.socket = socket
        self.word: str | None = None
        self.live, self.hidden, self.whole = True, False, False
        self.version = -1
        self.on_the_way = 0
        self.state_sent = self.shown = -1
        """The number of the state line (`Now.counted`) and the step that were last sent; -1 before."""
        self.beat: object = None
        """The story and its beat (`Now.beat`) when the last message was sent."""
        self.sent_at = 0.0
        self.sent = b""
        """The maps that were sent last."""
        self.ping: int | None = None
        """A number to send back at once: the page learns that it is connected, and how late the news is."""
        self.ahead = 0
        self.wake = asyncio.Event()

    def hear(self, said: dict[str, Any]) -> None:
        """Handle a message from the player.

        Raises:
            ValueError, TypeError, KeyError, OverflowError: the message is none of a player.
        """
        if "drawn" in said:
            self.on_the_way = max(0, self.on_the_way - int(said["drawn"]))
        if "word" in said and said["word"] != self.word:
            self.word, self.shown = str(said["word"]), -1
        if "live" in said:
            self.live, self.shown = bool(said["live"]), -1
        for name in ("hidden", "whole"):
            if name in said:
                setattr(self, name, bool(said[name]))
        if "version" in said:
            self.version = int(said["version"])
        if "ping" in said:
            self.ping = int(said["ping"])
            self.ahead = max(0, min(MOST_AHEAD, int(said["took"]) // AHEAD_MS))
        self.wake.set()

    @property
    def listens(self) -> bool:
        """Whether a message with news may be sent now."""
        return not self.hidden and self.on_the_way < ON_THE_WAY + self.ahead

    def wants(self, now: Now, clock: float) -> bool:
        """Whether there is anything new to send."""
        if (self.live and now.at != self.shown) or now.beat != self.beat:
            return True
        late = clock - self.sent_at >= QUIET_SECONDS
        return now.counted != self.state_sent and (self.live or late)

    def message(self, broadcaster: RunBroadcaster, clock: float) -> bytes:
        """The next message, which counts as sent from now on.

        It holds the newest state and, at LIVE, the maps of the viewer's word, unless they were sent last.
        """
        now, maps = broadcaster.now, b""
        if self.live:
            self.shown = now.at
            if self.word is not None and now.at >= 0:
                made = broadcaster.maps(now, self.word, self.whole)
                if made is not self.sent:
                    maps = self.sent = made
        message = broadcaster.message(now, self.version, maps)
        if self.version == now.version - 1:
            self.version += 1
        self.state_sent, self.sent_at, self.beat = now.counted, clock, now.beat
        self.on_the_way += 1
        return message


async def _broadcaster(run_id: str, hides: HiddenParts) -> tuple[RunBroadcaster, set[Viewer]] | None:
    """The broadcaster of a run for all viewers with these hidden parts, and the viewers; None if there is no
    run of this id. A new broadcaster finds the run and looks at it in worker threads."""
    key = run_id, hides
    if key not in _broadcasters:
        run = await asyncio.to_thread(find, run_id)
        if run is None:
            return None
        broadcaster = RunBroadcaster(run, hides)
        await asyncio.to_thread(broadcaster.look, 0)
        return _held(broadcaster, set())
    return _broadcasters[key]


def _held(broadcaster: RunBroadcaster, viewers: set[Viewer]) -> tuple[RunBroadcaster, set[Viewer]]:
    """The registered broadcaster of a run and its viewers; registers these if there are none."""
    key = broadcaster.run.id, broadcaster.hides
    if key not in _broadcasters:
        _broadcasters[key] = broadcaster, viewers
        asyncio.get_running_loop().call_later(KEPT_SECONDS, _forget, key)
    return _broadcasters[key]


def _forget(key: tuple[str, HiddenParts]) -> None:
    """Delete the broadcaster of a run without viewers; with viewers, check again later."""
    if key in _broadcasters:
        if _broadcasters[key][1]:
            asyncio.get_running_loop().call_later(KEPT_SECONDS, _forget, key)
        else:
            del _broadcasters[key]


async def _broadcast(broadcaster: RunBroadcaster, viewers: set[Viewer]) -> None:
    """Look at a run as long as the broadcaster has viewers, and wake the tasks that send what is new."""
    clock = asyncio.get_running_loop().time
    logged = ""
    try:
        while viewers:
            began, seconds = clock(), tick(len(_sockets), len(_looking))
            try:
                await asyncio.to_thread(broadcaster.look, len(viewers), seconds)
            except Exception as error:  # the next look may succeed
                if repr(error) != logged:
                    logged = repr(error)
                    LOG.exception("A look at run %s failed", broadcaster.run.id[:6])
            for viewer in viewers:
                viewer.wake.set()
            await asyncio.sleep(max(0.01, seconds - (clock() - began)))
    finally:
        del _looking[broadcaster]


async def _serve(viewer: Viewer, broadcaster: RunBroadcaster) -> None:
    """Send one viewer what is new; if a message cannot be made, close the socket: the page reconnects."""
    clock = asyncio.get_running_loop().time
    while True:
        await viewer.wake.wait()
        viewer.wake.clear()
        if viewer.ping is not None:
            ping, viewer.ping = viewer.ping, None
            await viewer.socket.send_text(str(ping))
        while viewer.listens and viewer.wants(broadcaster.now, clock()):
            try:
                message = viewer.message(broadcaster, clock())
            except Exception:
                LOG.exception("A message on run %s failed", broadcaster.run.id[:6])
                await viewer.socket.close(BROKEN)
                return
            await viewer.socket.send_bytes(message)


async def news(socket: WebSocket) -> None:
    """Handle the WebSocket of a page that watches one run."""
    run_id = socket.path_params["run"]
    offered = [one for one in socket.scope.get("subprotocols", ()) if one.startswith(SUBPROTOCOL_PREFIX)]
    is_known = SHAPE.fullmatch(run_id) and offered
    hides = verify(offered[0].removeprefix(SUBPROTOCOL_PREFIX), run_id) if is_known else None
    if hides is None or not is_allowed_origin(socket):
        await socket.close(REFUSED)
        return
    if len(_sockets) >= REGISTRY.limits.sockets:
        await socket.accept(subprotocol=offered[0])  # else the browser does not get the code
        await socket.close(FULL)
        return
    _sockets.add(socket)
    try:
        broadcaster = await _broadcaster(run_id, hides)
        await socket.accept(subprotocol=offered[0])
        if broadcaster is None:
            await socket.close(REFUSED)
            return
        await _attend(socket, *_held(*broadcaster))  # the broadcaster may have been forgotten meanwhile
    finally:
        _sockets.discard(socket)


async def _attend(socket: WebSocket, broadcaster: RunBroadcaster, viewers: set[Viewer]) -> None:
    viewer = Viewer(socket)
    viewers.add(viewer)
    if broadcaster not in _looking:
        _looking[broadcaster] = asyncio.create_task(_broadcast(broadcaster, viewers))
    serving = asyncio.create_task(_serve(viewer, broadcaster))
    try:
        while True:
            text = await socket.receive_text()
            if len(text) > LONGEST:
                await socket.close(TOO_LONG)
                return
            viewer.hear(json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        with suppress(*GONE):
            await socket.close(REFUSED)
    except GONE:
        pass
    finally:
        viewers.discard(viewer)
        serving.cancel()
        with suppress(asyncio.CancelledError, *GONE):
            await serving


def _compressed(request: Request, content: bytes, caching: str) -> Response:
    """A response with content compressed in advance; decompressed for clients without gzip."""
    headers = {"cache-control": caching, "vary": "accept-encoding", "x-content-type-options": "nosniff"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["content-encoding"] = "gzip"
    else:
        content = gzip.decompress(content)
        headers["content-encoding"] = "identity"
    return Response(content, media_type="application/octet-stream", headers=headers)


async def _admitted(request: Request) -> RunBroadcaster:
    """The broadcaster of the run that a request may read.

    Raises:
        HTTPException: with status 403, if the ticket or the origin is not valid, or there is no such run.
    """
    run_id = request.path_params["run"]
    hides = verify(request.headers.get(HEADER, ""), run_id) if SHAPE.fullmatch(run_id) else None
    broadcaster = (
        None if hides is None or not is_allowed_origin(request) else await _broadcaster(run_id, hides)
    )
    if broadcaster is None:
        raise HTTPException(403, "")
    return broadcaster[0]


async def index(request: Request) -> Response:
    """Handle a request for the index of a run, which browsers never cache."""
    broadcaster = await _admitted(request)
    return _compressed(request, await asyncio.to_thread(broadcaster.whole), "no-store")


async def chunk(request: Request) -> Response:
    """Handle a request for a chunk, the maps of a word over some steps; its content never changes."""
    broadcaster = await _admitted(request)
    content = await asyncio.to_thread(broadcaster.chunk, request.path_params["name"])
    if content is None:
        return Response(status_code=404)
    caching = "no-store" if broadcaster.hides else "private, max-age=31536000, immutable"
    return _compressed(request, content, caching)


async def picture(request: Request) -> Response:
    """Handle a request for a forward pass, the parts of its scores, or the changes of a step.

    The text of an InputError is sent with status 422.
    """
    broadcaster = await _admitted(request)
    what, step = request.path_params["what"], min(request.path_params["step"], MOST_STEPS)
    try:
        content = await asyncio.to_thread(_computed, broadcaster, what, step, dict(request.query_params))
    except InputError as error:
        return Response(str(error), status_code=422, media_type="text/plain")
    if content is None:
        return Response(status_code=404)
    return Response(content, media_type="application/octet-stream", headers={"cache-control": "no-store"})


def _computed(broadcaster: RunBroadcaster, what: str, step: int, asked: dict[str, str]) -> bytes | None:
    """The content of a response of `picture`; None for an unknown `what`."""
    from pages.stream.picture import change, forward_pass, parts  # they import torch

    make = {"picture": forward_pass, "parts": parts, "change": change}.get(what)
    if make is None:
        return None
    run, hides = broadcaster.run, broadcaster.hides
    # Compare the word as the task normalises it, however it was typed.
    if hides and hides_word(hides, task_of(run.config).question(asked.get("word", "")).text):
        raise InputError("A row of this word is hidden until it has been guessed.")
    return make(run, broadcaster.view, step, asked)

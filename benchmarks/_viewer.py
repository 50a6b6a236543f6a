"""A visitor without a browser: speaks Streamlit's protocol, refreshes as often as it is told to."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from websockets.asyncio.client import ClientConnection, connect

CACHED_FOR = 2
"""Script runs for which a browser keeps large messages, to be sent only by their name."""


class Viewer:
    """One browser session, counted.

    Args:
        address: of the server.
        query: of the page's link, such as "run=abc".
        page: its name there, such as "explore"; by default the first one.
    """

    def __init__(self, address: str, query: str = "", page: str = "") -> None:
        self._address = address.replace("http://", "ws://") + "/_stcore/stream"
        self.query = query
        self.headers: dict[str, str] = {}
        """Sent with the handshake, besides the usual ones."""
        self._page_name, self._page = page, ""
        self._widgets: dict[str, WidgetState] = {}
        self._seen: dict[str, int] = {}  # names of large messages, and the script run they came with
        self._runs = 0
        self._timers: dict[str, asyncio.Task[None]] = {}
        self._wanted: dict[str, float] = {}  # fragments to refresh, said in the present full run
        self._fragments: set[str] = set()  # of the script run that is going on
        self.painted = asyncio.Event()
        """Set once a whole page has come."""
        self.received = 0
        """Bytes."""
        self.of_kind: Counter[str] = Counter()
        """Bytes by what they are for."""
        self.refreshed: list[float] = []
        """When refreshes have come to their end, on the clock."""
        self.answer_seconds: list[float] = []
        """Seconds from each timer's question to its answer."""
        self._asked_at: float | None = None
        self.full_runs = 0
        self.alerts: list[str] = []
        """What boxes of warnings and errors have said."""
        self.exceptions: list[Any] = []
        """Boxes of exceptions; a page of ours shows none."""
        self._buttons: dict[str, str] = {}  # key to the id of a button
        self._socket: ClientConnection | None = None

    async def watch(self) -> None:
        """Open the page and follow it until cancelled."""
        async with connect(
            self._address,
            subprotocols=["streamlit"],
            additional_headers=self.headers,
            max_size=None,
            compression=None,
            close_timeout=1,
        ) as socket:
            self._socket = socket
            try:
                await self._rerun(socket)
                async for data in socket:
                    assert isinstance(data, bytes)
                    self._take(socket, data)
            finally:
                for timer in self._timers.values():
                    timer.cancel()

    async def press(self, key: str) -> None:
        """Send what a press on a button sends, whether or not it can be pressed."""
        assert self._socket is not None, "watch first"
        pressed = WidgetState(id=self._buttons[key], trigger_value=True)
        await self._rerun(self._socket, pressed=pressed)

    async def _rerun(
        self, socket: ClientConnection, fragment: str = "", pressed: WidgetState | None = None
    ) -> None:
        """Ask for the page, or for one part of it as its timer does."""
        message = BackMsg()
        asked = message.rerun_script
        asked.query_string = self.query
        asked.page_script_hash = self._page
        asked.page_name = "" if self._page else self._page_name
        values = [*self._widgets.values(), *([] if pressed is None else [pressed])]
        asked.widget_states.CopyFrom(WidgetStates(widgets=values))
        if fragment:
            asked.fragment_id, asked.is_auto_rerun = fragment, True
        asked.cached_message_hashes.extend(self._seen)
        asked.context_info.url = self._address
        await socket.send(message.SerializeToString())

    async def _tick(self, socket: ClientConnection, fragment: str, interval: float) -> None:
        due = time.perf_counter()
        while True:
            due = max(due + interval, time.perf_counter())
            await asyncio.sleep(due - time.perf_counter())
            self._asked_at = self._asked_at or time.perf_counter()  # what is asked twice is answered once
            await self._rerun(socket, fragment)

    def _take(self, socket: ClientConnection, data: bytes) -> None:
        """Follow one message of the server."""
        message = ForwardMsg.FromString(data)
        kind = message.WhichOneof("type") or ""
        self.received += len(data)
        self.of_kind[_purpose(message, kind)] += len(data)
        if message.metadata.cacheable and not message.ref_hash:
            self._seen[message.hash] = self._runs
        elif message.ref_hash:
            self._seen[message.ref_hash] = self._runs
        if kind == "new_session":
            self._page = message.new_session.page_script_hash
            self._wanted = {}
        elif kind == "page_info_changed":
            self.query = message.page_info_changed.query_string
        elif kind == "auto_rerun":
            self._wanted[message.auto_rerun.fragment_id] = message.auto_rerun.interval
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            self._note_widget(message.delta.new_element)
        elif kind == "script_finished":
            self._finished(socket, message.script_finished)

    def _finished(self, socket: ClientConnection, status: int) -> None:
        """A run of the script is over: of the whole page, or of a refreshing part."""
        self._runs += 1
        self._seen = {name: run for name, run in self._seen.items() if self._runs - run <= CACHED_FOR}
        if self._asked_at is not None:
            self.answer_seconds.append(time.perf_counter() - self._asked_at)
            self._asked_at = None
        if status == ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY:
            self.refreshed.append(time.perf_counter())
        elif status == ForwardMsg.FINISHED_SUCCESSFULLY:
            self.full_runs += 1
            self.refreshed.append(time.perf_counter())
            for timer in self._timers.values():
                timer.cancel()
            self._timers = {
                fragment: asyncio.create_task(self._tick(socket, fragment, interval))
                for fragment, interval in self._wanted.items()
            }
            self.painted.set()

    def _note_widget(self, element: Any) -> None:
        """A browser sends the value of every box back with each request."""
        kind = element.WhichOneof("type")
        widget = getattr(element, kind)
        if kind == "button":
            self._buttons[widget.id.rpartition("-")[2]] = widget.id
        if kind == "exception":
            self.exceptions.append(widget)
        if kind == "alert":
            self.alerts.append(widget.body)
        if kind == "number_input" and not widget.HasField("value" if widget.set_value else "default"):
            return  # empty
        if kind == "number_input":
            name = "int_value" if widget.data_type == widget.INT else "double_value"
            number = widget.value if widget.set_value else widget.default
            value: object = int(number) if name == "int_value" else number
        elif kind == "text_input":
            name, value = "string_value", widget.value if widget.set_value else widget.default
        elif kind == "checkbox":
            name, value = "bool_value", widget.value if widget.set_value else widget.default
        elif kind == "selectbox" and widget.options:
            name = "string_value"
            value = widget.raw_value if widget.set_value else widget.options[widget.default]
        else:
            return
        self._widgets[widget.id] = WidgetState(id=widget.id, **{name: value})


def _purpose(message: ForwardMsg, kind: str) -> str:
    """What a message is for: the kind of element it brings, or its own kind."""
    if kind != "delta":
        return kind
    if message.delta.WhichOneof("type") != "new_element":
        return "containers"
    element: str = message.delta.new_element.WhichOneof("type") or ""
    if element == "bidi_component":
        return str(message.delta.new_element.bidi_component.component_name)
    return element

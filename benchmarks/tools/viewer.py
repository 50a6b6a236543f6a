"""A visitor without a browser: uses Streamlit's protocol, and receives the stream of the run shown."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from websockets.asyncio.client import ClientConnection, connect

from benchmarks.stream import CountingViewer

CACHED_FOR = 2
"""Script runs for which a browser caches large messages, so that the server sends only their hash."""


class Viewer:
    """One browser session that counts its messages and errors.

    Args:
        address: of the server.
        query: query string of the page's link, such as "run=abc".
        page: the name of the page in the address, such as "explore"; by default the first page.
    """

    def __init__(self, address: str, query: str = "", page: str = "") -> None:
        self._address = address.replace("http://", "ws://") + "/_stcore/stream"
        self.query = query
        self.headers: dict[str, str] = {}
        """Headers that are added to the handshake."""
        self._page_name, self._page = page, ""
        self._widgets: dict[str, WidgetState] = {}
        self._seen: dict[str, int] = {}  # hashes of large messages, and the script run of each
        self._runs = 0
        self.painted = asyncio.Event()
        """Set once a whole page has been received."""
        self.answer_seconds: list[float] = []
        """Seconds from each request for the page to its answer."""
        self._asked_at: float | None = None
        self.stream = CountingViewer()
        """Messages about the run that is shown, since `follow` was called."""
        self._shown: dict[str, Any] = {}  # the newest data of the player
        self.alerts: list[str] = []
        """Texts of warning and error boxes."""
        self.exceptions: list[Any] = []
        """Exceptions that were shown; the app's pages show none."""
        self._buttons: dict[str, str] = {}  # key to the id of a button
        self._socket: ClientConnection | None = None

    async def watch(self) -> None:
        """Open the page and receive its messages until cancelled."""
        async with connect(
            self._address,
            subprotocols=["streamlit"],
            additional_headers=self.headers,
            max_size=None,
            compression=None,
            close_timeout=1,
        ) as socket:
            self._socket = socket
            await self._rerun(socket)
            async for data in socket:
                assert isinstance(data, bytes)
                self._take(data)

    async def follow(self) -> None:
        """Receive the stream of the run that is shown now, until cancelled."""
        stream = self._address.replace("/_stcore/stream", f"/stream/{self._shown['run']}/news")
        await self.stream.watch(stream, self._shown["ticket"])

    async def ask(self) -> None:
        """Rerun the page, as a press on a button does."""
        assert self._socket is not None, "watch first"
        if self._asked_at is None:
            self._asked_at = time.perf_counter()
            await self._rerun(self._socket)

    async def press(self, key: str) -> None:
        """Send the message of a press on a button, even if the button is disabled."""
        assert self._socket is not None, "watch first"
        pressed = WidgetState(id=self._buttons[key], trigger_value=True)
        await self._rerun(self._socket, pressed=pressed)

    async def _rerun(self, socket: ClientConnection, pressed: WidgetState | None = None) -> None:
        """Request the page."""
        message = BackMsg()
        asked = message.rerun_script
        asked.query_string = self.query
        asked.page_script_hash = self._page
        asked.page_name = "" if self._page else self._page_name
        values = [*self._widgets.values(), *([] if pressed is None else [pressed])]
        asked.widget_states.CopyFrom(WidgetStates(widgets=values))
        asked.cached_message_hashes.extend(self._seen)
        asked.context_info.url = self._address
        await socket.send(message.SerializeToString())

    def _take(self, data: bytes) -> None:
        """Process one message of the server."""
        message = ForwardMsg.FromString(data)
        kind = message.WhichOneof("type") or ""
        if message.metadata.cacheable and not message.ref_hash:
            self._seen[message.hash] = self._runs
        elif message.ref_hash:
            self._seen[message.ref_hash] = self._runs
        if kind == "new_session":
            self._page = message.new_session.page_script_hash
        elif kind == "page_info_changed":
            self.query = message.page_info_changed.query_string
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            self._note_widget(message.delta.new_element)
        elif kind == "script_finished":
            self._finished()

    def _finished(self) -> None:
        """Process the end of a script run."""
        self._runs += 1
        self._seen = {name: run for name, run in self._seen.items() if self._runs - run <= CACHED_FOR}
        if self._asked_at is not None:
            self.answer_seconds.append(time.perf_counter() - self._asked_at)
            self._asked_at = None
        self.painted.set()

    def _note_widget(self, element: Any) -> None:
        """Record an element; a browser returns the value of every widget with each request."""
        kind = element.WhichOneof("type")
        widget = getattr(element, kind)
        if kind == "button":
            self._buttons[widget.id.rpartition("-")[2]] = widget.id
        if kind == "bidi_component" and widget.component_name.endswith("headlight_player"):
            self._shown = json.loads(widget.json)
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

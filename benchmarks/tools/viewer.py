"""A visitor without a browser: uses Streamlit's protocol, and receives the stream of the run shown."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from collections.abc import Awaitable, Callable
from typing import Any

from streamlit.components.v2.bidi_component.main import _make_trigger_id
from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Common_pb2 import FileUploaderState, UploadedFileInfo
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from websockets.asyncio.client import ClientConnection, connect

from benchmarks.stream import CountingViewer

CACHED_FOR = 2
"""Script runs for which a browser caches large messages, so that the server sends only their hash."""
SECONDS = 90.0
"""Longest wait for an answer."""


class Viewer:
    """One browser session that counts its messages and errors.

    Args:
        address: of the server.
        query: query string of the page's link, such as "run=abc".
        page: the name of the page in the address, such as "ask"; by default the first page.
    """

    def __init__(self, address: str, query: str = "", page: str = "") -> None:
        self.address = address
        self._address = address.replace("http://", "ws://") + "/_stcore/stream"
        self.query = query
        self.headers: dict[str, str] = {}
        """Headers that are added to the handshake."""
        self._page_name, self._page = page, ""
        self._drawing = page
        self._begun = False  # whether the server has begun to answer the newest request for a whole page
        self._drawn: str | None = None  # the page in the address of what has been received whole
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
        self.errors: list[str] = []
        """Texts of error boxes alone."""
        self.exceptions: list[Any] = []
        """Exceptions that were shown; the app's pages show none."""
        self._buttons: dict[str, str] = {}  # key to the id of a button
        self._others: dict[str, Any] = {}  # key to the newest uploader, download button or component
        self._claimed: dict[str, WidgetState] = {}  # values that override those of the server
        self._fragments: dict[str, str] = {}  # id of a widget to the fragment that draws it
        self._answers: dict[str, Any] = {}  # id of a request to its answer
        self._socket: ClientConnection | None = None
        self.session = ""
        """The id of the session."""
        self.full_runs = 0
        """Number of times that the whole page has been received."""

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

    @property
    def connected(self) -> bool:
        return self._socket is not None and self._socket.close_code is None

    async def press(self, key: str) -> None:
        """Send the message of a press on a button, even if the button is disabled."""
        await self._send(WidgetState(id=self._buttons[key], trigger_value=True))

    async def go(self, page: str, query: str) -> None:
        """Request another page, as a link to it does, and wait for it."""
        self._page_name, self._page, self.query, self._drawn = page, "", query, None
        self._widgets, self._buttons, self._others, self._claimed = {}, {}, {}, {}
        await self._send(None)
        await self.until(lambda: self._drawn == page)

    async def set_widgets(self, **values: dict[str, Any]) -> None:
        """Set the values of widgets by key and wait for the page's answer.

        Removes the keys from the link, because the link would override the values.
        """
        left = [part for part in self.query.split("&") if part.partition("=")[0] not in values]
        self.query = "&".join(left)
        for key, value in values.items():
            (id_,) = [name for name in self._widgets if name.endswith(f"-{key}")]
            self._claimed[id_] = WidgetState(id=id_, **value)
        self._widgets |= self._claimed
        await self.answered(self.ask())

    async def tell(self, component: str, name: str, value: object, *, stays: bool = False) -> None:
        """Send what a component of this key sends: an event, or a state, which `stays` and is sent again."""
        id_ = self._others[component].id
        if stays:
            self._widgets[id_] = WidgetState(id=id_, json_value=json.dumps({name: value}))
        event = WidgetState(
            id=_make_trigger_id(id_, "events"),
            json_trigger_value=json.dumps([{"event": name, "value": value}]),
        )
        await self._send(None if stays else event, fragment=self._fragments.get(id_, ""))

    async def upload(self, key: str, name: str, content: bytes) -> None:
        """Upload a file, as a choice of it in an uploader does."""
        asked = BackMsg()
        asked.file_urls_request.request_id = name
        asked.file_urls_request.file_names.append(name)
        (urls,) = (await self._answer(asked, name)).file_urls
        await asyncio.to_thread(_put, self.address, urls.upload_url, name, content)
        info = UploadedFileInfo(file_id=urls.file_id, name=name, size=len(content), file_urls=urls)
        id_ = self._others[key].id
        value = FileUploaderState(uploaded_file_info=[info])
        self._widgets[id_] = WidgetState(id=id_, file_uploader_state_value=value)
        await self._send(None)

    async def download(self, key: str) -> bytes:
        """Press a download button, and return the file. Raises RuntimeError if the server cannot make it."""
        asked = BackMsg()
        asked.backend_operation_request.request_id = key
        asked.backend_operation_request.session_id = self.session
        asked.backend_operation_request.deferred_file.file_id = self._others[key].deferred_file_id
        answer = await self._answer(asked, key)
        if answer.error_msg:
            raise RuntimeError(f"{key}: {answer.error_msg}")
        return await asyncio.to_thread(get, self.address + answer.deferred_file.url)

    async def answered(self, asking: Awaitable[None]) -> None:
        """Await a request, and then the whole page that answers it."""
        before = self.full_runs
        await asking
        await self.until(lambda: self.full_runs > before)

    async def until(self, condition: Callable[[], object], seconds: float = SECONDS) -> None:
        """Wait until a condition is met. Raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(0.01)

    async def _answer(self, asked: BackMsg, name: str) -> Any:
        assert self._socket is not None, "watch first"
        await self._socket.send(asked.SerializeToString())
        await self.until(lambda: name in self._answers)
        return self._answers.pop(name)

    async def _send(self, pressed: WidgetState | None, fragment: str = "") -> None:
        assert self._socket is not None, "watch first"
        await self._rerun(self._socket, pressed, fragment)

    async def _rerun(
        self, socket: ClientConnection, pressed: WidgetState | None = None, fragment: str = ""
    ) -> None:
        """Request the page, or only a fragment of it."""
        message = BackMsg()
        asked = message.rerun_script
        asked.fragment_id = fragment
        asked.query_string = self.query
        asked.page_script_hash = self._page
        asked.page_name = "" if self._page else self._page_name
        values = [*self._widgets.values(), *([] if pressed is None else [pressed])]
        asked.widget_states.CopyFrom(WidgetStates(widgets=values))
        asked.cached_message_hashes.extend(self._seen)
        asked.context_info.url = self._address
        self._begun = self._begun and bool(fragment)
        await socket.send(message.SerializeToString())

    def _take(self, data: bytes) -> None:
        """Process one message of the server."""
        message = ForwardMsg.FromString(data)
        kind = message.WhichOneof("type") or ""
        if message.metadata.cacheable and not message.ref_hash:
            self._seen[message.hash] = self._runs
        elif message.ref_hash:
            self._seen[message.ref_hash] = self._runs
        if kind == "navigation":
            shown = message.navigation
            self._page = shown.page_script_hash
            (self._drawing,) = {
                page.url_pathname for page in shown.app_pages if page.page_script_hash == self._page
            }
        elif kind == "new_session":
            self._begun |= not message.metadata.run.fragment_ids
            self.session = message.new_session.initialize.session_id
        elif kind == "page_info_changed":
            self.query = message.page_info_changed.query_string
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            self._note_widget(message.delta.new_element)
            element = message.delta.new_element
            if message.delta.fragment_id:
                id_ = getattr(getattr(element, element.WhichOneof("type") or ""), "id", "")
                self._fragments[id_] = message.delta.fragment_id
        elif kind == "file_urls_response":
            self._answers[message.file_urls_response.response_id] = message.file_urls_response
        elif kind == "backend_operation_response":
            answer = message.backend_operation_response
            self._answers[answer.request_id] = answer
        elif kind == "script_finished":
            if message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY and self._begun:
                self.full_runs, self._drawn = self.full_runs + 1, self._drawing
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
        if kind in ("file_uploader", "download_button", "bidi_component"):
            self._others[widget.id.rpartition("-")[2]] = widget
        if kind == "bidi_component" and widget.component_name.endswith("headlight_player"):
            self._shown = json.loads(widget.json)
        if kind == "exception":
            self.exceptions.append(widget)
        if kind == "alert":
            self.alerts.append(widget.body)
            if widget.format == Alert.ERROR:
                self.errors.append(widget.body)
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
        self._widgets |= self._claimed


def get(url: str, headers: dict[str, str] | None = None) -> bytes:
    """Return the content at an address. Raises OSError."""
    with urllib.request.urlopen(
        urllib.request.Request(url, headers=headers or {}), timeout=SECONDS
    ) as answer:
        content: bytes = answer.read()
    return content


def _put(address: str, url: str, name: str, content: bytes) -> None:
    """Upload a file as a form, with the token that protects forms. Raises OSError."""
    with urllib.request.urlopen(f"{address}/_stcore/health", timeout=SECONDS) as answer:
        cookie = answer.headers["Set-Cookie"].partition(";")[0]
    body = f'--=\r\nContent-Disposition: form-data; name="{name}"; filename="{name}"\r\n\r\n'.encode()
    headers = {
        "Content-Type": "multipart/form-data; boundary==",
        "Cookie": cookie,
        "X-Xsrftoken": cookie.partition("=")[2].strip('"'),
    }
    request = urllib.request.Request(address + url, body + content + b"\r\n--=--\r\n", headers, method="PUT")
    urllib.request.urlopen(request, timeout=SECONDS).close()

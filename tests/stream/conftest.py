"""The routes of the stream in a Starlette test server, runs whose step the tests set, and open pages."""

from __future__ import annotations

import hashlib
import hmac
import json
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit import config as options

from pages.stream import broadcaster, news
from pages.stream.routes import routes
from transformer.config import ModelConfig, RunConfig, TrainConfig
from transformer.recording.recording import Recording, up_to
from transformer.recording.view import RunView
from transformer.runs.registry import REGISTRY
from transformer.runs.run import Run
from transformer.shared.interventions import Interventions
from transformer.tasks import task_of

CONFIG = RunConfig(
    model=ModelConfig(n_encoder_layers=1, n_decoder_layers=1, n_heads=2, d_model=8, d_ff=8),
    train=TrainConfig(max_letters=4, batch_size=4, steps=30, warmup_steps=3, evaluate_every=10),
    seed=2,
    device="cpu",
)
WORDS = ("frog", "cat")
TICK = 0.02
"""Seconds between two polls of a run in these tests."""
HOST = "testserver"


def signed(run_id: str, expiry: object, secret: str | None = None) -> str:
    """Return a ticket, computed independently of the code under test."""
    secret = options.get_option("server.cookieSecret") if secret is None else secret
    said = f"headlight stream {run_id} {expiry}".encode()
    return f"{expiry}.{hmac.new(secret.encode(), said, hashlib.sha256).hexdigest()}"


def good(run_id: str) -> str:
    """Return a ticket that is valid for an hour."""
    return signed(run_id, int(time.time()) + 3600)


@pytest.fixture(scope="session")
def recorded() -> RunView:
    """A finished run of 30 steps, all recorded; one head is switched off at its end."""
    run = Run(CONFIG, words=WORDS)
    run.start()
    assert run.wait(60)
    run.intervene(Interventions(ablated=(("encoder.0", 1),))).result(30)
    run.close()
    run.join()
    assert run.view.state == "finished"
    return run.view


class FakeRun:
    """A run whose view is set by the test."""

    place = None

    def __init__(self, view: RunView) -> None:
        self.config, self.id = view.config, view.id
        self.questions = [task_of(view.config).question(word) for word in WORDS]
        self.view, self.whole = view, view
        self.looks: list[float] = []
        """Times at which the run was polled."""

    def look(self) -> RunView:
        self.looks.append(time.monotonic())
        return self.view

    def at(self, step: int, **changes: Any) -> None:
        """Set the run to training at this step, without later frames; at -1, without any frame."""
        frames = self.whole.frames
        records = [early for record in frames.records if (early := up_to(record, step)) is not None]
        known = Recording(records, numbers=self.whole.metrics.at, target_score=frames[-1].target_score)
        self.view = replace(self.whole, frames=known, step=max(0, step), **{"state": "training"} | changes)


class Runs(dict[str, FakeRun]):
    """The existing runs, by id."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_for: list[str] = []
        """Ids that were looked up."""

    def find(self, id_: str) -> FakeRun | None:
        self.asked_for.append(id_)
        return self.get(id_)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Runs:
    runs = Runs()
    monkeypatch.setattr(REGISTRY, "get", runs.find)
    for module in (news, broadcaster):
        monkeypatch.setattr(module, "find", runs.find)
    monkeypatch.setattr(news, "tick", lambda n_viewers, n_runs: TICK)
    for held in (news._broadcasters, news._sockets, news._looking):
        held.clear()
    return runs


@pytest.fixture
def run(recorded: RunView, found: Runs) -> FakeRun:
    """The recorded run, at first with all its steps."""
    made = found[recorded.id] = FakeRun(recorded)
    return made


@pytest.fixture
def server(found: Runs) -> Iterator[TestClient]:
    """A client of the routes; an error in a route fails the test."""
    with TestClient(Starlette(routes=routes()), base_url=f"http://{HOST}") as client:
        yield client


class Message:
    """A message sent to a page."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        *lines, self.maps = data.split(b"\n", 2)
        self.now, self.news = map(json.loads, lines)

    @property
    def steps(self) -> list[int]:
        """Steps of the maps in the message."""
        return json.loads(self.maps.split(b"\n", 1)[0])["steps"] if self.maps else []

    @property
    def word(self) -> str | None:
        return json.loads(self.maps.split(b"\n", 1)[0])["word"] if self.maps else None


class Page:
    """An open page: the client end of a socket."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket
        self._came: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            try:
                message = self.socket.receive()
            except Exception:  # the test is over
                return
            self._came.put(message)
            if message["type"] == "websocket.close":
                return

    def say(self, **said: Any) -> None:
        self.socket.send_text(json.dumps(said))

    def next(self, seconds: float = 10.0) -> Message:
        """Return the next message; fail if none arrives."""
        message = self._came.get(timeout=seconds)
        assert message["type"] == "websocket.send", message
        return Message(message["bytes"])

    def answered(self, ping: int, seconds: float = 10.0) -> bool:
        """Return whether the next message is the answer to a ping."""
        return bool(self._came.get(timeout=seconds).get("text") == str(ping))

    def drawn(self, seconds: float = 10.0) -> Message:
        """Return the next message and report it as drawn."""
        message = self.next(seconds)
        self.say(drawn=1)
        return message

    def until(self, condition: Callable[[Message], object], most: int = 200) -> Message:
        """Receive messages and report them as drawn until one meets the condition; return it."""
        for _ in range(most):
            if condition(message := self.drawn()):
                return message
        raise AssertionError("it was not told")

    def settled(self) -> Message | None:
        """Receive messages and report them as drawn until none arrives; return the last, or None."""
        last = None
        while True:
            try:
                last = self.drawn(10 * TICK)
            except queue.Empty:
                return last

    def silent(self, seconds: float = 0.3) -> bool:
        """Return whether no message arrives within this time."""
        try:
            message = self._came.get(timeout=seconds)
        except queue.Empty:
            return True
        return bool(message["type"] != "websocket.send")

    def closed(self, seconds: float = 10.0) -> int:
        """Skip messages until the socket is closed; return the close code."""
        while True:
            message = self._came.get(timeout=seconds)
            if message["type"] == "websocket.close":
                return int(message["code"])


@pytest.fixture
def opened(server: TestClient) -> Iterator[Callable[..., Page]]:
    """Open a page of a run; the page sends the other arguments at once. Close all pages after the test."""
    with ExitStack() as stack:

        def open_(
            run_id: str,
            *,
            ticket: str | None = None,
            headers: dict[str, str] | None = None,
            subprotocols: Sequence[str] | None = None,
            **said: Any,
        ) -> Page:
            offered = [f"headlight.{good(run_id) if ticket is None else ticket}"]
            socket = server.websocket_connect(
                f"/stream/{run_id}/news",
                subprotocols=offered if subprotocols is None else list(subprotocols),
                headers=headers or {},
            )
            page = Page(stack.enter_context(socket))
            if said:
                page.say(**said)
            return page

        yield open_


@pytest.fixture
def watched(opened: Callable[..., Page], run: FakeRun) -> Callable[..., Page]:
    """Open a page that shows "cat" and is up to date at step 3."""
    run.at(3)

    def watch(**said: Any) -> Page:
        page = opened(run.id, word="cat", **said)
        page.until(lambda one: one.maps)
        page.settled()
        return page

    return watch

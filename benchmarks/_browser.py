"""A real Chromium that looks at the app."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
from playwright.sync_api import Browser, Page, WebSocket, sync_playwright
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SIZE = {"width": 1280, "height": 720}


@contextmanager
def chromium() -> Iterator[Browser]:
    """Started, with nothing open. Raises RuntimeError where there is none."""
    path = shutil.which("chromium")
    if path is None:
        raise RuntimeError("there is no chromium on the PATH; install Debian's package")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield browser
        browser.close()


def browser_seconds() -> float:
    """Seconds on the processor of all processes of Chromium that this one has started and that still run."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            if "chrom" in process.name():
                times = process.cpu_times()
                total += times.user + times.system
        except psutil.NoSuchProcess:
            continue
    return total


class Refreshes:
    """Counts the refreshes that a page is sent; made before the page is opened."""

    def __init__(self, page: Page) -> None:
        self.count = 0
        page.on("websocket", self._listen)

    def _listen(self, socket: WebSocket) -> None:
        socket.on("framereceived", self._take)

    def _take(self, data: str | bytes) -> None:
        # Looked at only where it is short enough to be the end of a script's run.
        if isinstance(data, bytes) and len(data) < 120:
            message = ForwardMsg.FromString(data)
            ended = message.WhichOneof("type") == "script_finished"
            self.count += ended and message.script_finished == ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY

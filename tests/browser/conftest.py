"""The real app on a free port, and a real Chromium that looks at it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium")
REQUIRED = os.environ.get("HEADLIGHT_REQUIRE_BROWSER") == "1"
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser" in item.path.parts:
            item.add_marker(pytest.mark.browser)
            if CHROMIUM is None and not REQUIRED:
                item.add_marker(pytest.mark.skip(reason="no chromium on the PATH; install Debian's package"))


def start_server() -> tuple[subprocess.Popen[bytes], str]:
    """A fresh server of the app, started as the README says; returns it and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    for _ in range(150):
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=2) as answer:
                if answer.status == 200:
                    return server, address
        except OSError:
            time.sleep(0.2)
    server.kill()
    raise RuntimeError("the server did not come up")


@pytest.fixture(scope="module")
def app() -> Iterator[str]:
    """Address of the running app; what it still trains ends with the module and slows no other tests."""
    server, address = start_server()
    yield address
    server.terminate()
    server.wait(10)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.fail("HEADLIGHT_REQUIRE_BROWSER=1, but there is no chromium on the PATH")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium
        chromium.close()


class Watcher:
    """A page, with what went wrong on it and whom it asked."""

    def __init__(self, page: Page, app: str) -> None:
        self.page, self.app = page, app
        self.errors: list[str] = []
        self.hosts: set[str] = set()
        page.set_default_timeout(30_000)
        page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))

    def open(self, path: str = "/", picture: str = "live_map") -> None:
        """Go to a page and wait until its picture has been drawn."""
        self.page.goto(self.app + path)
        self.page.wait_for_selector(f".st-key-{picture} svg.main-svg")

    def click(self, key: str) -> None:
        button = self.page.locator(f".st-key-{key} button:enabled")
        button.click()

    def type(self, key: str, text: str) -> None:
        box = self.page.locator(f".st-key-{key} input")
        box.fill(text)
        box.press("Enter")

    def number(self, key: str, name: str) -> int:
        """What the picture's host element says of itself: step or draws."""
        return int(self.page.locator(f".st-key-{key} .live-figure").get_attribute(f"data-{name}") or -1)

    @property
    def status(self) -> str:
        """What the Watch page says of its run; nothing on other pages."""
        return " ".join(self.page.locator(".st-key-run_status").all_inner_texts())

    def until(self, condition: str | object, seconds: float = 30.0, what: str = "") -> float:
        """Wait until a function of no arguments is true; returns how long that took."""
        began = time.monotonic()
        while not condition():  # type: ignore[operator]
            if time.monotonic() - began > seconds:
                raise AssertionError(f"not within {seconds} s: {what or condition}; status: {self.status}")
            self.page.wait_for_timeout(20)
        return time.monotonic() - began

    def plot(self, key: str, expression: str) -> object:
        """Evaluate JavaScript on the picture's host element, called gd as Plotly does."""
        return self.page.locator(f".st-key-{key} .live-figure").evaluate(f"gd => {expression}")


@pytest.fixture
def watch(app: str, browser: Browser) -> Iterator[Watcher]:
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    watcher = Watcher(context.new_page(), app)
    yield watcher
    context.close()
    assert watcher.errors == []
    assert watcher.hosts <= {app.removeprefix("http://")}

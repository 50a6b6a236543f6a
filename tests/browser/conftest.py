"""Fixtures of the browser tests: the real app on a free port, and a real Chromium that opens it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Generator, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from benchmarks.tools.browser import SIZE, chromium
from tests.browser.watcher import PATIENCE, Watcher
from tests.security.stranger import run_in_thread, visiting
from tests.serving import start_server

CHROMIUM = shutil.which("chromium")
REQUIRED = os.environ.get("HEADLIGHT_REQUIRE_BROWSER") == "1"
SOCKETS = """{
  window.sockets = [];
  const Real = window.WebSocket;
  window.WebSocket = class extends Real {
    constructor(...how) {
      super(...how);
      window.sockets.push(this);
      this.sent = this.heard = 0;
      this.addEventListener("message", (event) => {
        if (window.deaf?.test(this.url)) event.stopImmediatePropagation();
        else this.heard += 1;
      });
    }
    send(what) {
      if (typeof what !== "string" || !what.startsWith('{"ping"')) this.sent += 1; // pings ask for nothing
      super.send(what);
    }
  };
}"""
"""Keeps all sockets of a page in `window.sockets`, counts their messages, and drops the messages received by
sockets whose address matches `window.deaf`."""
COMPILED_ONCE = "--v8-cache-options=codewithoutheatcheck"
"""Chromium keeps compiled scripts from their first use on: a tenth less processor time for each page."""
FAST = "/?steps=5000&goal=none"
"""Full pace: slows down everything else on the machine."""
SMALL = "&goal=none&layers_encoder=1&layers_decoder=1&heads=2&width=16"
LONG = f"/?steps=5000{SMALL}&pace=20+steps%2Fs"
STEADY = f"/?steps=5000{SMALL}&pace=5+steps%2Fs"
"""Five steps per second: leaves most of the processor to the pages."""
CALM = f"/?steps=5000{SMALL}&pace=1+steps%2Fs"
"""One step per second: leaves the processor to the page."""
RUNS = ".st-key-run_picker [class*=st-key-show_] button"
expect.set_options(timeout=1000 * PATIENCE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser" in item.path.parts:
            if item.get_closest_marker("slow") is None:
                item.add_marker(pytest.mark.browser)
            if CHROMIUM is None and not REQUIRED:
                item.add_marker(pytest.mark.skip(reason="no chromium on the PATH; install Debian's package"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Function, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the page's address, errors and text to the report of a failed test."""
    report = yield
    watcher = next((value for value in item.funcargs.values() if isinstance(value, Watcher)), None)
    if report.failed and call.when == "call" and watcher is not None:
        text = watcher.page.locator("body").inner_text()
        report.sections.append(("page", "\n".join([watcher.page.url, *watcher.errors, text])))
    return report


HANDSHAKE = 'WebSocket is not connected. Need to call "accept" first.'
"""The error of Streamlit's socket when a browser leaves while the socket is being opened."""


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the running app. Its log must contain no exception when all visits have ended."""
    log = tmp_path_factory.mktemp("app") / "log"
    with log.open("wb") as output:
        server, address = start_server(output=output)
    yield address
    server.terminate()
    server.wait(60)
    entries = re.split(r"\n(?=\d{4}-\d\d-\d\d )", log.read_text(encoding="utf-8"))
    assert [entry for entry in entries if "Traceback" in entry and HANDSHAKE not in entry] == []


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.fail("HEADLIGHT_REQUIRE_BROWSER=1, but there is no chromium on the PATH")
    with chromium(COMPILED_ONCE) as started:
        yield started


def new_page(browser: Browser) -> Page:
    """Open a page in its own browser context, with its sockets accessible."""
    context = browser.new_context(viewport=SIZE)
    context.add_init_script(SOCKETS)
    return context.new_page()


@pytest.fixture(scope="session")
def tab(browser: Browser) -> Page:
    """The page that visits share: opening a new page takes three times the processor time."""
    return new_page(browser)


@pytest.fixture(scope="session")
def other_tab(browser: Browser) -> Page:
    """The page that guests share."""
    return new_page(browser)


@pytest.fixture
def first_visit(app: str, browser: Browser) -> Iterator[Watcher]:
    """A new page, in which a test's own script can run from the start."""
    watcher = Watcher(new_page(browser), app)
    yield watcher
    watcher.page.context.close()


@pytest.fixture
def visit(app: str, tab: Page) -> Iterator[Watcher]:
    """A page whose browser stores nothing of earlier visits."""
    watcher = Watcher(tab, app)
    yield watcher
    watcher.leave()


@pytest.fixture
def watch(visit: Watcher) -> Iterator[Watcher]:
    """The page of `visit`; its console must show no error, and it may send requests to the app only."""
    yield visit
    assert visit.errors == []
    assert visit.hosts <= {visit.app.removeprefix("http://")}


@pytest.fixture
def guest(app: str, other_tab: Page) -> Iterator[Watcher]:
    """Another visitor, in a separate browser context."""
    watcher = Watcher(other_tab, app)
    yield watcher
    watcher.leave()
    assert watcher.errors == []


def start(watch: Watcher, path: str = "/") -> None:
    """Open a page, start its run, and wait for the first trained map."""
    watch.open(path)
    watch.click("run_start")
    watch.until(lambda: watch.number("live_map", "step") > 0, what="the first trained map")


def finish(watch: Watcher, path: str, step: int) -> None:
    """Open a page, start its run, and wait until it has finished at this step."""
    watch.open(path)
    watch.click("run_start")
    watch.until(lambda: watch.state == "finished" and watch.stands_at(step), what="the end of the run")


def trained(app: str, query: str, state: str = "finished") -> str:
    """Start a run without a browser, wait for this state, and return the run's id."""

    async def train() -> str:
        async with visiting(app, query) as visitor:
            await visitor.answered(visitor.press("run_start"))
            await visitor.news_until(lambda now: now["state"] == state)
            return visitor.run

    return str(run_in_thread(train()))


def shown(watch: Watcher) -> object:
    """Return the title of the large map."""
    return watch.plot("live_map", "title()")
